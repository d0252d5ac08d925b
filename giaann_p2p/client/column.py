"""Reads a concept's column: its words, how often each occurred, and which words it leads to."""

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
from giaann_p2p.model.traits import traits_of
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members.majority import majority
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.messages import Refusal, decode, encode
from giaann_p2p.swarm.wire.row_messages import MOST_READ, AskColumn
from giaann_p2p.swarm.wire.row_messages import Column as Told

_WITHIN = 5.0
"""Timeout of one request, in seconds."""
_PATIENCE = 10.0
"""Seconds to wait for the first peer that serves a shard: a swarm that starts has none yet."""
_LOOK_EVERY = 0.25
"""Seconds between two looks for such a peer."""
_NUMBER = 8
"""Size of a feature's id in an answer, in bytes."""


class Leads(msgspec.Struct, frozen=True):
    """A word to which a word of the column has connections."""

    concept: str
    feature: str | None
    """The word beside the concept's noun; None if the word is that noun itself."""
    strength: float
    """Sum of the strengths of all these connections."""


class ColumnWord(msgspec.Struct, frozen=True):
    """A word of a concept's column; `feature` is None for the concept's own noun."""

    feature: str | None
    occurrences: int
    connections: int
    leads: list[Leads]
    """The words that this word leads to most strongly, strongest first."""


class Column(msgspec.Struct, frozen=True):
    """A concept's column: its size, and its most frequent words."""

    concept: str
    size: int
    """Number of all words in the column, of which `words` may hold only some."""
    words: list[ColumnWord]
    """The most frequent words of the column, most frequent first."""
    at_least: bool = False
    """Whether there may be more words than `size`: a peer lists no more of them at once."""


class _Listed(NamedTuple):
    """The ids of a column's words, as peers list them: a list for each block, or each voter."""

    lists: list[tuple[int, ...]]
    is_cut: bool
    """Whether a list has the maximum length, and so may be incomplete."""

    @classmethod
    def of(cls, lists: list[tuple[int, ...]]) -> "_Listed":
        """Combine the lists that peers returned."""
        return cls(lists, any(len(one) >= MOST_READ for one in lists))


class Target(NamedTuple):
    """A neuron to which a row has connections, with the sum of their strengths."""

    neuron: Neuron
    units: int


async def column(visiting: Session, concept: str, words: int = 16, leads: int = 4) -> Column:
    """Return a noun's column; it has no words if the swarm never learned the noun.

    At most `words` words are returned, each with at most `leads` words that it leads to.
    Raises Unreachable if no holder of one of the column's shards answers. If the session puts
    all reads to a vote, the owners vote on the list of words, too; then Unreachable is also raised
    if no majority of the replicas answers.
    """
    spec = visiting.manifest.spec
    columns = traits_of(spec.profile).column_names(concept, spec)
    name, number, listed = "", 0, _Listed([], False)
    for name in columns:
        number = word_id(name)
        listed = await _features(visiting, number)
        if any(listed.lists):
            break
    else:
        name = columns[0]
    # The most frequent words of the column are among those of its blocks.
    some = dict.fromkeys(feature for one in listed.lists for feature in one[:words])
    rows = await visiting.rows([Neuron(number, feature) for feature in some])
    found = sorted((row for row in rows if row), key=lambda row: -row.count)[:words]
    targets = [strongest_of(row, leads) for row in found]
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
    return Column(name, len(set().union(*listed.lists)), shown, listed.is_cut)


async def _features(visiting: Session, concept: int) -> _Listed:
    """Return a column's features: a list for each block or, if owners vote, for each owner."""
    layout = visiting.around.rules.layout
    shards = shards_of(layout, concept)
    if visiting.verify.all:
        voted = [await _elected(visiting, shard, concept) for shard in shards]
        lists = [one for each in voted for one in each.lists]
        found = _Listed(lists, any(each.is_cut for each in voted))
    else:
        found = _Listed.of([await _told(visiting, shard, concept) for shard in shards])
    if visiting.around.rules.layout != layout:  # a list may cover only half of a divided shard
        return await _features(visiting, concept)
    return found


