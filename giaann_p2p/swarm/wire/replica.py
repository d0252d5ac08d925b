"""The state machine of one replica: a shard at one storage peer.

1. A shard that placement assigns to this peer starts empty and *syncing*: it accepts updates at
   once, but serves no reads.
2. It becomes *ready* once it has all the chunks of a recent report by a ready replica. If there is
   no ready replica, because all are new or all come back from an outage, it becomes ready once a
   quorum of its owners is present and it has all the chunks of each of them.
3. A ready shard that placement assigns to other peers is *draining*: it still serves reads and
   accepts updates, because some readers and writers do not know of the change yet.
4. A replica is released only when placement does not want it here, all its owners have proved in
   the last minute that they hold its content (see `handover_proof`), and a quorum of them report
   now that they are ready with every chunk that is here. A draining shard waits longer than such a
   report is valid, so peers can never all release it relying on each other. One without chunks
   needs no proof, and does not wait if all its owners report that they are ready.
5. It is released only once all its owners have standing (see `standing`), and then leaves memory
   but not the disk (see `cold_copies`).
6. A cold copy is *offered* when too few other peers have the shard: it is syncing, though placement
   does not want it here.
7. After a restart, shards on the disk are *syncing*, with the chunks that the disk has.

Any other transition is a bug, and raises an error.
"""

from enum import Enum


class ReplicaState(Enum):
    """The state of a shard at one storage peer; the values are the letters used in messages."""

    ABSENT = "a"
    SYNCING = "s"
    READY = "r"
    DRAINING = "d"

    def __init__(self, letter: str) -> None:
        self.letter = letter
        """The member's value as a plain attribute, because an enum's `value` is slow to look up."""
        self.serves = letter in ("r", "d")
        """Whether the replica's rows may be read."""

    __hash__ = object.__hash__  # members are singletons; the default hash, by name, is 10x slower


SERVING = frozenset(state.letter.encode() for state in ReplicaState if state.serves)
"""The letters, as they stand in messages, of the states in which a replica's rows may be read."""


class Turn(Enum):
    """An event that changes the state of a replica."""

    WANTED = "wanted"
    CAUGHT_UP = "caught up"
    UNWANTED = "unwanted"
    COVERED = "covered"
    OFFERED = "offered"


_NEXT = {
    (ReplicaState.ABSENT, Turn.WANTED): ReplicaState.SYNCING,
    (ReplicaState.ABSENT, Turn.OFFERED): ReplicaState.SYNCING,
    (ReplicaState.SYNCING, Turn.CAUGHT_UP): ReplicaState.READY,
    (ReplicaState.SYNCING, Turn.COVERED): ReplicaState.ABSENT,
    (ReplicaState.READY, Turn.UNWANTED): ReplicaState.DRAINING,
    (ReplicaState.DRAINING, Turn.WANTED): ReplicaState.READY,
    (ReplicaState.DRAINING, Turn.COVERED): ReplicaState.ABSENT,
}


def turned(state: ReplicaState, turn: Turn) -> ReplicaState:
    """Return a replica's state after an event; ValueError if the event cannot happen in `state`."""
    try:
        return _NEXT[state, turn]
    except KeyError:
        raise ValueError(f"a shard that is {state.name.lower()} cannot be {turn.value}") from None
