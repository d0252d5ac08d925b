"""The coordinator: each rule on its own, then all in a world of workers that fail in every way."""

import random
from collections.abc import Collection
from dataclasses import dataclass, field

import pytest
from pyroaring import BitMap

from giaann_p2p.errors import MessageError, UsageError
from giaann_p2p.swarm.training.chunks import MOVES, ChunkState, Event
from giaann_p2p.swarm.training.decisions import Action, Finished, GaveUp, Lease, Revoke
from giaann_p2p.swarm.training.lease_settings import LeaseSettings
from giaann_p2p.swarm.training.policy import AtRandom, LeastOverlap
from giaann_p2p.swarm.training.schedule import MOST_SLOTS, Policy, Schedule

A, B, C, D = b"a", b"b", b"c", b"d"
PACE = LeaseSettings(lease=10, longest=100, rest=2, in_flight=8, failures=3, losses=4)


class InOrder:
    """The first that waits."""

    def pick(self, waiting: BitMap, busy: Collection[int]) -> int:
        return waiting[0]


def schedule(
    chunks: int, *workers: bytes, ended: bool = True, pace: LeaseSettings = PACE
) -> Schedule:
    """A schedule at the time 0, each worker with one slot."""
    found = Schedule(InOrder(), pace=pace)
    for worker in workers:
        found.joined(worker, 1, 0)
    found.grown(chunks, 0)
    if ended:
        found.ended(0)
    return found


def test_the_table_of_moves() -> None:
    moves = {(state, event) for state in ChunkState for event in MOVES[state]}
    illegal = {(state, event) for state in ChunkState for event in Event} - moves
    assert illegal == {
        (ChunkState.WAITING, Event.RETURN),
        (ChunkState.FAILED, Event.LEASE),
        (ChunkState.FAILED, Event.RETURN),
        (ChunkState.FAILED, Event.GIVE_UP),
        *((ChunkState.COMMITTED, event) for event in Event),
    }


def test_chunks_go_to_slots_in_turn() -> None:
    plan = Schedule(InOrder(), pace=PACE)
    assert plan.joined(A, 2, 0) == []
    assert plan.joined(B, 3, 0) == []
    assert plan.grown(4, 1) == [Lease(w, n, 11) for n, w in enumerate([A, B, A, B])]
    assert plan.grown(9, 2) == [Lease(B, 4, 12)]
    assert plan.done(A, 2, 3) == [Lease(A, 5, 13)]
    assert repr(plan) == (
        "<Schedule: 3 waiting, 5 leased, 1 committed, 0 failed, more to come; 2 workers>"
    )
    assert plan.joined(A, 1, 4) == []
    assert plan.done(A, 5, 4) == []  # it has one slot now, and a chunk
    assert plan.joined(A, 3, 4) == [Lease(A, 6, 14), Lease(A, 7, 14)]


def test_no_more_are_in_flight_than_may_be() -> None:
    plan = Schedule(InOrder(), pace=PACE)
    plan.joined(A, 100, 0)
    assert len(plan.grown(50, 0)) == 8
    assert plan.done(A, 3, 1) == [Lease(A, 8, 11)]


def test_no_more_are_taken_up_than_may_be_in_flight() -> None:
    plan = Schedule(InOrder(), pace=PACE)
    plan.grown(50, 0)
    actions = plan.joined(A, 100, 0, range(20))
    assert actions == [Lease(A, n, 10) if n < 8 else Revoke(A, n) for n in range(20)]


def test_it_is_finished_once() -> None:
    plan = schedule(2, A, ended=False)
    assert plan.done(A, 0, 1) == [Lease(A, 1, 11)]
    assert plan.done(A, 1, 2) == []  # there may be more
    assert plan.ended(3) == [Finished()]
    assert plan.ended(3) == plan.done(A, 1, 4) == plan.tick(5) == []
    assert plan.due is None


def test_what_is_committed_already_is_not_leased() -> None:
    plan = Schedule(InOrder(), committed=[0, 2, 3, 7], pace=PACE)
    plan.joined(A, 9, 0)
    assert plan.grown(3, 0) == [Lease(A, 1, 10)]
    assert plan.grown(6, 0) == [Lease(A, 4, 10), Lease(A, 5, 10)]
    for chunk in (1, 4, 5):
        assert plan.done(A, chunk, 1) == []
    assert plan.ended(2) == [Finished()]
    assert list(plan.chunks(ChunkState.COMMITTED)) == [0, 1, 2, 3, 4, 5, 7]


