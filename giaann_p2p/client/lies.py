"""Peers that were found to tell wrong rows: plain values, for whoever has read them."""

import msgspec

from giaann_p2p.model.rows import Row
from giaann_p2p.swarm.disputes import Lied
from giaann_p2p.swarm.identity import name_of


class Told(msgspec.Struct, frozen=True):
    """What was said of a word."""

    occurrences: int
    connections: int


class Lie(msgspec.Struct, frozen=True):
    """A storage peer's row that is not what most of its shard's owners say."""

    peer: str
    shard: int
    concept: str
    """The word in question: its noun,"""
    feature: str | None
    """and which of its column it is; None for the noun itself."""
    told: Told | None
    """What the peer said first; None that there is no such word."""
    true: Told | None
    """What the others say. It may be as many, and lead elsewhere or be stronger."""
    behind: bool
    """Whether all that is wrong is that something is missing."""


def lie_of(found: Lied) -> Lie:
    """Return what a reader has found out."""
    row = found.true or found.told
    concept, feature = row.name if row else (f"concept {found.neuron.concept:016x}", None)
    told, true = _told(found.told), _told(found.true)
    return Lie(name_of(found.peer), found.shard, concept, feature, told, true, found.behind)


def _told(row: Row | None) -> Told | None:
    return Told(row.count, len(row.strength)) if row else None
