"""Decides which worker of a job gets a lease of which chunk.

A chunk is waiting, leased, committed or failed; `chunks` lists the transitions. The rules:

1. A waiting chunk, picked by the policy, is leased to a worker with a free slot.
2. A heartbeat renews the leases of the chunks that it names. A lease ends when it expires, after
   `longest` seconds whatever the heartbeats say, or when its worker leaves. A chunk waits again
   when its last lease has ended. A worker that fell silent, cannot be reached, or declined a chunk
   gets no chunk until its next sign of life.
3. Each expiry doubles the length of the chunk's next lease, up to 32 times the usual length.
4. When no fresh chunk waits, a chunk that takes twice as long as usual is leased to a second worker
   (a hedge). Both workers may finish, because updates are applied at most once.
5. A commit is final and always counts: from any worker, after the worker's lease has ended, or
   after the chunk was given up.
6. A chunk that a worker reports as failed waits for a pause, longer each time. It is then leased to
   a worker that has not failed on it, if there is one. It has failed for good when `failures`
   different workers have failed on it, or after twice as many failures in all, or when `losses`
   different workers fell silent or left while they leased it.
7. A chunk that one worker has learned, and that others must learn, too, is leased to a worker that
   has not learned it. If there is no such worker and `alone` is set, any worker may get it.
8. A worker that joins, or a heartbeat, may name a waiting chunk. The chunk is then leased to that
   worker, so a new coordinator takes over the work in progress. Other chunks named without a lease
   are revoked. Commits count even for chunks that have not been read yet.

Workers report failures that are due to the chunk's text or to their own machine. A worker that
cannot reach the owners of shards keeps trying and sends heartbeats, because no other worker would
fare better.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Protocol

from pyroaring import BitMap

from giaann_p2p.errors import MessageError
from giaann_p2p.swarm.training.chunk_history import ChunkHistory
from giaann_p2p.swarm.training.chunks import Chunks, ChunkState, Event
from giaann_p2p.swarm.training.decisions import Action, Finished, GaveUp, Lease, Revoke
from giaann_p2p.swarm.training.lease_settings import LeaseSettings
from giaann_p2p.swarm.training.leases import Held, Leases
from giaann_p2p.swarm.training.roster import Roster

MOST_SLOTS = 256
"""Maximum number of slots of one worker."""
_LATE = 2.0
"""Multiple of a chunk's usual duration after which it is hedged: leased to a second worker."""
_WEIGHT = 0.1
"""Weight of the latest chunk in the exponential moving average of a chunk's duration."""


class Policy(Protocol):
    """Chooses the waiting chunk to lease next."""

    def pick(self, waiting: BitMap, busy: Collection[int]) -> int:
        """Return one of the chunks in `waiting`, which is never empty; `busy` are leased chunks."""


