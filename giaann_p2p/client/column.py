"""Looking at a column: its words, how often they occurred, and what each leads to."""

import asyncio
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
from giaann_p2p.swarm.electors import majority
from giaann_p2p.swarm.identity import Peer, name_of
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

    Unreachable if nobody who holds it answers. Where all that is read is put to the vote, so is
    which words there are; then also if no majority of the replicas answers.
    """
    name = "_".join(concept.lower().split())
    number = word_id(name)
    lists = await _features(visiting, number)
    # The most frequent words of all are among the most frequent of each block, which come first.
    some = dict.fromkeys(feature for one in lists for feature in one[:words])
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
    return Column(name, len(set().union(*lists)), shown)


async def _features(visiting: Visit, concept: int) -> list[tuple[int, ...]]:
    """Ask for the features of a column, block by block; some may be listed more than once."""
    shards = shards_of(visiting.manifest.layout, concept)
    if visiting.verify.all:
        return [one for shard in shards for one in await _elected(visiting, shard, concept)]
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
    faults: list[str] = []
    for peer in visiting.around.ready(shard, visiting.lookout.time()):
        told = await _said(visiting, peer, concept)
        if isinstance(told, tuple):
            return told
        faults.append(told)
    why = "; ".join(faults) or "no peer has it ready"
    raise Unreachable(
        f"nobody could tell of the columns in shard {shard} ({why}); see `giaann status`"
    )


async def _elected(visiting: Visit, shard: int, concept: int) -> list[tuple[int, ...]]:
    """Ask all owners of a shard, and return what each says, but for what no majority names."""
    placement = visiting.around.placement(visiting.lookout.time())
    owners, need = placement.owners(shard), majority(placement.replicas)
    answers = await asyncio.gather(*(_said(visiting, peer, concept) for peer in owners))
    told = [answer for answer in answers if isinstance(answer, tuple)]
    if len(told) < need:
        faults = [answer for answer in answers if isinstance(answer, str)]
        why = "; ".join(faults) or "they are not there"
        raise Unreachable(
            f"only {len(told)} of the {placement.replicas} replicas of shard {shard} could tell"
            f" which words the column has, and {need} have to ({why}); see `giaann status`, and"
            " ask again"
        )
    named = Counter(feature for one in told for feature in set(one))
    return [tuple(feature for feature in one if named[feature] >= need) for one in told]


async def _said(visiting: Visit, peer: Peer, concept: int) -> tuple[int, ...] | str:
    """Return the features of a column that a peer has, the most frequent first, or a fault."""
    question = encode(AskColumn(struct.pack("<Q", concept)))
    try:
        data = await visiting.place.transport.call(peer, question, timeout=_WITHIN)
        answer = decode(data)
        if isinstance(answer, Told):
            return _numbers(answer.features)
        raise MessageError(answer.reason if isinstance(answer, Refused) else "another answer")
    except PeerError as error:
        return f"{name_of(peer)}: {error}"


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
