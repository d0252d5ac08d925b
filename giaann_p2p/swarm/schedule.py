"""Who learns which chunk of a job: what its coordinator decides.

A chunk is waiting, leased, committed or failed, and moves as the table `MOVES` says:

1. A waiting chunk is leased to a worker that has a slot free, as the policy picks them.
2. A heartbeat prolongs the leases that it names. A lease ends with silence, after `longest` seconds
   whatever the heartbeats say, or with its worker; when its last lease has ended, a chunk waits.
   A worker that fell silent, or declined a chunk, gets nothing until it is heard of.
3. Each time that a chunk's lease ran out, the next one is twice as long, up to 32 times.
4. When nothing waits, a chunk that takes twice as long as usual is leased to a second worker. Both
   may finish: its updates are applied at most once.
5. Done is done, whoever says so and whenever: after its lease, or after the chunk was given up.
6. A chunk that a worker reports as failed rests, longer each time, and then goes to a worker that
   has not failed on it while there is one. It has failed for good when that many different workers
   have failed on it, or twice that many times in all, or when very many lost it.
7. A worker that joins, or a heartbeat, may name a chunk that waits: it is leased to that worker,
   so a new coordinator finds out what its workers are at. What else is named without a lease is
   revoked. What is done counts even before the text was read that far.

A worker reports as failed what a chunk's text or its own machine brings about. If it cannot reach
the owners of shards it goes on trying, with heartbeats: no other worker would fare better.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

import msgspec
from pyroaring import BitMap

from giaann_p2p.errors import MessageError, UsageError

MOST_SLOTS = 256
_MOST_CHUNKS = 1 << 32
_MOST_REASON = 200
_MOST_DOUBLINGS = 5
_LATE = 2.0
"""Times the usual duration after which a chunk is leased to a second worker."""
_WEIGHT = 0.1
"""What the latest chunk counts for in the usual duration."""


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


class Pace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How patient a coordinator is."""

    lease: float = 10.0
    """Seconds of silence after which a chunk is given to another worker: a few heartbeats. Shorter
    finds the dead sooner, longer repeats less where the network stalls."""
    longest: float = 300.0
    """Seconds that a worker may keep a chunk, heartbeats or not; at least a lease. It frees what
    a worker hangs at that still sends heartbeats."""
    rest: float = 2.0
    """Seconds until a chunk that failed is leased again, doubled with each failure; 0: at once."""
    in_flight: int = 256
    """Leases at once, of all workers: bounds what a coordinator has to hold in memory."""
    failures: int = 3
    """Different workers on which a chunk fails before it is given up."""
    losses: int = 8
    """Different workers that fell silent or left with a chunk before it is given up, for it might
    be what kills them. Much more than failures: workers are killed for other reasons, too."""

    def __post_init__(self) -> None:
        if not 0 < self.lease <= self.longest:
            raise UsageError(f"0 < lease <= longest must hold; {self.lease} and {self.longest}")
        if self.rest < 0:
            raise UsageError(f"rest must be 0 or more; it is {self.rest}")
        for name in ("in_flight", "failures", "losses"):
            if (value := getattr(self, name)) < 1:
                raise UsageError(f"{name} must be 1 or more; it is {value}")


class Lease(NamedTuple):
    """Let a worker learn a chunk; it is to be heard of before `until`."""

    worker: bytes
    chunk: int
    until: float


class Revoke(NamedTuple):
    """Let a worker stop: the chunk is done, or somebody else's."""

    worker: bytes
    chunk: int


class GaveUp(NamedTuple):
    """A chunk has failed for good."""

    chunk: int
    reasons: tuple[str, ...]


class Finished(NamedTuple):
    """All chunks are committed, or failed for good. It is said once."""


Action = Lease | Revoke | GaveUp | Finished


class Policy(Protocol):
    """Decides which chunk comes next."""

    def pick(self, waiting: BitMap, busy: Collection[int]) -> int:
        """Return one of those that wait, of which there is at least one; `busy` are leased."""


@dataclass
class _Held:
    """A lease."""

    start: float
    until: float


@dataclass
class _Worker:
    slots: int
    heard: float
    silent: bool = False
    chunks: set[int] = field(default_factory=set)


@dataclass
class _Past:
    """What went wrong with a chunk."""

    lapses: int = 0
    losers: set[bytes] = field(default_factory=set)
    failed: list[bytes] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    rests_until: float = 0.0