def test_silence_ends_a_lease_and_the_silent_get_nothing() -> None:
    plan = schedule(2, A, B, ended=False)
    assert plan.due == 10
    assert plan.heartbeat(B, [1], 6) == []
    assert plan.tick(9.9) == []
    assert plan.tick(10) == [Revoke(A, 0)]
    assert plan.state(0) is ChunkState.WAITING
    assert plan.due == 16
    assert plan.done(B, 1, 12) == [Lease(B, 0, 32)]  # twice as long: it ran out once
    assert plan.grown(3, 13) == []
    assert plan.heartbeat(A, [], 14) == [Lease(A, 2, 24)]


def test_who_is_heard_of_again_gets_chunks_again() -> None:
    plan = schedule(1, A)
    assert plan.tick(10) == [Revoke(A, 0)]
    assert plan.tick(50) == []
    assert plan.heartbeat(A, [], 60) == [Lease(A, 0, 80)]


def test_what_the_silent_had_elsewhere_does_not_bring_them_back() -> None:
    plan = Schedule(InOrder(), pace=PACE)
    plan.joined(A, 2, 0)
    plan.grown(2, 0)
    plan.heartbeat(A, [1], 1)
    assert plan.tick(10) == [Revoke(A, 0), Lease(A, 0, 30)]  # heard of 9 seconds ago
    assert plan.tick(11) == [Revoke(A, 1)]
    plan.joined(B, 2, 12)
    assert plan.done(B, 0, 13) == [Revoke(A, 0)]
    assert plan.grown(4, 14) == [Lease(B, 2, 24)]


def test_a_lease_ends_some_time_whatever_heartbeats_say() -> None:
    plan = schedule(1, A)
    for now in range(5, 100, 5):
        assert plan.heartbeat(A, [0], now) == []
        assert plan.due == min(now + 10, 100)
    assert plan.tick(100) == [Revoke(A, 0), Lease(A, 0, 120)]
    for now in range(105, 300, 5):
        assert plan.heartbeat(A, [0], now) == []
    assert plan.tick(299) == []
    assert plan.tick(300)[0] == Revoke(A, 0)


def test_leases_grow_up_to_32_times() -> None:
    plan = schedule(1, A, pace=LeaseSettings(lease=1, longest=1, losses=99))
    spans = []
    for _ in range(8):
        now = plan.due
        assert now is not None
        plan.tick(now)
        (lease,) = plan.heartbeat(A, [], now)
        assert isinstance(lease, Lease)
        spans.append(lease.until - now)
    assert spans == [2, 4, 8, 16, 32, 32, 32, 32]


def test_the_chunks_of_one_that_left_go_to_others() -> None:
    plan = Schedule(InOrder(), pace=PACE)
    plan.joined(A, 2, 0)
    plan.grown(3, 0)
    plan.joined(B, 2, 0)
    assert plan.left(A, 1) == [Lease(B, 0, 11)]
    assert plan.left(A, 1) == []
    assert plan.done(B, 2, 2) == [Lease(B, 1, 12)]


def test_done_counts_after_the_lease_too() -> None:
    plan = schedule(1, A)
    plan.tick(10)
    plan.joined(B, 1, 11)
    assert plan.state(0) is ChunkState.LEASED
    assert plan.done(A, 0, 12) == [Revoke(B, 0), Finished()]
    assert plan.done(B, 0, 13) == []


def test_strangers_change_nothing() -> None:
    plan = schedule(2, A)
    assert plan.done(D, 0, 1) == plan.failed(D, 0, "?", 1) == plan.left(D, 1) == []
    assert plan.heartbeat(D, [0, 1], 1) == [Revoke(D, 0), Revoke(D, 1)]
    assert plan.failed(A, 1, "not mine", 1) == []
    assert plan.state(0) is ChunkState.LEASED
    assert plan.state(1) is ChunkState.WAITING


def test_a_new_coordinator_finds_its_workers_at_work() -> None:
    plan = Schedule(InOrder(), committed=[2], pace=PACE)
    plan.grown(6, 0)
    assert plan.joined(A, 2, 0, [4, 2, 90]) == [
        Lease(A, 4, 10),
        Revoke(A, 2),
        Revoke(A, 90),
        Lease(A, 0, 10),
    ]
    assert plan.joined(B, 1, 0, [4, 3, 5]) == [Revoke(B, 4), Lease(B, 3, 10), Revoke(B, 5)]
    assert plan.done(B, 7, 1) == []
    assert plan.done(B, 3, 1) == [Lease(B, 1, 11)]
    assert plan.heartbeat(B, [5], 1) == [Revoke(B, 5)]
    assert plan.joined(B, 9, 2) == [Lease(B, 5, 12)]
    assert plan.grown(9, 3) == [Lease(B, 6, 13), Lease(B, 8, 13)]  # 7 is done
    assert list(plan.chunks(ChunkState.COMMITTED)) == [2, 3, 7]


