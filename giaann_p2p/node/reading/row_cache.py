"""Rows for prompts: kept for a while, read together, and read ahead on a guess.

1. A row counts as it was when it was read less than `fresh` seconds ago; an older one is read anew.
   Its name never changes, however old it is.
2. What prompts ask for within one turn of the loop goes into one read; who asks for what is on its
   way already waits for that.
3. Guesses go behind, in a read of their own; only so many are on their way, and more are dropped.
   So they hold up nothing that is asked for, and push out nothing that is in use (`row_shelf`).
4. A read is as late as the latest of its rows. Who has waited long for others' asks alone: that one
   shard is lost stops nobody but who needs it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from giaann_p2p.errors import GiaannError
from giaann_p2p.model.rows import Answer, Neuron, Question, Row
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.calls import fail
from giaann_p2p.node.row_shelf import RowShelf, size_of

_FRESH = 1.0
_MOST_GUESSES = 256
"""On their way at the same time."""
_LATE, _GUESS_LATE = 1.0, 0.1
"""Seconds after which what is on its way with others' rows is asked for alone."""
_CLOSED = "no more rows are read here, for this peer ends; ask another one"

Read = Callable[[Sequence[Neuron]], Awaitable[Answer]]


@dataclass
class RowCounters:
    """What rows came to so far."""

    asked: int = 0
    """Rows that prompts asked for."""
    kept: int = 0
    """Of these: were here."""
    shared: int = 0
    """Of these: were on their way already."""
    alone: int = 0
    """Of these: were late with others, and asked for again."""
    reads: int = 0
    """Reads of what was asked for, however many rows each."""
    guesses: int = 0
    """Rows that were read ahead."""
    guessed_right: int = 0
    """Of these: were asked for later."""
    guess_reads: int = 0
    guesses_dropped: int = 0
    """Were not read, for too many were on their way."""
    renewed: int = 0
    """Rows that were here, but too old."""


@dataclass
class Bill:
    """What one prompt's rows came to, to be added up by whoever asks."""

    rows: int = 0
    kept: int = 0
    """Rows for which nobody had to be waited for."""
    trips: int = 0
    """Questions for which somebody had to be."""
    nbytes: int = 0
    """Bytes that came for it, its guesses' too."""
    waited: float = 0.0
    """Seconds, for those questions."""


