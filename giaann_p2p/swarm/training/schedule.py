"""Who learns which chunk of a job: what its coordinator decides.

A chunk is waiting, leased, committed or failed, and moves as the table in chunks.py says:

1. A waiting chunk is leased to a worker that has a slot free, as the policy picks them.
2. A heartbeat prolongs the leases that it names. A lease ends with silence, after `longest` seconds
   whatever the heartbeats say, or with its worker; when its last lease has ended, a chunk waits.
   A worker that fell silent, cannot be reached, or declined a chunk, gets nothing until it is heard
   of.
3. Each time that a chunk's lease ran out, the next one is twice as long, up to 32 times.
4. When nothing waits, a chunk that takes twice as long as usual is leased to a second worker. Both
   may finish: its updates are applied at most once.
5. Done is done, whoever says so and whenever: after its lease, or after the chunk was given up.
6. A chunk that a worker reports as failed rests, longer each time, and then goes to a worker that
   has not failed on it while there is one. It has failed for good when that many different workers
   have failed on it, or twice that many times in all, or when very many lost it.
7. A chunk that a worker has learned, and that others are to learn, too, goes to a worker that has
   not; where `alone`, to any if there is no such worker.
8. A worker that joins, or a heartbeat, may name a chunk that waits: it is leased to that worker,
   so a new coordinator finds out what its workers are at. What else is named without a lease is
   revoked. What is done counts even before the text was read that far.

A worker reports as failed what a chunk's text or its own machine brings about. If it cannot reach
the owners of shards it goes on trying, with heartbeats: no other worker would fare better.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Protocol

from pyroaring import BitMap

from giaann_p2p.errors import MessageError
from giaann_p2p.swarm.chunks import Chunks, Event, State
from giaann_p2p.swarm.decisions import Action, Finished, GaveUp, Lease, Revoke
from giaann_p2p.swarm.leases import Held, Leases
from giaann_p2p.swarm.pace import Pace
from giaann_p2p.swarm.past import Past
from giaann_p2p.swarm.roster import Roster

MOST_SLOTS = 256
_LATE = 2.0
"""Times the usual duration after which a chunk is leased to a second worker."""
_WEIGHT = 0.1
"""What the latest chunk counts for in the usual duration."""


class Policy(Protocol):
    """Decides which chunk comes next."""

    def pick(self, waiting: BitMap, busy: Collection[int]) -> int:
        """Return one of those that wait, of which there is at least one; `busy` are leased."""


class Schedule:
    """A job's chunks and workers. Every event returns what is to be done about it."""

    def __init__(
        self,
        policy: Policy,
        committed: Iterable[int] = (),
        pace: Pace | None = None,
        *,
        alone: bool = True,
    ) -> None:
        self._policy, self._alone = policy, alone
        self._pace = pace or Pace()
        self._chunks = Chunks(committed)
        self._workers = Roster()
        self._leases = Leases()
        self._fresh = BitMap()  # those that wait and never failed
        self._resting: dict[int, float] = {}  # those that wait and failed, until when
        self._past: dict[int, Past] = {}
        self._usual = self._pace.lease
        self._finished = False
        self._now = float("-inf")  # all that was due by then was done

    def __repr__(self) -> str:
        return f"<Schedule: {self._chunks.told}; {len(self._workers):,} workers>"

    def chunks(self, state: State) -> BitMap:
        """Return the chunks in a state; committed ones may be beyond what was read so far."""
        return self._chunks.all(state)

    def state(self, chunk: int) -> State:
        """Return what a chunk is; one that was not read yet waits."""
        return self._chunks.state(chunk)

    @property
    def working(self) -> int:
        """How many workers have a chunk."""
        return len({one for chunk in self._leases.chunks for one in self._leases.holders(chunk)})

    @property
    def due(self) -> float | None:
        """When the next tick is due; None if only another event can change something."""
        times = self._leases.ends
        if self._workers.idle and self._has_room():
            later = [*self._resting.values(), *(at for at, _ in self._single())]
            times += [at for at in later if at > self._now]
        return min(times, default=None)

    def grown(self, chunks: int, now: float) -> list[Action]:
        """Take in that the job has so many chunks by now."""
        self._fresh |= self._chunks.grow(chunks)
        return self._hand_out(now)

    def ended(self, now: float) -> list[Action]:
        """Take in that there are no more chunks."""
        self._chunks.end()
        return self._hand_out(now)

    def joined(
        self, worker: bytes, slots: int, now: float, chunks: Collection[int] = ()
    ) -> list[Action]:
        """Take in a worker that learns so many chunks at once, and is at some already.

        One that has come and takes no more has no slots; it finishes what it has.
        It joins again if its slots have changed, or if it does not know whether it was heard.
        """
        if not (slots or worker in self._workers) or not 0 <= slots <= MOST_SLOTS:
            raise MessageError(f"slots: a worker has 1 to {MOST_SLOTS}, not {slots}")
        self._check_all(chunks)
        self._workers.join(worker, slots, now)
        actions = self._at(worker, chunks, now)
        return [*actions, *self._hand_out(now)]

    def left(self, worker: bytes, now: float) -> list[Action]:
        """Take in that a worker is gone."""
        actions: list[Action] = []
        if worker in self._workers:
            for chunk in sorted(self._workers[worker].chunks):
                actions += self._lose(worker, chunk)
            self._workers.leave(worker)
        return [*actions, *self._hand_out(now)]

    def lost(self, worker: bytes, now: float) -> list[Action]:
        """Take in that a worker cannot be reached; it may be heard of again."""
        actions: list[Action] = []
        if worker in self._workers:
            self._workers.silence(worker)
            for chunk in sorted(self._workers[worker].chunks):
                actions += self._lose(worker, chunk)
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
        self._chunks.check(chunk)
        if worker not in self._workers:
            return []
        actions: list[Action] = []
        if self.state(chunk) is not State.COMMITTED:
            if lease := self._leases.of(worker, chunk):
                self._usual += _WEIGHT * (now - lease.start - self._usual)
            actions += self._close(chunk, Event.COMMIT, worker)
            self._past.pop(chunk, None)
        self._workers.hear(worker, now)
        return [*actions, *self._hand_out(now)]

    def failed(self, worker: bytes, chunk: int, reason: str, now: float) -> list[Action]:
        """Take in that a worker failed on a chunk that it had."""
        self._chunks.check(chunk)
        if self._leases.of(worker, chunk) is None:
            return []
        self._past_of(chunk).fail(worker, reason, now, self._pace)
        actions = self._return(worker, chunk)
        self._workers.hear(worker, now)
        return [*actions, *self._hand_out(now)]

    def vouched(self, worker: bytes, chunk: int, now: float) -> list[Action]:
        """Take in that a worker has learned a chunk, and that others are to learn it, too."""
        self._chunks.check(chunk)
        if self._leases.of(worker, chunk) is None:
            return []
        self._past_of(chunk).vouched.add(worker)
        actions = self._return(worker, chunk)
        self._workers.hear(worker, now)
        return [*actions, *self._hand_out(now)]

    def has(self, worker: bytes, chunk: int) -> bool:
        """Tell whether a chunk is a worker's at this time."""
        return self._leases.of(worker, chunk) is not None

    def others(self, worker: bytes, chunk: int) -> bool:
        """Tell whether there is anybody else who could learn a chunk."""
        vouched = self._past[chunk].vouched if chunk in self._past else set[bytes]()
        return any(other != worker and other not in vouched for other in self._workers.awake())

    def declined(self, worker: bytes, chunk: int, now: float) -> list[Action]:
        """Take in that a worker has no room: no fault of the chunk's, nor is the worker lost."""
        self._chunks.check(chunk)
        if self._leases.of(worker, chunk) is None:
            return []
        self._workers.silence(worker)
        return [*self._return(worker, chunk), *self._hand_out(now)]

    def tick(self, now: float) -> list[Action]:
        """Take in that time has passed."""
        actions: list[Action] = []
        for worker, chunk in self._leases.lapsed(now):
            if chunk not in self._leases:  # it was just given up, with another's lease on it
                continue
            self._past_of(chunk).lapses += 1
            actions.append(Revoke(worker, chunk))
            known = self._workers[worker]
            known.silent = known.heard <= now - self._pace.lease
            actions += self._lose(worker, chunk)
        return [*actions, *self._hand_out(now)]

    def _check_all(self, chunks: Collection[int]) -> None:
        if len(chunks) > MOST_SLOTS:
            raise MessageError(f"chunks: a worker is at {MOST_SLOTS} at most, not {len(chunks)}")
        for chunk in chunks:
            self._chunks.check(chunk)

    def _at(self, worker: bytes, chunks: Collection[int], now: float) -> list[Action]:
        """Take in what a worker is at."""
        self._workers.hear(worker, now)
        actions: list[Action] = []
        for chunk in chunks:
            if lease := self._leases.of(worker, chunk):
                lease.until = self._until(chunk, lease.start, now)
            elif self._takes_up(worker, chunk):
                actions.append(self._lease(worker, chunk, now))
            else:
                actions.append(Revoke(worker, chunk))
        return actions

    def _takes_up(self, worker: bytes, chunk: int) -> bool:
        """Tell whether a worker that is at a chunk without a lease gets one."""
        lost = chunk in self._past and worker in self._past[chunk].losers
        room = self._has_room() and self._workers[worker].free
        return chunk in self._fresh and room and not lost

    def _has_room(self) -> bool:
        return len(self._leases) < self._pace.in_flight

    def _past_of(self, chunk: int) -> Past:
        return self._past.setdefault(chunk, Past())

    def _until(self, chunk: int, start: float, now: float) -> float:
        longer = self._past[chunk].longer if chunk in self._past else 1
        return min(now + longer * self._pace.lease, start + longer * self._pace.longest)

    def _lease(self, worker: bytes, chunk: int, now: float) -> Lease:
        self._chunks.move(chunk, Event.LEASE)
        self._fresh.discard(chunk)
        self._resting.pop(chunk, None)
        until = self._until(chunk, now, now)
        self._leases.begin(worker, chunk, Held(now, until))
        self._workers.take(worker, chunk)
        return Lease(worker, chunk, until)

    def _end(self, worker: bytes, chunk: int) -> None:
        """End a lease."""
        self._leases.end(worker, chunk)
        self._workers.give_back(worker, chunk)

    def _lose(self, worker: bytes, chunk: int) -> list[Action]:
        """End a lease of which nothing came."""
        self._past_of(chunk).losers.add(worker)
        return self._return(worker, chunk)

    def _return(self, worker: bytes, chunk: int) -> list[Action]:
        """End a lease that did not end well, and perhaps give the chunk up."""
        self._end(worker, chunk)
        past = self._past_of(chunk)
        if reasons := past.verdict(self._pace):
            return [*self._close(chunk, Event.GIVE_UP), GaveUp(chunk, reasons)]
        if chunk not in self._leases:
            self._chunks.move(chunk, Event.RETURN)
            if past.failed or past.vouched:
                self._resting[chunk] = past.rests_until
            else:
                self._fresh.add(chunk)
        return []

    def _close(self, chunk: int, event: Event, finisher: bytes | None = None) -> list[Action]:
        """End all that a chunk had."""
        self._chunks.move(chunk, event)
        self._fresh.discard(chunk)
        self._resting.pop(chunk, None)
        others: list[Action] = []
        for worker in list(self._leases.holders(chunk)):
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
        if self._workers.idle and not self._fresh:
            late = [chunk for at, chunk in sorted(self._single()) if at <= now]
            actions += self._in_turn(lambda worker: self._second_for(worker, late), now)
        if self._chunks.settled:
            actions += [] if self._finished else [Finished()]
            self._finished = True
        return actions

    def _in_turn(self, choose: Callable[[bytes], int | None], now: float) -> Iterator[Action]:
        """Lease a chunk to each worker in turn, as long as one is chosen."""
        turn = list(self._workers.idle)
        while turn:
            served = []
            for worker in turn:
                if not self._has_room():
                    return
                chunk = choose(worker)
                if chunk is not None:
                    yield self._lease(worker, chunk, now)
                    served += [worker] if self._workers[worker].free else []
            turn = served

    def _next_for(self, worker: bytes, now: float) -> int | None:
        for chunk, until in self._resting.items():
            if until <= now and self._may_retry(worker, chunk):
                return chunk
        return self._policy.pick(self._fresh, self._leases.chunks) if self._fresh else None

    def _may_retry(self, worker: bytes, chunk: int) -> bool:
        """Tell whether a worker may have a chunk that was learned, or failed, before."""
        past = self._past[chunk]
        if worker not in (spent := past.vouched.union(past.failed)):
            return True
        if not spent.issuperset(self._workers.awake()):
            return False
        return self._alone or worker not in past.vouched

    def _second_for(self, worker: bytes, late: list[int]) -> int | None:
        for at, chunk in enumerate(late):
            past = self._past.get(chunk)
            if worker not in self._leases.holders(chunk) and not (past and worker in past.vouched):
                return late.pop(at)
        return None

    def _single(self) -> Iterator[tuple[float, int]]:
        """Return the chunks that one worker has, and when a second one may have each."""
        return self._leases.single(_LATE * self._usual)