class Schedule:
    """The leases of one job. Each method handles an event and returns the actions that follow."""

    def __init__(
        self,
        policy: Policy,
        committed: Iterable[int] = (),
        pace: LeaseSettings | None = None,
        *,
        alone: bool = True,
    ) -> None:
        self._policy, self._alone = policy, alone
        self._pace = pace or LeaseSettings()
        self._chunks = Chunks(committed)
        self._workers = Roster()
        self._leases = Leases()
        self._fresh = BitMap()  # waiting chunks that have neither failed nor been learned
        self._resting: dict[int, float] = {}  # the other waiting chunks: when each may be leased
        self._past: dict[int, ChunkHistory] = {}
        self._usual = self._pace.lease
        self._finished = False
        self._now = float("-inf")  # everything due until then is processed

    def __repr__(self) -> str:
        return f"<Schedule: {self._chunks.told}; {len(self._workers):,} workers>"

    def chunks(self, state: ChunkState) -> BitMap:
        """Return the chunks in a state. Committed chunks may include some not read yet."""
        return self._chunks.all(state)

    def state(self, chunk: int) -> ChunkState:
        """Return the state of a chunk; one not read yet is waiting, unless it is committed."""
        return self._chunks.state(chunk)

    @property
    def working(self) -> int:
        """The number of workers that have at least one lease."""
        return len({one for chunk in self._leases.chunks for one in self._leases.holders(chunk)})

    @property
    def due(self) -> float | None:
        """Time at which `tick` is due; None if only another event can change anything."""
        times = self._leases.ends
        if self._workers.idle and self._has_room():
            later = [*self._resting.values(), *(at for at, _ in self._single())]
            times += [at for at in later if at > self._now]
        return min(times, default=None)

    def grown(self, chunks: int, now: float) -> list[Action]:
        """Handle progress in reading the text: the job has `chunks` chunks so far."""
        self._fresh |= self._chunks.grow(chunks)
        return self._hand_out(now)

    def ended(self, now: float) -> list[Action]:
        """Handle the end of the text: no more chunks will come."""
        self._chunks.end()
        return self._hand_out(now)

    def joined(
        self, worker: bytes, slots: int, now: float, chunks: Collection[int] = ()
    ) -> list[Action]:
        """Handle a worker that joins with `slots` slots, and already works on `chunks`.

        A worker may join again, for example when its number of slots has changed. A known worker
        with 0 slots gets no more chunks, and finishes those that it has.
        """
        if not (slots or worker in self._workers) or not 0 <= slots <= MOST_SLOTS:
            raise MessageError(f"slots: a new worker must have 1 to {MOST_SLOTS}; it has {slots}")
        self._check_all(chunks)
        self._workers.join(worker, slots, now)
        actions = self._at(worker, chunks, now)
        return [*actions, *self._hand_out(now)]

    def left(self, worker: bytes, now: float) -> list[Action]:
        """Handle the departure of a worker."""
        actions: list[Action] = []
        if worker in self._workers:
            for chunk in sorted(self._workers[worker].chunks):
                actions += self._lose(worker, chunk)
            self._workers.leave(worker)
        return [*actions, *self._hand_out(now)]

    def lost(self, worker: bytes, now: float) -> list[Action]:
        """Handle a worker that cannot be reached: it loses its leases, but may come back."""
        actions: list[Action] = []
        if worker in self._workers:
            self._workers.silence(worker)
            for chunk in sorted(self._workers[worker].chunks):
                actions += self._lose(worker, chunk)
        return [*actions, *self._hand_out(now)]

    def heartbeat(self, worker: bytes, chunks: Collection[int], now: float) -> list[Action]:
        """Handle a worker's heartbeat; `chunks` are those that the worker is working on."""
        self._check_all(chunks)
        if worker not in self._workers:
            return [Revoke(worker, chunk) for chunk in chunks]
        actions = self._at(worker, chunks, now)
        return [*actions, *self._hand_out(now)]

    def done(self, worker: bytes, chunk: int, now: float) -> list[Action]:
        """Handle a worker's report that a chunk is committed."""
        self._chunks.check(chunk)
        if worker not in self._workers:
            return []
        actions: list[Action] = []
        if self.state(chunk) is not ChunkState.COMMITTED:
            if lease := self._leases.of(worker, chunk):
                self._usual += _WEIGHT * (now - lease.start - self._usual)
            actions += self._close(chunk, Event.COMMIT, worker)
            self._past.pop(chunk, None)
        self._workers.hear(worker, now)
        return [*actions, *self._hand_out(now)]

    def failed(self, worker: bytes, chunk: int, reason: str, now: float) -> list[Action]:
        """Handle a worker's report that it failed on a chunk, if the worker leases the chunk."""
        self._chunks.check(chunk)
        if self._leases.of(worker, chunk) is None:
            return []
        self._past_of(chunk).fail(worker, reason, now, self._pace)
        actions = self._return(worker, chunk)
        self._workers.hear(worker, now)
        return [*actions, *self._hand_out(now)]

    def vouched(self, worker: bytes, chunk: int, now: float) -> list[Action]:
        """Handle a worker's result for a chunk that other workers must learn, too."""
        self._chunks.check(chunk)
        if self._leases.of(worker, chunk) is None:
            return []
        self._past_of(chunk).vouched.add(worker)
        actions = self._return(worker, chunk)
        self._workers.hear(worker, now)
        return [*actions, *self._hand_out(now)]

    def has(self, worker: bytes, chunk: int) -> bool:
        """Return whether a worker has a lease of a chunk."""
        return self._leases.of(worker, chunk) is not None

    def others(self, worker: bytes, chunk: int) -> bool:
        """Return whether any other worker that is not silent has yet to learn a chunk."""
        vouched = self._past[chunk].vouched if chunk in self._past else set[bytes]()
        return any(other != worker and other not in vouched for other in self._workers.awake())

    def declined(self, worker: bytes, chunk: int, now: float) -> list[Action]:
        """Handle a worker that declined a chunk for lack of room, which is not a failure."""
        self._chunks.check(chunk)
        if self._leases.of(worker, chunk) is None:
            return []
        self._workers.silence(worker)
        return [*self._return(worker, chunk), *self._hand_out(now)]

    def tick(self, now: float) -> list[Action]:
        """Handle the passing of time: expire leases, and grant those that are due."""
        actions: list[Action] = []
        for worker, chunk in self._leases.lapsed(now):
            if chunk not in self._leases:  # given up just now, when another of its leases expired
                continue
            self._past_of(chunk).lapses += 1
            actions.append(Revoke(worker, chunk))
            known = self._workers[worker]
            known.silent = known.heard <= now - self._pace.lease
            actions += self._lose(worker, chunk)
        return [*actions, *self._hand_out(now)]

    def _check_all(self, chunks: Collection[int]) -> None:
        if len(chunks) > MOST_SLOTS:
            raise MessageError(
                f"chunks: a worker may work on at most {MOST_SLOTS}; it names {len(chunks)}"
            )
        for chunk in chunks:
            self._chunks.check(chunk)

    def _at(self, worker: bytes, chunks: Collection[int], now: float) -> list[Action]:
        """Renew, grant or revoke leases of the chunks that a worker says it is working on."""
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
        """Return whether a worker that works on a chunk without a lease is granted one."""
        lost = chunk in self._past and worker in self._past[chunk].losers
        room = self._has_room() and self._workers[worker].free
        return chunk in self._fresh and room and not lost

    def _has_room(self) -> bool:
        return len(self._leases) < self._pace.in_flight

    def _past_of(self, chunk: int) -> ChunkHistory:
        return self._past.setdefault(chunk, ChunkHistory())

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
        """End a worker's lease of a chunk, and free the worker's slot."""
        self._leases.end(worker, chunk)
        self._workers.give_back(worker, chunk)

    def _lose(self, worker: bytes, chunk: int) -> list[Action]:
        """End a lease that expired, or whose worker left or cannot be reached."""
        self._past_of(chunk).losers.add(worker)
        return self._return(worker, chunk)

    def _return(self, worker: bytes, chunk: int) -> list[Action]:
        """End a lease without a commit; give the chunk up, or let it wait again."""
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
        """Settle a chunk and end all its leases; revoke those of workers other than `finisher`."""
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
        """Grant every lease that can be granted now; return `Finished` once, when all is done."""
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
        """Lease the chunks that `choose` returns to idle workers, round robin, while there is room.

        A worker for which `choose` returns None gets no chunk in this call.
        """
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
        """Return whether a worker may get a chunk that failed, or was learned, before."""
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
        """Yield each chunk with a single lease, as (time from which it may be hedged, chunk)."""
        return self._leases.single(_LATE * self._usual)
