"""The life of one shard at one storage peer, as a table.

The rules:

1. A shard that placement gives to this peer begins empty and *syncing*: it takes updates in at
   once, but answers no reads.
2. It is *ready* once it has all the chunks that a ready replica had a moment ago. Where there is
   none, because all are new or all come back from an outage, it is once a quorum of its owners
   are there and it has all the chunks of each of them.
3. A ready shard that placement gives to others is *draining*: it still serves and takes in, for
   some readers and writers do not know yet.
4. What is held is let go only when it is not wanted here, and every one of its owners, a quorum at
   least, has said, a moment ago, that it is ready and has every chunk that is here, and has shown
   that it holds what these chunks come to (see `proving`). A draining shard waits for longer than
   such a word counts, so that two peers can never let go of it trusting in each other.
5. After a restart what the disk holds is *syncing*, as much of it as there is.

Anything else is a mistake, and says so.
"""

from enum import Enum


class State(Enum):
    """What a shard is to a peer; the values are the letters that travel."""

    ABSENT = "a"
    SYNCING = "s"
    READY = "r"
    DRAINING = "d"

    def __init__(self, letter: str) -> None:
        self.letter = letter
        """The value: an enum looks its own up anew each time."""
        self.serves = letter in ("r", "d")
        """Whether its rows may be read."""

    __hash__ = object.__hash__  # there is one object of each; by name it takes ten times as long


class Turn(Enum):
    """What can happen to a shard."""

    WANTED = "wanted"
    CAUGHT_UP = "caught up"
    UNWANTED = "unwanted"
    COVERED = "covered"


_NEXT = {
    (State.ABSENT, Turn.WANTED): State.SYNCING,
    (State.SYNCING, Turn.CAUGHT_UP): State.READY,
    (State.SYNCING, Turn.COVERED): State.ABSENT,
    (State.READY, Turn.UNWANTED): State.DRAINING,
    (State.DRAINING, Turn.WANTED): State.READY,
    (State.DRAINING, Turn.COVERED): State.ABSENT,
}


def turned(state: State, turn: Turn) -> State:
    """Return what a shard is after something happened to it."""
    try:
        return _NEXT[state, turn]
    except KeyError:
        raise ValueError(f"a shard that is {state.name.lower()} cannot be {turn.value}") from None
