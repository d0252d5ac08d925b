"""A cache of rows for prompts that batches reads, and prefetches rows speculatively.

1. A row is served from the cache if it was read less than `fresh` seconds ago; an older one is read
   again, but a long row is not sent again unless it has changed. A row's name never changes, so a
   question for names is served by a cached row of any age.
2. All rows that prompts ask for within one turn of the loop go into one read. A row that is being
   read or prefetched already is not requested again: the words of a prompt, which are prefetched
   together and asked for one by one, are one read.
3. Prefetched rows, called guesses, go into a read of their own, sent after the requested rows.
   Guesses beyond a bound on those in flight are dropped. So guesses delay no requested row, and
   they evict no row in use (see `row_shelf`).
4. A read takes as long as its slowest row. A prompt that has waited too long for a read shared with
   others requests its own rows alone, so a lost shard stalls only the prompts that need it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from giaann_p2p.errors import GiaannError
from giaann_p2p.model.rows import Answer, Neuron, Question, Row
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.calls import fail
from giaann_p2p.node.reading.row_shelf import RowShelf, size_of

_FRESH = 1.0
"""Age up to which a cached row is served without being read again, in seconds."""
_MOST_GUESSES = 256
"""Maximum number of prefetched rows in flight; each part of a cut column's row counts."""
_LATE, _GUESS_LATE = 1.0, 0.1
"""Seconds that a prompt waits for a shared read, or a prefetch, before it reads its rows alone."""
_CLOSED = "this peer is ending, and reads no more rows; ask another one"

Read = Callable[[Sequence[Neuron], Mapping[Neuron, Row]], Awaitable[Answer]]
"""A function that reads the rows of some neurons from their owners. The mapping has known rows,
which are not sent again if they have not changed."""


@dataclass
class RowCounters:
    """Totals of a row cache."""

    asked: int = 0
    """Number of rows that prompts asked for."""
    kept: int = 0
    """Number of requested rows that were served from the cache."""
    shared: int = 0
    """Number of requested rows that were being read already."""
    alone: int = 0
    """Number of requested rows that were late in a shared read and were requested again."""
    reads: int = 0
    """Number of reads of requested rows, whatever the number of rows in each."""
    guesses: int = 0
    """Number of rows that were prefetched."""
    guessed_right: int = 0
    """Number of prefetched rows that were asked for later."""
    renewed: int = 0
    """Number of cached rows that were too old when requested, and were read again."""


@dataclass
class Bill:
    """The cost of the rows that a prompt used in one step of its answer, such as one token."""

    rows: int = 0
    """Number of rows asked for."""
    kept: int = 0
    """Number of rows served from the cache."""
    trips: int = 0
    """Number of questions that had to wait for a read."""
    nbytes: int = 0
    """Bytes received for the prompt, including its prefetched rows."""
    waited: float = 0.0
    """Seconds that the prompt waited for rows."""


