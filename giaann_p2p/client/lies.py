"""Wrong rows that storage peers returned, as plain values for users."""

import msgspec

from giaann_p2p.model.rows import Row
from giaann_p2p.swarm.reading.disputes import Lied
from giaann_p2p.swarm.wire.identity import name_of


class ToldRow(msgspec.Struct, frozen=True):
    """The size of the row that a peer returned for a word."""

    occurrences: int
    connections: int


class Lie(msgspec.Struct, frozen=True):
    """A wrong row: the peer that returned it differs from most owners of the row's shard."""

    peer: str
    shard: int
    concept: str
    """The noun whose column contains the word."""
    feature: str | None
    """The word beside that noun; None if the row is that of the noun itself."""
    told: ToldRow | None
    """The peer's first answer; None if it said that there is no such row."""
    true: ToldRow | None
    """The answer of the other owners; None if they have no such row. It may have the same counts as
    `told`, and differ only in targets or strengths."""
    behind: bool
    """Whether the peer's row is merely incomplete, and correct in all that it contains."""


def lie_of(found: Lied) -> Lie:
    """Convert the outcome of a reader's dispute to a plain value."""
    row = found.true or found.told
    concept, feature = row.name if row else (f"concept {found.neuron.concept:016x}", None)
    told, true = _told(found.told), _told(found.true)
    return Lie(name_of(found.peer), found.shard, concept, feature, told, true, found.behind)


def _told(row: Row | None) -> ToldRow | None:
    return ToldRow(row.count, len(row.strength)) if row else None