def test_nobody_takes_up_what_it_has_lost() -> None:
    plan = Schedule(InOrder(), pace=PACE)
    plan.joined(A, 1, 0)
    plan.grown(1, 0)
    plan.tick(10)
    assert plan.heartbeat(A, [0], 11) == [Revoke(A, 0), Lease(A, 0, 31)]  # from the start


def test_a_failed_chunk_rests_and_goes_to_another() -> None:
    plan = schedule(1, A)
    assert plan.failed(A, 0, "out of memory", 1) == []
    assert plan.due == 3
    assert plan.joined(B, 1, 2) == []
    assert plan.tick(3) == [Lease(B, 0, 13)]
    assert plan.failed(B, 0, "bad text", 4) == []
    assert plan.due == 8
    assert plan.tick(8) == [Lease(A, 0, 18)]  # nobody else is there
    assert plan.failed(A, 0, "out of memory", 9) == []
    assert plan.tick(17) == [Lease(B, 0, 27)]
    assert plan.joined(C, 1, 18) == []
    assert plan.failed(B, 0, "bad text", 18) == []
    assert plan.tick(34) == [Lease(C, 0, 44)]
    reasons = ("out of memory", "bad text", "out of memory", "bad text", "x" * 200)
    assert plan.failed(C, 0, "x" * 999, 35) == [GaveUp(0, reasons), Finished()]
    assert plan.state(0) is ChunkState.FAILED
    assert plan.done(A, 0, 36) == []
    assert plan.state(0) is ChunkState.COMMITTED


def test_it_waits_for_a_worker_that_has_not_failed() -> None:
    plan = schedule(2, A, B)
    plan.failed(A, 0, "odd", 1)
    assert plan.tick(5) == []
    assert plan.due == 10
    assert plan.done(B, 1, 6) == [Lease(B, 0, 16)]


def test_alone_a_worker_fails_six_times() -> None:
    plan = schedule(1, A)
    for _ in range(5):
        assert plan.failed(A, 0, "odd", plan.due or 0) == []
        now = plan.due
        assert now is not None
        assert plan.tick(now) == [Lease(A, 0, now + 10)]
    assert plan.failed(A, 0, "odd", 900) == [GaveUp(0, ("odd",) * 6), Finished()]


def test_what_kills_its_workers_is_given_up() -> None:
    plan = schedule(1)
    for n in range(3):
        worker = bytes([n])
        assert plan.joined(worker, 1, n) == [Lease(worker, 0, n + 10)]
        assert plan.left(worker, n) == []
    plan.joined(A, 1, 5)
    told = "4 workers fell silent or left while learning it"
    assert plan.left(A, 6) == [GaveUp(0, (told,)), Finished()]


def test_near_the_end_the_idle_help() -> None:
    plan = schedule(3, A, B)
    assert plan.done(A, 0, 10) == [Lease(A, 2, 20)]
    plan.heartbeat(B, [1], 10)
    assert plan.done(A, 2, 11) == []
    assert plan.tick(18) == []
    usual = 10 + 0.1 * (1 - 10)
    assert plan.due == 2 * usual
    assert plan.tick(2 * usual) == [Lease(A, 1, 2 * usual + 10)]
    assert plan.joined(C, 1, 19) == []  # two are enough
    assert plan.done(A, 1, 19.5) == [Revoke(B, 1), Finished()]


def test_when_one_of_two_fails_the_other_goes_on() -> None:
    plan = schedule(1, A, B)
    plan.heartbeat(A, [0], 9)
    plan.heartbeat(A, [0], 18)
    assert plan.tick(20) == [Lease(B, 0, 30)]
    assert plan.failed(A, 0, "odd", 21) == []
    assert plan.state(0) is ChunkState.LEASED
    assert plan.tick(29) == []
    assert plan.tick(30) == [Revoke(B, 0), Lease(A, 0, 50)]  # B is silent, and so A tries again