class _BatchRead:
    """A read of rows that is in flight or about to be sent."""

    def __init__(self, guess: bool) -> None:
        self.guess = guess
        """Whether the rows are prefetched."""
        self.guesses = 0
        """Number of prefetched rows, counting parts."""
        self.is_wanted = not guess
        """Whether a prompt asked for one of the rows before the read was sent."""
        self.bills: dict[Neuron, Bill] = {}
        """The bill that each neuron's row is charged to: that of the first prompt to ask for it."""
        self.asked: set[Neuron] = set()
        """The prefetched neurons that prompts have asked for since; empty in other reads."""
        self.rows: dict[Neuron, Row | None] = {}
        self.error: BaseException | None = None
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class RowCache:
    """A cache of rows that `read` fetches, shared by all prompts.

    `received` returns the bytes that all reads have received so far. `fresh` is the age up to which
    a row is served without being read again, in seconds. `parts_of` returns the number of parts in
    which a neuron's row is read.
    """

    def __init__(
        self,
        read: Read,
        most_bytes: int,
        *,
        fresh: float = _FRESH,
        received: Callable[[], int] = lambda: 0,
        parts_of: Callable[[Neuron], int] = lambda _: 1,
    ) -> None:
        self.counters, self.shelf = RowCounters(), RowShelf(most_bytes)
        self._parts_of = parts_of
        self._read, self._fresh, self._received = read, fresh, received
        self._paid = 0  # bytes received and already charged to bills
        self._coming: dict[Neuron, _BatchRead] = {}
        self._wanted: _BatchRead | None = None  # sent at the end of the loop's turn
        self._guessed: _BatchRead | None = None
        self._guesses_out = 0
        self._departing = False
        self._flying: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<RowCache: {self.shelf!r}, {len(self._coming)} coming>"

    @property
    def wasted(self) -> int:
        """Number of prefetched rows that were evicted without having been asked for."""
        return self.shelf.wasted

    async def rows(self, question: Question, bill: Bill | None = None) -> Answer:
        """Return a question's rows in the order asked for; raise any error of the read."""
        bill = Bill() if bill is None else bill
        now = asyncio.get_running_loop().time()
        found: dict[Neuron, Row | None] = {}
        flights: dict[_BatchRead, list[Neuron]] = {}
        for neuron in dict.fromkeys(question.neurons):
            kept, was_guess = self.shelf.take(neuron)
            self.counters.guessed_right += was_guess
            known = kept is not None and question.names_only and kept.row is not None
            if kept is not None and (known or now - kept.read <= self._fresh):
                found[neuron] = kept.row
            else:
                self.counters.renewed += kept is not None
                flights.setdefault(self._flight_for(neuron, bill), []).append(neuron)
        self.counters.asked += len(found) + sum(map(len, flights.values()))
        self.counters.kept += len(found)
        bill.rows += len(question.neurons)
        bill.kept += len(found)
        bill.trips += bool(flights)
        for flight, neurons in flights.items():
            found.update(await self._from(flight, neurons, bill))
        return [found[neuron] for neuron in question.neurons]

    def has(self, question: Question) -> bool:
        """Return whether all rows of a question are cached and fresh."""
        now = asyncio.get_running_loop().time()
        all_kept = map(self.shelf.look, question.neurons)
        return all(kept and now - kept.read <= self._fresh for kept in all_kept)

    def ahead(self, neurons: Iterable[Neuron], bill: Bill | None = None) -> None:
        """Prefetch the rows of neurons that may be asked for soon."""
        now = asyncio.get_running_loop().time()
        for neuron in neurons:
            kept = self.shelf.look(neuron)
            if neuron in self._coming or (kept and now - kept.read <= self._fresh / 2):
                continue
            size = min(_MOST_GUESSES, self._parts_of(neuron))
            if self._guesses_out + size > _MOST_GUESSES:
                continue
            self._guessed = self._guessed or _BatchRead(guess=True)
            self._guessed.guesses += size
            self._guesses_out += size
            self._take_on(self._guessed, neuron, Bill() if bill is None else bill)
            self.counters.guesses += 1

    async def close(self) -> None:
        """Cancel all reads; return when their tasks have ended."""
        for task in self._flying:
            task.cancel()
        await asyncio.gather(*self._flying, return_exceptions=True)

    async def _from(
        self, flight: _BatchRead, neurons: list[Neuron], bill: Bill
    ) -> dict[Neuron, Row | None]:
        """Return some rows of an unfinished read; if it is late, read these rows separately."""
        patience = _LATE if flight.is_wanted else _GUESS_LATE
        await asyncio.wait([flight.over], timeout=patience)
        if not flight.over.done():
            self.counters.alone += len(neurons)
            late, flight = flight, _BatchRead(guess=False)
            for neuron in neurons:
                flight.bills[neuron] = bill
                self._coming[neuron] = flight
            self._send(flight)
            await asyncio.wait([late.over, flight.over], return_when=asyncio.FIRST_COMPLETED)
            if late.over.done() and late.error is None:
                flight = late
            await asyncio.wait([flight.over])
        if flight.error is not None:
            raise flight.error
        return {neuron: flight.rows[neuron] for neuron in neurons}

    def _flight_for(self, neuron: Neuron, bill: Bill) -> _BatchRead:
        """Return the read that fetches a row: an unfinished one that includes it, or the next."""
        flight = self._coming.get(neuron)
        if flight is None:
            self._wanted = self._wanted or _BatchRead(guess=False)
            self._take_on(self._wanted, neuron, bill)
            return self._wanted
        self.counters.shared += 1
        flight.is_wanted |= flight is self._guessed  # it is not sent yet
        if flight.guess and neuron not in flight.asked:
            flight.asked.add(neuron)
            self.counters.guessed_right += 1
        return flight

    def _take_on(self, flight: _BatchRead, neuron: Neuron, bill: Bill) -> None:
        flight.bills[neuron] = bill
        self._coming[neuron] = flight
        if not self._departing:
            self._departing = True
            asyncio.get_running_loop().call_soon(self._depart)

    def _depart(self) -> None:
        """Send the read of the rows requested in this turn, then that of the prefetched rows."""
        self._departing = False
        for flight in (self._wanted, self._guessed):
            if flight is not None and flight.bills:
                self._send(flight)
        self._wanted = self._guessed = None

    def _send(self, flight: _BatchRead) -> None:
        task = asyncio.get_running_loop().create_task(self._fly(flight))
        self._flying.add(task)
        task.add_done_callback(partial(self._landed, flight))

    async def _fly(self, flight: _BatchRead) -> None:
        began = asyncio.get_running_loop().time()
        neurons = list(flight.bills)
        self.counters.reads += not flight.guess or bool(flight.asked)
        known = self._known(neurons)
        rows = await self._read(neurons, known)
        self._share_out(flight, neurons, rows, known)
        for neuron, row in zip(neurons, rows, strict=True):
            guess = flight.guess and neuron not in flight.asked
            flight.rows[neuron] = self.shelf.put(neuron, row, began, guess=guess)

    def _known(self, neurons: list[Neuron]) -> dict[Neuron, Row]:
        """Return the cached rows of some neurons, of whatever age."""
        kept = {neuron: self.shelf.look(neuron) for neuron in neurons}
        return {neuron: one.row for neuron, one in kept.items() if one is not None and one.row}

    def _share_out(
        self, flight: _BatchRead, neurons: list[Neuron], rows: Answer, known: Mapping[Neuron, Row]
    ) -> None:
        """Charge the bytes received since the last call to the rows' bills, by the rows' sizes.

        Known rows that were confirmed count as little as missing ones.
        """
        came, self._paid = self._received() - self._paid, self._received()
        pairs = zip(neurons, rows, strict=True)
        sizes = [size_of(None if known.get(neuron) is row else row) for neuron, row in pairs]
        for neuron, size in zip(neurons, sizes, strict=True):
            flight.bills[neuron].nbytes += came * size // sum(sizes)

    def _landed(self, flight: _BatchRead, task: asyncio.Task[None]) -> None:
        self._flying.discard(task)
        self._guesses_out -= flight.guesses
        for neuron in flight.bills:
            if self._coming.get(neuron) is flight:
                del self._coming[neuron]
        flight.error = Unreachable(_CLOSED) if task.cancelled() else task.exception()
        flight.over.set_result(None)
        if flight.error is not None and not isinstance(flight.error, GiaannError):
            fail([], flight.error)
