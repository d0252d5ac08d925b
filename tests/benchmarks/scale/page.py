"""The tables of docs/scale.md."""

from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.scale import (
    anti_entropy,
    columns,
    cuts,
    directory,
    measured,
    prediction,
    repair,
    shards,
    training,
)
from tests.benchmarks.scale.swarms import PEERS, SHARDS
from tests.benchmarks.scale.tables import Cells, Table

PAGE = Path(__file__).parents[3] / "docs" / "scale.md"
_SIZES = tuple(f"{peers:,} peers" for peers in PEERS)


def _by_peers(name: str, column: Callable[[int], Cells]) -> Table:
    return Table(name, _SIZES, lambda at: column(PEERS[at]))


TABLES = [
    _by_peers("records", directory.records),
    _by_peers("directory", directory.traffic),
    _by_peers("shards", shards.held),
    _by_peers("sizes", shards.sizes),
    Table("skew", tuple(f"N = {n:,}" for n in SHARDS), lambda at: shards.skew(SHARDS[at])),
    Table("cuts", tuple(f"N = {n:,}" for n in SHARDS), lambda at: cuts.evenness(SHARDS[at])),
    Table(
        "reads", tuple(f"{n:,} peers" for n in cuts.PEERS), lambda at: cuts.reads(cuts.PEERS[at])
    ),
    _by_peers("fullest", cuts.fullest),
    Table("columns", tuple(columns.COLUMNS), columns.column),
    _by_peers("moves", shards.moved),
    _by_peers("repair", repair.done),
    _by_peers("chances", repair.chances),
    _by_peers("anti_entropy", anti_entropy.costs),
    _by_peers("pushes", training.costs),
    _by_peers("rates", training.rates),
    Table("rows", tuple(f"{n} chunks" for n in prediction.CHUNKS), prediction.rows),
    Table("tokens", tuple(f"{1e3 * t:.0f} ms" for t in prediction.TRIPS), prediction.speed),
]
"""The same on each machine."""
MEASURED = _by_peers("measured", measured.column)