def test_two_leases_that_run_out_together_may_be_the_last() -> None:
    plan = schedule(1, A, B, pace=LeaseSettings(lease=10, longest=100, losses=1))
    plan.heartbeat(A, [0], 9)
    plan.heartbeat(A, [0], 18)
    assert plan.tick(20) == [Lease(B, 0, 30)]
    plan.heartbeat(A, [0], 20)
    told = "1 worker fell silent or left while learning it"
    assert plan.tick(30) == [Revoke(A, 0), Revoke(B, 0), GaveUp(0, (told,)), Finished()]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lease": 0}, "0 < lease <= longest"),
        ({"lease": 20, "longest": 10}, "must hold; lease is 20, longest is 10"),
        ({"rest": -1}, "rest must be 0 or more"),
        ({"in_flight": 0}, "in_flight must be 1 or more; it is 0"),
        ({"failures": 0}, "failures must be 1"),
        ({"losses": 0}, "losses must be 1"),
    ],
)
def test_a_pace_that_cannot_be_is_said(changes: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LeaseSettings(**changes)


def test_what_no_worker_says_is_refused() -> None:
    plan = schedule(4, A)
    for chunk in (-1, 4, 1 << 40):
        for event in (
            lambda n: plan.done(A, n, 1),
            lambda n: plan.failed(A, n, "", 1),
            lambda n: plan.heartbeat(A, [0, n], 1),
        ):
            with pytest.raises(
                MessageError, match=f"chunk {chunk} is not part of the job, which has 4"
            ):
                event(chunk)
    for slots in (0, -3, MOST_SLOTS + 1):
        with pytest.raises(
            MessageError, match=f"slots: a new worker must have 1 to 256; it has {slots}"
        ):
            plan.joined(B, slots, 1)
    with pytest.raises(
        MessageError, match="chunks: a worker may work on at most 256; it names 257"
    ):
        plan.heartbeat(A, [0] * 257, 1)


def test_a_job_does_not_shrink_and_an_ended_one_does_not_grow() -> None:
    plan = schedule(4, A, ended=False)
    with pytest.raises(UsageError, match="a job of 4 chunks cannot be extended to 3"):
        plan.grown(3, 1)
    plan.ended(1)
    with pytest.raises(UsageError, match="a job of 4 chunks cannot be extended to 5"):
        plan.grown(5, 1)


@dataclass
class Worker:
    """What a worker is at; when each chunk will be done."""

    slots: int
    chunks: dict[int, float] = field(default_factory=dict)
    deaf_until: float = 0.0


class World:
    """Workers that come, go, die, hang, fail, stall and send again; and what each rule forbids."""

    def __init__(self, policy: Policy, rng: random.Random, poison: set[int], chunks: int) -> None:
        self.policy, self.rng, self.poison, self.chunks = policy, rng, poison, chunks
        self.plan = Schedule(policy, pace=PACE)
        self.workers: dict[bytes, Worker] = {}
        self.leases: set[tuple[bytes, int]] = set()
        self.gone: set[bytes] = set()
        self.committed: set[int] = set()
        self.given_up: dict[int, tuple[str, ...]] = {}
        self.now, self.read, self.finished, self.names = 0.0, 0, 0, 0

    def take(self, actions: list[Action]) -> None:
        for action in actions:
            assert not self.finished
            match action:
                case Lease(worker, chunk, until):
                    assert (worker, chunk) not in self.leases
                    assert worker not in self.gone
                    assert until > self.now
                    assert chunk not in self.committed
                    assert chunk not in self.given_up
                    self.leases.add((worker, chunk))
                    assert sum(held == chunk for _, held in self.leases) <= 2
                    assert len(self.leases) <= PACE.in_flight
                    known = self.workers.get(worker)
                    if known and known.deaf_until <= self.now:
                        known.chunks[chunk] = self.now + self.rng.expovariate(0.3)
                case Revoke(worker, chunk):
                    self.leases.discard((worker, chunk))
                    if worker in self.workers:
                        self.workers[worker].chunks.pop(chunk, None)
                case GaveUp(chunk, reasons):
                    assert chunk not in self.committed
                    self.given_up[chunk] = reasons
                    self.leases = {one for one in self.leases if one[1] != chunk}
                case Finished():
                    self.finished += 1
                    assert not self.leases

    def step(self, calm: bool) -> None:
        self.now += self.rng.expovariate(2.0)
        draw = self.rng.random()
        if self.read < self.chunks and draw < 0.3:
            self.read = min(self.chunks, self.read + self.rng.randrange(1, 9))
            self.take(self.plan.grown(self.read, self.now))
            if self.read == self.chunks:
                self.take(self.plan.ended(self.now))
        if not calm and self.rng.random() < 0.005:
            self.begin_anew()
        if len(self.workers) < 2 or (draw > 0.95 and len(self.workers) < 6):
            self.names += 1
            name = str(self.names).encode()
            self.workers[name] = Worker(self.rng.randrange(1, 4))
            self.take(self.plan.joined(name, self.workers[name].slots, self.now))
        if not calm:
            self.mishap()
        for name, worker in list(self.workers.items()):
            if worker.deaf_until <= self.now:
                self.work(name, worker)
        due = self.plan.due
        if due is not None and due <= self.now:
            self.take(self.plan.tick(self.now))
            later = self.plan.due
            assert later is None or later > self.now, "the timer would never rest"

    def begin_anew(self) -> None:
        """Another coordinator goes on; it knows what the store knows."""
        self.plan = Schedule(self.policy, self.committed, PACE)
        self.read, self.leases, self.given_up = 0, set(), {}
        for name, worker in self.workers.items():
            self.take(self.plan.joined(name, worker.slots, self.now, list(worker.chunks)))

    def mishap(self) -> None:
        name = self.rng.choice(sorted(self.workers))
        draw = self.rng.random()
        if draw < 0.02:  # killed, and nobody says so
            del self.workers[name]
        elif draw < 0.04:
            del self.workers[name]
            self.gone.add(name)
            self.leases = {one for one in self.leases if one[0] != name}
            self.take(self.plan.left(name, self.now))
        elif draw < 0.08:
            self.workers[name].deaf_until = self.now + self.rng.uniform(1, 30)
        elif draw < 0.1:
            worker = self.workers[name]
            worker.chunks = dict.fromkeys(worker.chunks, self.now + 1000.0)  # it hangs

    def work(self, name: bytes, worker: Worker) -> None:
        over = [chunk for chunk, at in worker.chunks.items() if at <= self.now]
        for chunk in over:
            del worker.chunks[chunk]
            self.leases.discard((name, chunk))
            if chunk in self.poison:
                self.take(self.plan.failed(name, chunk, "poison", self.now))
                continue
            others = {one for one in self.leases if one[1] == chunk}
            self.committed.add(chunk)
            actions = self.plan.done(name, chunk, self.now)
            assert {tuple(a) for a in actions if isinstance(a, Revoke)} == others
            self.leases -= others
            self.take(actions)
            if self.rng.random() < 0.1:
                assert self.plan.done(name, chunk, self.now) == []
        if self.rng.random() < 0.5:
            self.take(self.plan.heartbeat(name, list(worker.chunks), self.now))


def run(policy: Policy, seed: int) -> World:
    rng = random.Random(seed)
    chunks = rng.randrange(1, 80)
    poison = set(rng.sample(range(chunks), rng.randrange(min(4, chunks))))
    world = World(policy, rng, poison, chunks)
    for step in range(20_000):
        world.step(calm=step > 1500)
        assert world.plan.chunks(ChunkState.COMMITTED) == BitMap(world.committed)
        assert world.plan.chunks(ChunkState.LEASED) == BitMap({chunk for _, chunk in world.leases})
        if world.finished:
            break
    assert world.finished == 1
    return world


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_all_is_learned_but_what_cannot_be(seed: int) -> None:
    for policy in (AtRandom(bytes(16)), LeastOverlap(bytes(16)), InOrder()):
        world = run(policy, seed)
        assert world.committed | world.given_up.keys() == set(range(world.chunks))
        assert world.poison <= world.given_up.keys()
        for reasons in world.given_up.values():
            assert reasons
            assert set(reasons) <= {"poison", "4 workers fell silent or left while learning it"}


def test_workers_get_chunks_in_proportion_to_their_speed_and_a_slow_one_holds_nobody_up() -> None:
    takes = {A: 1.0, B: 10.0, C: 500.0}  # seconds a chunk
    plan = Schedule(InOrder(), pace=PACE)
    begun: dict[tuple[bytes, int], float] = {}
    done: list[bytes] = []
    over, now = False, 0.0

    def take(actions: list[Action]) -> None:
        nonlocal over
        for act in actions:
            over = over or isinstance(act, Finished)
            if isinstance(act, Lease):
                begun[act.worker, act.chunk] = now
            elif isinstance(act, Revoke):
                begun.pop((act.worker, act.chunk), None)

    for worker in takes:
        take(plan.joined(worker, 1, now))
    take(plan.grown(220, now))
    take(plan.ended(now))
    while not over:
        now += 0.5
        for worker in takes:
            take(plan.heartbeat(worker, [chunk for one, chunk in begun if one == worker], now))
        take(plan.tick(now))
        for (worker, chunk), since in sorted(begun.items()):
            if now - since >= takes[worker] and begun.pop((worker, chunk), None) is not None:
                done.append(worker)
                take(plan.done(worker, chunk, now))
    assert 9 <= done.count(A) / done.count(B) <= 11
    assert done.count(C) == 0
    assert now <= 220 / 1.1 + 2 * takes[B]
