"""The state machine of a job's chunks; the table `MOVES` lists the transitions.

A text is read while it is learned, so the number of chunks grows until the end of the text. A chunk
that has not been read yet counts as waiting, unless it is already known to be committed. How many
sentences make a chunk is part of the model: `CHUNK` in `model.spec`.
"""

from collections.abc import Iterable
from enum import Enum

from pyroaring import BitMap

from giaann_p2p.errors import MessageError, UsageError
from giaann_p2p.store.applied import WITHDRAWN


class ChunkState(Enum):
    """The state of a chunk of a job; only `WAITING` and `LEASED` chunks are still to be learned."""

    WAITING = "waiting"
    LEASED = "leased"
    COMMITTED = "committed"
    FAILED = "failed"


class Event(Enum):
    """An event that changes a chunk's state."""

    LEASE = "leased"
    RETURN = "returned"
    COMMIT = "committed"
    GIVE_UP = "given up"


MOVES = {
    ChunkState.WAITING: {
        Event.LEASE: ChunkState.LEASED,
        Event.COMMIT: ChunkState.COMMITTED,
        Event.GIVE_UP: ChunkState.FAILED,
    },
    ChunkState.LEASED: {
        Event.LEASE: ChunkState.LEASED,
        Event.RETURN: ChunkState.WAITING,
        Event.COMMIT: ChunkState.COMMITTED,
        Event.GIVE_UP: ChunkState.FAILED,
    },
    ChunkState.FAILED: {Event.COMMIT: ChunkState.COMMITTED},
    ChunkState.COMMITTED: dict[Event, ChunkState](),
}


class Chunks:
    """The state of each chunk of one job. Invariant: a chunk is in at most one of `_sets`."""

    def __init__(self, committed: Iterable[int]) -> None:
        self._sets = {state: BitMap() for state in ChunkState}
        self._sets[ChunkState.COMMITTED] |= BitMap(committed)
        self._read = 0
        self._ended = False

    def __repr__(self) -> str:
        return f"<Chunks: {self.told}>"

    @property
    def told(self) -> str:
        """The number of chunks in each state, as text for people."""
        counts = ", ".join(f"{len(self._sets[state]):,} {state.value}" for state in ChunkState)
        return counts if self._ended else f"{counts}, more to come"

    @property
    def settled(self) -> bool:
        """Whether all chunks are committed or failed, and no more will come."""
        return self._ended and not (self._sets[ChunkState.WAITING] or self._sets[ChunkState.LEASED])

    def all(self, state: ChunkState) -> BitMap:
        """Return a copy of the set of chunks in a state.

        Committed chunks may include some that have not been read yet.
        """
        return self._sets[state].copy()

    def state(self, chunk: int) -> ChunkState:
        """Return the state of a chunk; one not read yet is waiting, unless it is committed."""
        found = (state for state, chunks in self._sets.items() if chunk in chunks)
        return next(found, ChunkState.WAITING)

    def check(self, chunk: int) -> None:
        """Raise MessageError if the job cannot have a chunk with this number."""
        if not 0 <= chunk < (self._read if self._ended else WITHDRAWN):
            raise MessageError(
                f"chunk {chunk} is not part of the job, which has {self._read} so far"
            )

    def grow(self, chunks: int) -> BitMap:
        """Extend the job to `chunks` chunks in all; return the new chunks not committed yet."""
        if chunks < self._read or self._ended:
            raise UsageError(f"a job of {self._read} chunks cannot be extended to {chunks}")
        new = BitMap(range(self._read, chunks)) - self._sets[ChunkState.COMMITTED]
        self._read = chunks
        self._sets[ChunkState.WAITING] |= new
        return new

    def end(self) -> None:
        """Mark the end of the text: no more chunks will come."""
        self._ended = True

    def move(self, chunk: int, event: Event) -> None:
        """Apply an event to a chunk; UsageError if its state does not allow it."""
        state = self.state(chunk)
        if event not in MOVES[state]:
            raise UsageError(f"chunk {chunk} is {state.value}: it cannot be {event.value}")
        self._sets[state].discard(chunk)
        self._sets[MOVES[state][event]].add(chunk)