class Schedule:
    """A job's chunks and workers. Every event returns what is to be done about it."""

    def __init__(
        self, policy: Policy, committed: Iterable[int] = (), pace: Pace | None = None
    ) -> None:
        self._policy = policy
        self._pace = pace or Pace()
        self._sets = {state: BitMap() for state in State}
        self._sets[State.COMMITTED] |= BitMap(committed)
        self._chunks = 0
        self._ended = self._finished = False
        self._workers: dict[bytes, _Worker] = {}
        self._idle: dict[bytes, None] = {}  # in the order in which they get their next chunk
        self._held: dict[int, dict[bytes, _Held]] = {}
        self._leases = 0
        self._fresh = BitMap()  # those that wait and never failed
        self._resting: dict[int, float] = {}  # those that wait and failed, until when
        self._past: dict[int, _Past] = {}
        self._usual = self._pace.lease
        self._now = float("-inf")  # all that was due by then was done

    def __repr__(self) -> str:
        told = ", ".join(f"{len(self.chunks(state)):,} {state.value}" for state in State)
        more = "" if self._ended else ", more to come"
        return f"<Schedule: {told}{more}; {len(self._workers):,} workers>"

    def chunks(self, state: State) -> BitMap:
        """Return the chunks in a state; committed ones may be beyond what was read so far."""
        return self._sets[state].copy()

    def state(self, chunk: int) -> State:
        """Return what a chunk is; one that was not read yet waits."""
        found = (state for state, chunks in self._sets.items() if chunk in chunks)
        return next(found, State.WAITING)

    @property
    def due(self) -> float | None:
        """When the next tick is due; None if only another event can change something."""
        times = [lease.until for leases in self._held.values() for lease in leases.values()]
        if self._idle and self._leases < self._pace.in_flight:
            later = [*self._resting.values(), *(at for at, _ in self._single())]
            times += [at for at in later if at > self._now]
        return min(times, default=None)

    def grown(self, chunks: int, now: float) -> list[Action]:
        """Take in that the job has so many chunks by now."""
        if chunks < self._chunks or self._ended:
            raise UsageError(f"a job of {self._chunks} chunks cannot become one of {chunks}")
        new = BitMap(range(self._chunks, chunks)) - self._sets[State.COMMITTED]
        self._chunks = chunks
        self._sets[State.WAITING] |= new
        self._fresh |= new
        return self._hand_out(now)

    def ended(self, now: float) -> list[Action]:
        """Take in that there are no more chunks."""
        self._ended = True
        return self._hand_out(now)

    def joined(
        self, worker: bytes, slots: int, now: float, chunks: Collection[int] = ()
    ) -> list[Action]:
        """Take in a worker that learns so many chunks at once, and is at some already.

        It joins again if its slots have changed, or if it does not know whether it was heard.
        """
        if not 1 <= slots <= MOST_SLOTS:
            raise MessageError(f"slots: a worker has 1 to {MOST_SLOTS}, not {slots}")
        self._check_all(chunks)
        self._workers.setdefault(worker, _Worker(slots, now)).slots = slots
        actions = self._at(worker, chunks, now)
        return [*actions, *self._hand_out(now)]

    def left(self, worker: bytes, now: float) -> list[Action]:
        """Take in that a worker is gone."""
        actions: list[Action] = []
        if worker in self._workers:
            for chunk in sorted(self._workers[worker].chunks):
                actions += self._lose(worker, chunk)
            del self._workers[worker]
            self._idle.pop(worker, None)
        return [*actions, *self._hand_out(now)]

    def heartbeat(self, worker: bytes, chunks: Collection[int], now: float) -> list[Action]:
        """Take in that a worker is there, and at some chunks."""
        self._check_all(chunks)
        if worker not in self._workers:
            return [Revoke(worker, chunk) for chunk in chunks]
        actions = self._at(worker, chunks, now)
        return [*actions, *self._hand_out(now)]

    def done(self, worker: bytes, chunk: int, now: float) -> list[Action]:
        """Take in that a chunk is committed."""
        self._check(chunk)
        if worker not in self._workers:
            return []
        actions: list[Action] = []
        if chunk >= self._chunks:
            self._sets[State.COMMITTED].add(chunk)
        elif self.state(chunk) is not State.COMMITTED:
            holders = self._held.get(chunk, {})
            if worker in holders:
                self._usual += _WEIGHT * (now - holders[worker].start - self._usual)
            actions += self._close(chunk, Event.COMMIT, worker)
            self._past.pop(chunk, None)
        self._hear(worker, now)
        return [*actions, *self._hand_out(now)]

    def failed(self, worker: bytes, chunk: int, reason: str, now: float) -> list[Action]:
        """Take in that a worker failed on a chunk that it had."""
        self._check(chunk)
        if worker not in self._held.get(chunk, {}):
            return []
        past = self._past.setdefault(chunk, _Past())
        past.failed.append(worker)
        past.reasons.append(reason[:_MOST_REASON])
        past.rests_until = now + self._pace.rest * 2 ** (len(past.failed) - 1)
        actions = self._return(worker, chunk)
        self._hear(worker, now)
        return [*actions, *self._hand_out(now)]

    def declined(self, worker: bytes, chunk: int, now: float) -> list[Action]:
        """Take in that a worker has no room: no fault of the chunk's, nor is the worker lost."""
        self._check(chunk)
        if worker not in self._held.get(chunk, {}):
            return []
        self._past.setdefault(chunk, _Past())
        self._workers[worker].silent = True  # it gets nothing until it is heard of
        return [*self._return(worker, chunk), *self._hand_out(now)]

    def tick(self, now: float) -> list[Action]:
        """Take in that time has passed."""
        lapsed = [
            (chunk, worker)
            for chunk, leases in self._held.items()
            for worker, lease in leases.items()
            if lease.until <= now
        ]
        actions: list[Action] = []
        for chunk, worker in lapsed:
            if chunk not in self._held:  # it was just given up, with another's lease on it
                continue
            self._past.setdefault(chunk, _Past()).lapses += 1
            actions.append(Revoke(worker, chunk))
            known = self._workers[worker]
            known.silent = known.heard <= now - self._pace.lease
            actions += self._lose(worker, chunk)
        return [*actions, *self._hand_out(now)]

    def _check_all(self, chunks: Collection[int]) -> None:
        if len(chunks) > MOST_SLOTS:
            raise MessageError(f"chunks: a worker is at {MOST_SLOTS} at most, not {len(chunks)}")
        for chunk in chunks:
            self._check(chunk)

    def _check(self, chunk: int) -> None:
        if not 0 <= chunk < (self._chunks if self._ended else _MOST_CHUNKS):
            raise MessageError(f"chunk: there is no {chunk}, the job has {self._chunks} by now")

    def _at(self, worker: bytes, chunks: Collection[int], now: float) -> list[Action]:
        """Take in what a worker is at."""
        self._hear(worker, now)
        actions: list[Action] = []
        for chunk in chunks:
            if lease := self._held.get(chunk, {}).get(worker):
                lease.until = self._until(chunk, lease.start, now)
            elif self._takes_up(worker, chunk):
                actions.append(self._lease(worker, chunk, now))
            else:
                actions.append(Revoke(worker, chunk))
        return actions

    def _move(self, chunk: int, event: Event) -> None:
        state = self.state(chunk)
        if event not in MOVES[state]:
            raise UsageError(f"chunk {chunk} is {state.value}: it cannot be {event.value}")
        self._sets[state].discard(chunk)
        self._sets[MOVES[state][event]].add(chunk)

    def _hear(self, worker: bytes, now: float) -> None:
        self._workers[worker].heard = now
        self._workers[worker].silent = False
        self._queue(worker)

    def _queue(self, worker: bytes) -> None:
        """Let a worker stand among those that can get a chunk, or not."""
        if self._free(worker) and not self._workers[worker].silent:
            self._idle.setdefault(worker)
        else:
            self._idle.pop(worker, None)

    def _free(self, worker: bytes) -> bool:
        known = self._workers[worker]
        return len(known.chunks) < known.slots

    def _takes_up(self, worker: bytes, chunk: int) -> bool:
        """Tell whether a worker that is at a chunk without a lease gets one."""
        lost = chunk in self._past and worker in self._past[chunk].losers
        room = self._leases < self._pace.in_flight and self._free(worker)
        return chunk in self._fresh and room and not lost

    def _until(self, chunk: int, start: float, now: float) -> float:
        past = self._past.get(chunk)
        longer = 1 << min(past.lapses, _MOST_DOUBLINGS) if past else 1
        return min(now + longer * self._pace.lease, start + longer * self._pace.longest)

    def _lease(self, worker: bytes, chunk: int, now: float) -> Lease:
        self._move(chunk, Event.LEASE)
        self._fresh.discard(chunk)
        self._resting.pop(chunk, None)
        until = self._until(chunk, now, now)
        self._held.setdefault(chunk, {})[worker] = _Held(now, until)
        self._leases += 1
        self._workers[worker].chunks.add(chunk)
        self._idle.pop(worker, None)  # and behind all others, if it is free still
        self._queue(worker)
        return Lease(worker, chunk, until)

    def _end(self, worker: bytes, chunk: int) -> None:
        """End a lease."""
        del self._held[chunk][worker]
        if not self._held[chunk]:
            del self._held[chunk]
        self._leases -= 1
        self._workers[worker].chunks.discard(chunk)
        self._queue(worker)

    def _lose(self, worker: bytes, chunk: int) -> list[Action]:
        """End a lease of which nothing came."""
        self._past.setdefault(chunk, _Past()).losers.add(worker)
        return self._return(worker, chunk)

    def _return(self, worker: bytes, chunk: int) -> list[Action]:
        """End a lease that did not end well, and perhaps give the chunk up."""
        self._end(worker, chunk)
        past, pace = self._past[chunk], self._pace
        failures = len(past.failed)
        if len(set(past.failed)) >= pace.failures or failures >= 2 * pace.failures:
            return self._give_up(chunk, past.reasons)
        if len(past.losers) >= pace.losses:
            lost = f"{len(past.losers)} workers fell silent or left while they were at it"
            return self._give_up(chunk, [*past.reasons, lost])
        if chunk not in self._held:
            self._move(chunk, Event.RETURN)
            if failures:
                self._resting[chunk] = past.rests_until
            else:
                self._fresh.add(chunk)
        return []

    def _give_up(self, chunk: int, reasons: list[str]) -> list[Action]:
        return [*self._close(chunk, Event.GIVE_UP), GaveUp(chunk, tuple(reasons))]

    def _close(self, chunk: int, event: Event, finisher: bytes | None = None) -> list[Action]:
        """End all that a chunk had."""
        self._move(chunk, event)
        self._fresh.discard(chunk)
        self._resting.pop(chunk, None)
        others: list[Action] = []
        for worker in list(self._held.get(chunk, ())):
            self._end(worker, chunk)
            if worker != finisher:
                others.append(Revoke(worker, chunk))
        return others

    def _hand_out(self, now: float) -> list[Action]:
        """Lease what can be leased; tell when all is done."""
        self._now = now
        actions: list[Action] = []
        if self._fresh or self._resting:
            actions += self._in_turn(lambda worker: self._next_for(worker, now), now)
        if self._idle and not self._fresh:
            late = [chunk for at, chunk in sorted(self._single()) if at <= now]
            actions += self._in_turn(lambda worker: self._second_for(worker, late), now)
        if self._ended and not self._sets[State.WAITING] and not self._sets[State.LEASED]:
            actions += [] if self._finished else [Finished()]
            self._finished = True
        return actions

    def _in_turn(self, choose: Callable[[bytes], int | None], now: float) -> Iterator[Action]:
        """Lease a chunk to each worker in turn, as long as one is chosen."""
        turn = list(self._idle)
        while turn:
            served = []
            for worker in turn:
                if self._leases >= self._pace.in_flight:
                    return
                chunk = choose(worker)
                if chunk is not None:
                    yield self._lease(worker, chunk, now)
                    served += [worker] if self._free(worker) else []
            turn = served

    def _next_for(self, worker: bytes, now: float) -> int | None:
        for chunk, until in self._resting.items():
            if until <= now and self._may_retry(worker, chunk):
                return chunk
        return self._policy.pick(self._fresh, self._held.keys()) if self._fresh else None

    def _may_retry(self, worker: bytes, chunk: int) -> bool:
        failed = self._past[chunk].failed
        if worker not in failed:
            return True
        return all(other in failed for other, known in self._workers.items() if not known.silent)

    def _second_for(self, worker: bytes, late: list[int]) -> int | None:
        for at, chunk in enumerate(late):
            if worker not in self._held[chunk]:
                return late.pop(at)
        return None

    def _single(self) -> Iterator[tuple[float, int]]:
        """Return the chunks that one worker has, and when a second one may have each."""
        for chunk, leases in self._held.items():
            if len(leases) == 1:
                (lease,) = leases.values()
                yield lease.start + _LATE * self._usual, chunk
