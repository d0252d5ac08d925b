"""Looking at a column: its words, how often they occurred, and what each leads to."""

import struct
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np

from giaann_p2p.client.visit import Visit
from giaann_p2p.errors import MessageError, PeerError
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.rows import Name, Neuron, Row
from giaann_p2p.model.spec import UNITS
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.identity import name_of
from giaann_p2p.swarm.messages import AskColumn, Refused, decode, encode
from giaann_p2p.swarm.messages import Column as Told

_WITHIN = 5.0
_NUMBER = 8


class Leads(msgspec.Struct, frozen=True):
    """What a word leads to."""

    concept: str
    feature: str | None
    """None for the noun of the column itself."""
    strength: float
    """Of all connections there."""


class ColumnWord(msgspec.Struct, frozen=True):
    """A word of a column; the feature of the column's own noun is None."""

    feature: str | None
    occurrences: int
    connections: int
    leads: list[Leads]
    """The strongest, strongest first."""


class Column(msgspec.Struct, frozen=True):
    """A concept's column."""

    concept: str
    size: int
    """How many words it has."""
    words: list[ColumnWord]
    """The most frequent, most frequent first."""


class _Target(NamedTuple):
    neuron: Neuron
    units: int


async def column(visiting: Visit, concept: str, words: int = 16, leads: int = 4) -> Column:
    """Look at a column; one that nobody has learned has no words.

    Unreachable if nobody who holds it answers.
    """
    name = "_".join(concept.lower().split())
    number = word_id(name)
    blocks = await _features(visiting, number)
    # The most frequent words of all are among the most frequent of each block, which come first.
    some = dict.fromkeys(feature for block in blocks for feature in block[:words])
    rows = await visiting.rows([Neuron(number, feature) for feature in some])
    found = sorted((row for row in rows if row), key=lambda row: -row.count)[:words]
    targets = [_strongest(row, leads) for row in found]
    names = await _names(visiting, (one.neuron for row in targets for one in row))
    shown = [
        ColumnWord(
            feature=row.name.feature,
            occurrences=row.count,
            connections=len(row.strength),
            leads=[_leads(one, names) for one in strongest if one.neuron in names],
        )
        for row, strongest in zip(found, targets, strict=True)
    ]
    return Column(name, len(set().union(*blocks)), shown)


async def _features(visiting: Visit, concept: int) -> list[tuple[int, ...]]:
    """Ask for the features of a column, block by block."""
    shards = shards_of(visiting.manifest.layout, concept)
    return [await _told(visiting, shard, concept) for shard in shards]


def shards_of(layout: Layout, concept: int) -> list[int]:
    """Return the shards of a column's blocks."""
    # There is no list of blocks by feature; a few hundred of them hit every block.
    features = np.arange(64 * layout.blocks, dtype=np.uint64) if layout.blocks > 1 else [PRIME]
    many = np.array(features, np.uint64)
    shards = layout.shards_of(np.full(len(many), concept, np.uint64), many)
    return sorted({*shards.tolist()})


async def _told(visiting: Visit, shard: int, concept: int) -> tuple[int, ...]:
    """Ask those who have a shard, one after the other."""
    question = encode(AskColumn(struct.pack("<Q", concept)))
    faults: list[str] = []
    for peer in visiting.around.ready(shard, visiting.lookout.time()):
        try:
            data = await visiting.place.transport.call(peer, question, timeout=_WITHIN)
            answer = decode(data)
            if isinstance(answer, Told):
                return _numbers(answer.features)
            raise MessageError(answer.reason if isinstance(answer, Refused) else "another answer")
        except PeerError as error:
            faults.append(f"{name_of(peer)}: {error}")
    why = "; ".join(faults) or "no peer has it ready"
    raise Unreachable(
        f"nobody could tell of the columns in shard {shard} ({why}); see `giaann status`"
    )


def _numbers(data: bytes) -> tuple[int, ...]:
    if len(data) % _NUMBER:
        raise MessageError(f"{len(data)} bytes are no array of {_NUMBER} bytes each")
    return struct.unpack(f"<{len(data) // _NUMBER}Q", data)


def _strongest(row: Row, most: int) -> list[_Target]:
    total = np.bincount(row.target, row.strength, len(row.target_concept)).astype(np.int64)
    best = np.argsort(-total, kind="stable")[:most]
    fields = (row.target_concept[best], row.target_feature[best], total[best])
    triples = zip(*(field.tolist() for field in fields), strict=True)
    return [_Target(Neuron(concept, feature), units) for concept, feature, units in triples]


async def _names(visiting: Visit, neurons: Iterable[Neuron]) -> dict[Neuron, Name]:
    wanted = list(Counter(neurons))
    rows = await visiting.rows(wanted) if wanted else []
    return {neuron: row.name for neuron, row in zip(wanted, rows, strict=True) if row}


def _leads(target: _Target, names: dict[Neuron, Name]) -> Leads:
    concept, feature = names[target.neuron]
    return Leads(concept, feature, round(target.units / UNITS, 4))