def shards_of(layout: Layout, concept: int) -> list[int]:
    """Return the shards that hold the blocks of a concept's column."""
    # The hash of a feature determines its block, so enough features hit every block.
    features = np.arange(64 * layout.blocks, dtype=np.uint64) if layout.blocks > 1 else [PRIME]
    many = np.array(features, np.uint64)
    shards = layout.shards_of(np.full(len(many), concept, np.uint64), many)
    return sorted({*shards.tolist()})


async def _told(visiting: Session, shard: int, concept: int) -> tuple[int, ...]:
    """Ask the holders of a shard for a column's features, in turn; return the first answer."""
    faults: list[str] = []
    for peer in await _serving(visiting, shard):
        told = await _said(visiting, peer, concept)
        if isinstance(told, tuple):
            return told
        faults.append(told)
    why = "; ".join(faults) or f"no peer has served it for {_PATIENCE:g} s"
    raise Unreachable(
        f"no peer returned the column's words in shard {shard} ({why}); see `giaann status`"
    )


async def _serving(visiting: Session, shard: int) -> list[Peer]:
    """Return the peers that serve a shard; wait a while for the first one, as reads of rows do."""
    clock = asyncio.get_running_loop().time
    until = clock() + _PATIENCE
    while clock() < until:
        if peers := visiting.around.ready(shard, visiting.lookout.time()):
            return peers
        await asyncio.sleep(_LOOK_EVERY)
    return []


async def _elected(visiting: Session, shard: int, concept: int) -> _Listed:
    """Ask all owners of a shard for a column's features; return one list for each answer.

    The lists contain only features that a majority of the replicas named.
    """
    placement = visiting.around.placement(visiting.lookout.time())
    owners, need = placement.owners(shard), majority(placement.replicas)
    answers = await asyncio.gather(*(_said(visiting, peer, concept) for peer in owners))
    told = [answer for answer in answers if isinstance(answer, tuple)]
    if len(told) < need:
        faults = [answer for answer in answers if isinstance(answer, str)]
        why = "; ".join(faults) or "the others are absent"
        raise Unreachable(
            f"only {len(told)} of the {placement.replicas} replicas of shard {shard} returned the"
            f" column's words, but {need} must agree ({why}); see `giaann status`, then try again"
        )
    named = Counter(feature for one in told for feature in set(one))
    lists = [tuple(feature for feature in one if named[feature] >= need) for one in told]
    return _Listed(lists, _Listed.of(told).is_cut)


async def _said(visiting: Session, peer: Peer, concept: int) -> tuple[int, ...] | str:
    """Return a column's features at a peer, most frequent first; an error message if it fails."""
    question = encode(AskColumn(struct.pack("<Q", concept)))
    try:
        data = await visiting.place.transport.call(peer, question, timeout=_WITHIN)
        answer = decode(data)
        if isinstance(answer, Told):
            return _numbers(answer.features)
        raise MessageError(answer.reason if isinstance(answer, Refusal) else "unexpected answer")
    except PeerError as error:
        return f"{name_of(peer)}: {error}"


def _numbers(data: bytes) -> tuple[int, ...]:
    """Return the ids in an answer; MessageError if its length is not a multiple of 8 bytes."""
    if len(data) % _NUMBER:
        raise MessageError(f"{len(data)} bytes are not a whole number of {_NUMBER}-byte ids")
    return struct.unpack(f"<{len(data) // _NUMBER}Q", data)


def strongest_of(row: Row, most: int) -> list[Target]:
    """Return the neurons to which a row leads most strongly, at most `most` of them."""
    total = np.bincount(row.target, row.strength, len(row.target_concept)).astype(np.int64)
    best = np.argsort(-total, kind="stable")[:most]
    fields = (row.target_concept[best], row.target_feature[best], total[best])
    triples = zip(*(field.tolist() for field in fields), strict=True)
    return [Target(Neuron(concept, feature), units) for concept, feature, units in triples]


async def _names(visiting: Session, neurons: Iterable[Neuron]) -> dict[Neuron, Name]:
    """Return the names of neurons, read from their rows; neurons without a row are left out."""
    wanted = list(Counter(neurons))
    rows = await visiting.rows(wanted) if wanted else []
    return {neuron: row.name for neuron, row in zip(wanted, rows, strict=True) if row}


def _leads(target: Target, names: dict[Neuron, Name]) -> Leads:
    concept, feature = names[target.neuron]
    return Leads(concept, feature, round(target.units / UNITS, 4))