class _Flight:
    """Rows on their way."""

    def __init__(self, guess: bool) -> None:
        self.guess = guess
        self.bills: dict[Neuron, Bill] = {}
        """Who pays for each of its neurons: who asked for it first."""
        self.asked: set[Neuron] = set()
        """Of a flight of guesses, those that somebody asked for since."""
        self.rows: dict[Neuron, Row | None] = {}
        self.error: BaseException | None = None
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class RowCache:
    """See the module. `received` tells how many bytes have come for reads so far."""

    def __init__(
        self,
        read: Read,
        most_bytes: int,
        *,
        fresh: float = _FRESH,
        received: Callable[[], int] = lambda: 0,
    ) -> None:
        self.counters, self.shelf = RowCounters(), RowShelf(most_bytes)
        self._read, self._fresh, self._received = read, fresh, received
        self._paid = 0  # of the bytes received
        self._coming: dict[Neuron, _Flight] = {}
        self._wanted: _Flight | None = None  # waits for the end of the turn
        self._guessed: _Flight | None = None
        self._guesses_out = 0
        self._departing = False
        self._flying: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<RowCache: {self.shelf!r}, {len(self._coming)} coming>"

    @property
    def wasted(self) -> int:
        """Rows that were read ahead for nothing."""
        return self.shelf.wasted

    async def rows(self, question: Question, bill: Bill | None = None) -> Answer:
        """Return rows in the order asked for; what the read raises if they cannot be had."""
        bill = Bill() if bill is None else bill
        now = asyncio.get_running_loop().time()
        found: dict[Neuron, Row | None] = {}
        flights: dict[_Flight, list[Neuron]] = {}
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
        """Tell whether rows are all here."""
        now = asyncio.get_running_loop().time()
        all_kept = map(self.shelf.look, question.neurons)
        return all(kept and now - kept.read <= self._fresh for kept in all_kept)

    def ahead(self, neurons: Iterable[Neuron], bill: Bill | None = None) -> None:
        """Read rows that may be asked for soon."""
        now = asyncio.get_running_loop().time()
        for neuron in neurons:
            kept = self.shelf.look(neuron)
            if neuron in self._coming or (kept and now - kept.read <= self._fresh / 2):
                continue
            if self._guesses_out >= _MOST_GUESSES:
                self.counters.guesses_dropped += 1
                continue
            self._guessed = self._guessed or _Flight(guess=True)
            self._guesses_out += 1
            self._take_on(self._guessed, neuron, Bill() if bill is None else bill)
            self.counters.guesses += 1

    async def close(self) -> None:
        """Read no more; return when no task is left."""
        for task in self._flying:
            task.cancel()
        await asyncio.gather(*self._flying, return_exceptions=True)

    async def _from(
        self, flight: _Flight, neurons: list[Neuron], bill: Bill
    ) -> dict[Neuron, Row | None]:
        """Return what a flight brings; if it is late, fetch that much alone."""
        patience = _GUESS_LATE if flight.guess else _LATE
        await asyncio.wait([flight.over], timeout=patience)
        if not flight.over.done():
            self.counters.alone += len(neurons)
            flight = _Flight(guess=False)
            for neuron in neurons:
                flight.bills[neuron] = bill
                self._coming[neuron] = flight
            self._send(flight)
            await asyncio.wait([flight.over])
        if flight.error is not None:
            raise flight.error
        return {neuron: flight.rows[neuron] for neuron in neurons}

    def _flight_for(self, neuron: Neuron, bill: Bill) -> _Flight:
        """Return the flight that brings a row: that on which it is, or the next."""
        flight = self._coming.get(neuron)
        if flight is not None and flight is not self._guessed:
            self.counters.shared += 1
            if flight.guess and neuron not in flight.asked:
                flight.asked.add(neuron)
                self.counters.guessed_right += 1
            return flight
        if flight is not None:  # a guess that has not departed: it goes in front now
            del flight.bills[neuron]
            self._guesses_out -= 1
            self.counters.guesses -= 1
        self._wanted = self._wanted or _Flight(guess=False)
        self._take_on(self._wanted, neuron, bill)
        return self._wanted

    def _take_on(self, flight: _Flight, neuron: Neuron, bill: Bill) -> None:
        flight.bills[neuron] = bill
        self._coming[neuron] = flight
        if not self._departing:
            self._departing = True
            asyncio.get_running_loop().call_soon(self._depart)

    def _depart(self) -> None:
        """Send off what was asked for in this turn, then the guesses."""
        self._departing = False
        for flight in (self._wanted, self._guessed):
            if flight is not None and flight.bills:
                self._send(flight)
        self._wanted = self._guessed = None

    def _send(self, flight: _Flight) -> None:
        task = asyncio.get_running_loop().create_task(self._fly(flight))
        self._flying.add(task)
        task.add_done_callback(partial(self._landed, flight))

    async def _fly(self, flight: _Flight) -> None:
        began = asyncio.get_running_loop().time()
        neurons = list(flight.bills)
        self.counters.reads += not flight.guess
        self.counters.guess_reads += flight.guess
        rows = await self._read(neurons)
        self._share_out(flight, neurons, rows)
        for neuron, row in zip(neurons, rows, strict=True):
            guess = flight.guess and neuron not in flight.asked
            self.shelf.put(neuron, row, began, guess=guess)
            flight.rows[neuron] = row

    def _share_out(self, flight: _Flight, neurons: list[Neuron], rows: Answer) -> None:
        """Charge the bytes that came since the last time, by the rows' sizes."""
        came, self._paid = self._received() - self._paid, self._received()
        sizes = list(map(size_of, rows))
        for neuron, size in zip(neurons, sizes, strict=True):
            flight.bills[neuron].nbytes += came * size // sum(sizes)

    def _landed(self, flight: _Flight, task: asyncio.Task[None]) -> None:
        self._flying.discard(task)
        self._guesses_out -= len(flight.bills) if flight.guess else 0
        for neuron in flight.bills:
            if self._coming.get(neuron) is flight:
                del self._coming[neuron]
        flight.error = Unreachable(_CLOSED) if task.cancelled() else task.exception()
        flight.over.set_result(None)
        if flight.error is not None and not isinstance(flight.error, GiaannError):
            fail([], flight.error)
