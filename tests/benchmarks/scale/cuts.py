"""Columns that are cut by target: how even shards are then, and what that costs a token.

A founder chooses the columns by a sample. How well that was done shows in other text.
"""

from functools import cache
from typing import cast

import numpy as np

from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.cut_choice import by_shard, cuts_for, spread
from giaann_p2p.store.cut_columns import cut_columns
from giaann_p2p.store.cuts import Cut
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.reading.reader import Reader
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Manifest, Rules
from tests.benchmarks.played_reads import Others
from tests.benchmarks.scale.lessons import SPEC, learned
from tests.benchmarks.scale.swarms import REPLICAS, SHARDS, fitting, identities, placement
from tests.benchmarks.scale.tables import Cells, number, size

BLOCKS = (1, 16, 256)
PEERS = (100, 1_000)
SAMPLES = (4, 16, 64, 256)
"""Chunks by which the columns are chosen; a founder takes the last."""
_BEHIND, _OTHERS = 256, 256
"""The chunks that show how well: so many, behind so many."""
_FEW, _MANY = SHARDS[:2]
_TOKENS = 200
_MOST = (1 << 31) - 1


def evenness(shards: int) -> Cells:
    """Return how much larger than the mean the largest shard is, by what was cut."""
    cells: Cells = {}
    for blocks in BLOCKS:
        layout, other = Layout(shards=shards, blocks=blocks), learned(_OTHERS, _BEHIND)
        lists = [chosen(shards, blocks, sample) for sample in SAMPLES]
        after = [number(spread(other, layout, cuts).largest) for cuts in lists]
        parts = sum(cut.parts for cut in lists[-1])
        told = f"{len(lists[-1]):,}, {parts:,}, {size(manifest_bytes(layout, lists[-1]))}"
        cells |= {
            f"K = {blocks}: largest shard, nothing cut": number(spread(other, layout, ()).largest),
            f"K = {blocks}: cut as {_either(SAMPLES)} chunks say": ", ".join(after),
            f"K = {blocks}: columns, parts, manifest": told,
        }
    return cells


def fullest(peers: int) -> Cells:
    """Return how much more than its share of all connections the fullest peer holds.

    A peer's share is that of the capacity of all peers, and of the shards when they are placed.
    """
    shards, placed = fitting(peers), placement(peers, fitting(peers))
    share = np.array(placed.shares) / np.sum(placed.shares)
    cells: Cells = {"N": f"{shards:,}"}
    for blocks in BLOCKS:
        layout = Layout(shards=shards, blocks=blocks)
        lists: dict[str, tuple[Cut, ...]] = {"nothing cut": (), "cut": chosen(shards, blocks)}
        for name, cuts in lists.items():
            held = by_shard(learned(_OTHERS, _BEHIND), layout, cuts)
            of_peer = np.zeros(peers)
            np.add.at(of_peer, placed.owner_matrix, held[:, np.newaxis] / held.sum() / REPLICAS)
            most, nearly = np.percentile(of_peer / share, [100, 95])
            told = f"{number(float(most))}, {number(float(nearly))}"
            cells[f"K = {blocks}, {name}: the fullest peer, and 95 of 100 at most"] = told
    return cells


def reads(peers: int) -> Cells:
    """Return how many peers are asked for a token, by the reader's own decisions."""
    cells: Cells = {}
    for shards in (_FEW, _MANY):
        for blocks in BLOCKS:
            asked = asked_for_tokens(peers, shards, blocks)
            told = f"{number(float(np.mean(asked)))}, {max(asked):,}"
            cells[f"N = {shards:,}, K = {blocks}: peers a token, mean and most"] = told
    return cells


@cache
def chosen(shards: int, blocks: int, sample: int = SAMPLES[-1]) -> tuple[Cut, ...]:
    """Return the columns that a founder cuts by a sample of so many chunks."""
    return cuts_for(learned(sample), Layout(shards=shards, blocks=blocks))


def manifest_bytes(layout: Layout, cuts: tuple[Cut, ...]) -> int:
    """Return the bytes of the manifest of a swarm that cuts these columns."""
    whole = Layout(shards=layout.shards, blocks=layout.blocks, cuts=cuts)
    return len(Manifest.founded(identities(1)[0], "scale", layout=whole).to_bytes())


def asked_for_tokens(peers: int, shards: int, blocks: int) -> list[int]:
    """Return how many peers a reader asks at once for each of some tokens of other text."""
    columns = cut_columns(chosen(shards, blocks))
    return [asked_for(columns.parts(one), peers, shards, blocks) for one in _tokens()]


def asked_for(rows: list[Neuron], peers: int, shards: int, blocks: int) -> int:
    """Return how many peers a reader asks at once for some rows."""
    others = Others(Peer(bytes(32)), placement(peers, shards))
    others.rules = Rules(shards, REPLICAS, blocks=blocks)
    limits = Limits(SPEC.branches, SPEC.segments, _MOST, _MOST, _MOST)
    reader = Reader(limits, cast(PeersView, others), 2.0, 15.0)
    _, acts = reader.read(Question(rows), 0.0)
    return len({act.peer for act in acts if isinstance(act, Call)})


@cache
def _tokens() -> list[Neuron]:
    """Return neurons of other text, each as often as it occurs there."""
    other = learned(_OTHERS, _BEHIND)
    ends = np.cumsum(other.count)
    at = np.searchsorted(ends, (np.arange(_TOKENS) + 0.5) / _TOKENS * ends[-1], side="right")
    pairs = zip(other.concept[at].tolist(), other.feature[at].tolist(), strict=True)
    return [Neuron(*pair) for pair in pairs]


def _either(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers[:-1])) + f" or {numbers[-1]}"
