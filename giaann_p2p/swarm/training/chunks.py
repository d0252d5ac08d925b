"""What each chunk of a job is, and what it can become: the table `MOVES`.

A text is read while it is learned: the chunks grow in number until they have ended. One that was
not read yet waits, unless it is known already that it is committed.
"""

from collections.abc import Iterable
from enum import Enum

from pyroaring import BitMap

from giaann_p2p.errors import MessageError, UsageError
from giaann_p2p.store.applied import WITHDRAWN


class State(Enum):
    """What a chunk is."""

    WAITING = "waiting"
    LEASED = "leased"
    COMMITTED = "committed"
    FAILED = "failed"


class Event(Enum):
    """What happens to a chunk."""

    LEASE = "leased"
    RETURN = "returned"
    COMMIT = "committed"
    GIVE_UP = "given up"


MOVES = {
    State.WAITING: {
        Event.LEASE: State.LEASED,
        Event.COMMIT: State.COMMITTED,
        Event.GIVE_UP: State.FAILED,
    },
    State.LEASED: {
        Event.LEASE: State.LEASED,
        Event.RETURN: State.WAITING,
        Event.COMMIT: State.COMMITTED,
        Event.GIVE_UP: State.FAILED,
    },
    State.FAILED: {Event.COMMIT: State.COMMITTED},
    State.COMMITTED: dict[Event, State](),
}


class Chunks:
    """Those of one job."""

    def __init__(self, committed: Iterable[int]) -> None:
        self._sets = {state: BitMap() for state in State}
        self._sets[State.COMMITTED] |= BitMap(committed)
        self._read = 0
        self._ended = False

    def __repr__(self) -> str:
        return f"<Chunks: {self.told}>"

    @property
    def told(self) -> str:
        """How many are what."""
        counts = ", ".join(f"{len(self._sets[state]):,} {state.value}" for state in State)
        return counts if self._ended else f"{counts}, more to come"

    @property
    def settled(self) -> bool:
        """Whether all are committed or failed, and no more will come."""
        return self._ended and not (self._sets[State.WAITING] or self._sets[State.LEASED])

    def all(self, state: State) -> BitMap:
        """Return those in a state, to be kept; committed ones may be beyond what was read."""
        return self._sets[state].copy()

    def state(self, chunk: int) -> State:
        """Return what a chunk is."""
        found = (state for state, chunks in self._sets.items() if chunk in chunks)
        return next(found, State.WAITING)

    def check(self, chunk: int) -> None:
        """MessageError if there can be no such chunk."""
        if not 0 <= chunk < (self._read if self._ended else WITHDRAWN):
            raise MessageError(f"chunk: there is no {chunk}, the job has {self._read} by now")

    def grow(self, chunks: int) -> BitMap:
        """Take in that there are so many by now; return those that wait since."""
        if chunks < self._read or self._ended:
            raise UsageError(f"a job of {self._read} chunks cannot become one of {chunks}")
        new = BitMap(range(self._read, chunks)) - self._sets[State.COMMITTED]
        self._read = chunks
        self._sets[State.WAITING] |= new
        return new

    def end(self) -> None:
        """Take in that no more will come."""
        self._ended = True

    def move(self, chunk: int, event: Event) -> None:
        """Let something happen to a chunk; UsageError if it cannot."""
        state = self.state(chunk)
        if event not in MOVES[state]:
            raise UsageError(f"chunk {chunk} is {state.value}: it cannot be {event.value}")
        self._sets[state].discard(chunk)
        self._sets[MOVES[state][event]].add(chunk)
