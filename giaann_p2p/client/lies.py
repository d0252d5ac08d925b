"""Reports of peers that were found to return wrong rows, as plain values for users."""

import msgspec

from giaann_p2p.model.rows import Row
from giaann_p2p.swarm.reading.disputes import Lied
from giaann_p2p.swarm.wire.identity import name_of


class ToldRow(msgspec.Struct, frozen=True):
    """A row, as a peer returned it for a word."""

    occurrences: int
    connections: int


class Lie(msgspec.Struct, frozen=True):
    """A storage peer's row that differs from that of most owners of its shard."""

    peer: str
    shard: int
    concept: str
    """The noun in whose column the word is."""
    feature: str | None
    """The word within the column; None for the noun itself."""
    told: ToldRow | None
    """The peer's first answer; None: there is no such word."""
    true: ToldRow | None
    """The answer of the other owners. It may have the same counts and differ in targets or
    strengths."""
    behind: bool
    """Whether the peer's row is correct but incomplete."""


def lie_of(found: Lied) -> Lie:
    """Return a reader's finding as a plain value."""
    row = found.true or found.told
    concept, feature = row.name if row else (f"concept {found.neuron.concept:016x}", None)
    told, true = _told(found.told), _told(found.true)
    return Lie(name_of(found.peer), found.shard, concept, feature, told, true, found.behind)


def _told(row: Row | None) -> ToldRow | None:
    return ToldRow(row.count, len(row.strength)) if row else None
