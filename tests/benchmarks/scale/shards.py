"""How many shards a peer holds, how large they are, and what a join or leave moves."""

from collections.abc import Iterable
from functools import cache

import numpy as np

from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members.placement import Placement
from tests.benchmarks.scale.lessons import learned
from tests.benchmarks.scale.repair import ASKED, BEGUN
from tests.benchmarks.scale.swarms import (
    MODELS,
    REPLICAS,
    SHARDS,
    fitting,
    members,
    placement,
    spread,
)
from tests.benchmarks.scale.tables import Cells, number, size

BLOCKS = (1, 16, 256, 4_096)
_CHUNKS = 16
_LEAVERS = 20


def held(peers: int) -> Cells:
    """Return how many shards a peer has."""
    cells = {}
    for shards in SHARDS:
        owned = _owned(placement(peers, shards))
        told = f"{number(float(owned.mean()))}, {owned.max():,}, {np.mean(owned == 0):.0%}"
        cells[f"N = {shards:,}: mean, most, part of the peers with none"] = told
    return cells


def sizes(peers: int) -> Cells:
    """Return bytes of a shard, and of what a peer holds, were all shards alike; and are not."""
    shards = fitting(peers)
    largest = [largest_part(shards, blocks) for blocks in (BLOCKS[0], BLOCKS[-1])]
    owned = _owned(placement(peers, shards))
    cells = {"N": f"{shards:,}"}
    for name, model in MODELS.items():
        shard = model / shards
        cells[f"{name}: a shard"] = size(shard)
        told = f"{size(float(owned.mean()) * shard)}, {size(int(owned.max()) * shard)}"
        cells[f"{name}: a peer, mean and most"] = told
        told = ", ".join(size(part * model) for part in largest)
        cells[f"{name}: the largest shard, K = {BLOCKS[0]} and {BLOCKS[-1]:,}"] = told
    return cells


def moved(peers: int) -> Cells:
    """Return what a join or leave moves, beside what it must."""
    shards, whole = fitting(peers), placement(peers, fitting(peers))
    joins, leaves, newcomers, gone = [], [], [], []
    for at in spread(peers, _LEAVERS):
        peer = whole.peers[at]
        rest = {one: capacity for one, capacity in members(peers).items() if one != peer}
        less = Placement.of(rest, shards, REPLICAS)
        newcomers.append(float(whole.shares[at]))
        gone.append(len(whole.shards_of(peer)))
        joins.append(_gained(less, whole))
        leaves.append(_gained(whole, less))
    least = BEGUN + ASKED * float(np.mean(joins))
    cells = {
        "N": f"{shards:,}",
        "a join moves, shards (must)": f"{_mean(joins)} ({_mean(newcomers)})",
        "a leave moves, shards (must)": f"{_mean(leaves)} ({_mean(gone)})",
        "a newcomer is ready at the earliest after, s": number(least),
    }
    for name, model in MODELS.items():
        told = [size(float(np.mean(each)) * model / shards) for each in (joins, leaves)]
        cells[f"{name}: a join, a leave"] = ", ".join(told)
    return cells


def skew(shards: int) -> Cells:
    """Return how much larger than the mean the largest shard is."""
    cells = {}
    for blocks in BLOCKS:
        part = largest_part(shards, blocks)
        cells[f"K = {blocks:,}"] = f"{number(part * shards)} times the mean, {part:.2%} of all"
    return cells


@cache
def largest_part(shards: int, blocks: int) -> float:
    """Return the part of all connections that the largest shard has."""
    delta = learned(_CHUNKS)
    numbers = Layout(shards=shards, blocks=blocks).shards_of(delta.concept, delta.feature)
    held = np.bincount(numbers, np.diff(delta.row_starts), minlength=shards)
    return float(held.max()) / delta.connections


def _owned(placed: Placement) -> Ints:
    return np.bincount(placed.owner_matrix.ravel(), minlength=len(placed.peers))


def _gained(before: Placement, after: Placement) -> int:
    return sum(len(part.gains) for part in before.moves(after).values())


def _mean(values: Iterable[float]) -> str:
    return number(float(np.mean(list(values))))
