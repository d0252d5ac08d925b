"""Reads a concept's column: its words, how often they occurred, and where each one leads."""

import asyncio
import struct
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np

from giaann_p2p.client.session import Session
from giaann_p2p.errors import MessageError, PeerError
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.rows import Name, Neuron, Row
from giaann_p2p.model.spec import UNITS
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members.majority import majority
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.messages import AskColumn, Refusal, decode, encode
from giaann_p2p.swarm.wire.messages import Column as Told

_WITHIN = 5.0
_NUMBER = 8


class Leads(msgspec.Struct, frozen=True):
    """A word that connections lead to."""

    concept: str
    feature: str | None
    """Word within the concept's column; None for the noun itself."""
    strength: float
    """Summed strength of all connections to the word."""


class ColumnWord(msgspec.Struct, frozen=True):
    """A word of a column; its feature is None for the column's own noun."""

    feature: str | None
    occurrences: int
    connections: int
    leads: list[Leads]
    """The words to which the strongest connections lead, strongest first."""


class Column(msgspec.Struct, frozen=True):
    """A concept's column."""

    concept: str
    size: int
    """Number of words of the column."""
    words: list[ColumnWord]
    """The column's most frequent words, most frequent first."""


class _Target(NamedTuple):
    neuron: Neuron
    units: int


async def column(visiting: Session, concept: str, words: int = 16, leads: int = 4) -> Column:
    """Return a column; a column that was never learned has no words.

    Unreachable if no holder of one of its shards answers. If the session verifies all reads by a
    vote, the list of words is put to a vote, too; then also Unreachable if no majority of the
    replicas answers.
    """
    name = "_".join(concept.lower().split())
    number = word_id(name)
    lists = await _features(visiting, number)
    # The column's most frequent words are among the most frequent words of its blocks.
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


async def _features(visiting: Session, concept: int) -> list[tuple[int, ...]]:
    """Return one list of features for each block, or for each owner; features may repeat."""
    shards = shards_of(visiting.manifest.layout, concept)
    if visiting.verify.all:
        return [one for shard in shards for one in await _elected(visiting, shard, concept)]
    return [await _told(visiting, shard, concept) for shard in shards]


def shards_of(layout: Layout, concept: int) -> list[int]:
    """Return the shards of a column's blocks."""
    # A feature's block follows from its hash, so try enough features to hit every block.
    features = np.arange(64 * layout.blocks, dtype=np.uint64) if layout.blocks > 1 else [PRIME]
    many = np.array(features, np.uint64)
    shards = layout.shards_of(np.full(len(many), concept, np.uint64), many)
    return sorted({*shards.tolist()})


async def _told(visiting: Session, shard: int, concept: int) -> tuple[int, ...]:
    """Ask the ready holders of a shard one after the other; return the first answer."""
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


async def _elected(visiting: Session, shard: int, concept: int) -> list[tuple[int, ...]]:
    """Ask all owners of a shard; return each list without features that no majority names."""
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


async def _said(visiting: Session, peer: Peer, concept: int) -> tuple[int, ...] | str:
    """Return a column's features at a peer, most frequent first, or an error message."""
    question = encode(AskColumn(struct.pack("<Q", concept)))
    try:
        data = await visiting.place.transport.call(peer, question, timeout=_WITHIN)
        answer = decode(data)
        if isinstance(answer, Told):
            return _numbers(answer.features)
        raise MessageError(answer.reason if isinstance(answer, Refusal) else "another answer")
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


async def _names(visiting: Session, neurons: Iterable[Neuron]) -> dict[Neuron, Name]:
    wanted = list(Counter(neurons))
    rows = await visiting.rows(wanted) if wanted else []
    return {neuron: row.name for neuron, row in zip(wanted, rows, strict=True) if row}


def _leads(target: _Target, names: dict[Neuron, Name]) -> Leads:
    concept, feature = names[target.neuron]
    return Leads(concept, feature, round(target.units / UNITS, 4))
