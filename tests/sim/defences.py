"""Defences, each with the attack that it holds off, and how to switch it off.

An attack is a small swarm with one hostile peer, or a few; it tells how often it came through.
"""

import random
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import pytest
from msgspec.structs import replace

from giaann_p2p.sim.client import Client, Habit
from giaann_p2p.sim.hostile import cast
from giaann_p2p.sim.hostile.cast import Hostile
from giaann_p2p.sim.hostile.flooder import Flooder
from giaann_p2p.sim.hostile.forger import Forger, Forgery
from giaann_p2p.sim.hostile.liar import Liar, Lie
from giaann_p2p.sim.hostile.shirker import Shirker, Shirking
from giaann_p2p.sim.hostile.stranger import Pretence, Stranger
from giaann_p2p.sim.hostile.watch import Watch
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.sim.trainer import Trainer
from giaann_p2p.sim.world import Rules
from giaann_p2p.store import update
from giaann_p2p.swarm.members import directory, exclusion
from giaann_p2p.swarm.members.liar_backoff import LiarBackoff
from giaann_p2p.swarm.reading import reader
from giaann_p2p.swarm.reading.row_vote import NOTHING
from giaann_p2p.swarm.replication import replica_audit
from giaann_p2p.swarm.replication.push_budget import Bill, PushBudget
from giaann_p2p.swarm.replication.replica_audit import ReplicaAudit
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.training import coordinator, leases
from giaann_p2p.swarm.training.schedule import Schedule
from giaann_p2p.swarm.training.trust import Trust
from giaann_p2p.swarm.wire import admission, record, token
from giaann_p2p.swarm.wire.admission import Admission, Pass
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.record import FRONT_BYTES, Announcement
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.voucher import Notary

Patch = Callable[[pytest.MonkeyPatch], None]
Make = Callable[[Swarm], Hostile]
Counts = TypeVar("Counts", int, list[int])
Came = Callable[[Swarm, Watch], int]

BEGINS = 15.0
SETTINGS = Settings(patience=3.0)
CHUNKS = 40


class Defence(NamedTuple):
    """See the module."""

    name: str
    attack: Callable[[], int]
    off: Patch


def attack(
    came: Callable[[Swarm, Watch], Counts],
    *make: Make,
    seconds: float = 20.0,
    reads: bool = False,
    redundancy: int = 1,
    settings: Settings = SETTINGS,
    seed: int = 7,
) -> Counts:
    """Let hostile peers do what they do for a while, and count what came through."""
    rules = Rules(shards=8, redundancy=redundancy)
    swarm = Swarm(seed, settings=settings, rules=rules, admission="token")
    watch = swarm.promises = Watch(swarm)
    for _ in range(4):
        swarm.add_storage()
    job = random.Random("7 job").randbytes(16)
    habit = Habit(0.5, BEGINS, cast.VERIFY) if reads else Habit(since=1e9)
    swarm.clients.append(Client(swarm, "client0", job, [0, 1, 2], 0.0, habit))
    for one in make:
        cast.let(swarm, one(swarm), BEGINS)
    swarm.clock.run_until(BEGINS + seconds)
    return came(swarm, watch)


def count(what: str) -> Came:
    """Count what the watch counted."""
    return lambda swarm, watch: sum(n for name, n in watch.counts.items() if name.startswith(what))


def each(*came: Came) -> Callable[[Swarm, Watch], list[int]]:
    """Count several things in one history, since each history takes seconds."""
    return lambda swarm, watch: [one(swarm, watch) for one in came]


def liar(*lies: Lie) -> Make:
    return lambda swarm: Liar(swarm, "liar", 0.0, frozenset(lies))


def forger(*forgeries: Forgery) -> Make:
    return lambda swarm: Forger(swarm, "forger", 0.0, frozenset(forgeries))


def shirker(*ways: Shirking) -> Make:
    return lambda swarm: Shirker(swarm, "shirker", 0.0, frozenset(ways))


def stranger(pretence: Pretence) -> Make:
    return lambda swarm: Stranger(swarm, f"stranger {pretence.name}", 0.0, pretence)


def wrong_rows() -> int:
    return attack(count("a client believes"), liar(Lie.ROWS), reads=True)


def found_again() -> int:
    """A liar is asked again, and found out again, within the time for which it is shunned."""
    found = attack(count("liars shunned"), liar(Lie.ROWS), seconds=50.0, reads=True)
    return max(0, found - 1)


def forged(forgery: Forgery) -> Callable[[], int]:
    return lambda: attack(count("a record that was made up"), forger(forgery))


def replayed() -> int:
    return attack(count("an old record"), forger(Forgery.REPLAY), seconds=40.0)


def impossible() -> int:
    return attack(count("pushes taken"), shirker(Shirking.IMPOSSIBLE))


def served(pretence: Pretence) -> Callable[[], int]:
    return lambda: attack(count("a stranger is told"), stranger(pretence), seconds=15.0)


def listed() -> int:
    return attack(count("a record that was made up"), stranger(Pretence.ROLE))


def at_work(*ways: Shirking, honest: int = 1) -> Make:
    """Have a text learned by honest compute peers and a hostile one."""

    def make(swarm: Swarm) -> Hostile:
        for _ in range(honest):
            swarm.add_compute()
        job = random.Random("7 other job").randbytes(16)
        swarm.trainers.append(Trainer(swarm, "trainer", job, 5000, CHUNKS, 0.0))
        return shirker(*ways)(swarm)

    return make


def hostage() -> int:
    """Chunks that a worker keeps, which are never learned."""

    def left(swarm: Swarm, watch: Watch) -> int:
        return int(not swarm.trainers[0].done)

    return attack(left, at_work(Shirking.SILENT), seconds=150.0)


def alone() -> int:
    """Deltas that nobody came to but who pushes them, where two have to."""
    return attack(count("pushes taken"), at_work(Shirking.FALSE, Shirking.EMPTY), redundancy=2)


def misled() -> int:
    """Let a liar sign false results from the start, in four histories.

    Count its results that a coordinator orders beyond two a history, and the histories in which it
    is never found out. (When no other peer is free, one result is enough.)
    """

    def at_once(swarm: Swarm) -> Hostile:
        hostile = at_work(Shirking.SIGNS, honest=2)(swarm)
        hostile.begin_to_lie()
        return hostile

    def unseen(swarm: Swarm, watch: Watch) -> int:
        return int(not any(trainer.liars for trainer in swarm.trainers))

    seeds, counted = range(7, 11), each(count("false results ordered"), unseen)
    found = [attack(counted, at_once, seconds=100.0, seed=seed) for seed in seeds]
    believed, never = map(sum, zip(*found, strict=True))
    return max(0, believed - 2 * len(seeds)) + never


def hollow(lie: Lie) -> Callable[[], int]:
    """Shards of which honest peers have fewer replicas than there should be."""

    def fewer(swarm: Swarm, watch: Watch) -> int:
        counts = Counter(
            shard
            for one in swarm.storages
            for shard in one.core.replicas.all(ReplicaState.READY).tolist()
        )
        return sum(counts[shard] < swarm.rules.replicas for shard in range(swarm.rules.shards))

    often = Settings(patience=3.0, audit_every=5.0)
    return lambda: attack(fewer, liar(lie), seconds=100.0, settings=often)


def slandered() -> int:
    """Honest owners that lose shards by the word of one other."""
    return attack(count("an honest peer is barred"), liar(Lie.SLANDERS))


def poisoned(strangers: int = 2, seconds: float = 20.0) -> int:
    """Have strangers push poison to an open swarm in which honest peers stand, and learn meanwhile.

    Count what owners take beyond what all newcomers may push, and what is not learned.
    """
    swarm = Swarm(7, settings=replace(SETTINGS, founding=10.0), rules=Rules(shards=8))
    watch = swarm.promises = Watch(swarm)
    for _ in range(4):
        swarm.add_storage()
    for _ in range(2):
        swarm.add_compute()
    swarm.clock.run_until(60.0)
    for number in range(strangers):
        cast.let(swarm, Flooder(swarm, f"flooder{number}", 0.0), 61.0)
    job = random.Random("7 other job").randbytes(16)
    swarm.trainers.append(Trainer(swarm, "trainer", job, 5000, CHUNKS, 0.0))
    swarm.clock.run_until(61.0 + seconds)
    cast.leave(swarm)
    swarm.clock.run_until(61.0 + 7 * seconds)
    may = SETTINGS.newcomers_jobs * (1 + seconds / 60) + 1
    taken = watch.counts["pushes taken"] - may * len(swarm.storages)
    return max(0, int(taken)) + sum(not trainer.done for trainer in swarm.trainers)


def boasted(came: Callable[[Swarm, Watch], Counts]) -> Counts:
    """Count what comes of one of two compute peers that says it is done, and brings nothing."""
    return attack(came, at_work(Shirking.BOASTS), seconds=150.0)


def unlearned(swarm: Swarm, watch: Watch) -> int:
    """Count the chunks that were to be learned, and that no quorum of owners has."""
    (trainer,) = swarm.trainers
    return CHUNKS - sum(job == trainer.job for job, _ in watch.committed) if trainer.done else 1


def boasts_again() -> int:
    """A peer that was found to bring nothing is given more to learn, and found again."""
    return max(0, boasted(count("compute peers that brought nothing")) - 1)


def _without_audits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplicaAudit, "due", lambda self, now: [])


def _evading_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(replica_audit, "EVASIONS", 1 << 30)


def _one_name_is_enough(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(exclusion, "majority", lambda count: 1)


def _without_comparing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reader, "checked", lambda verify: NOTHING)


def _without_shunning(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LiarBackoff, "holds", lambda self, peer, now: False)


def _without_signatures(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(directory, "prove", lambda data, announcement: None)


def _whatever_the_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(record, "SKEW", 1 << 40)


def _of_any_swarm(patch: pytest.MonkeyPatch) -> None:
    def unproven(
        data: bytes, now: float, swarm_id: bytes, rules: Rules, owner: Peer | None = None
    ) -> Announcement:
        found = record._decoded(data[FRONT_BYTES:])
        return record.unproven(data, now, found.swarm_id, rules, owner)

    patch.setattr(directory, "unproven", unproven)


def _without_sequences(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(directory.Directory, "announcement", lambda self, *key: None)


def _whatever_it_adds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(update, "check_delta", lambda delta, spec, most=0: None)


def _without_a_gate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Admission, "refusal", lambda self, *question: "")


def _without_roles(patch: pytest.MonkeyPatch) -> None:
    every = dict.fromkeys(admission.MAY_ASK, token.EVERY)
    patch.setattr(admission, "MAY_ASK", every)


def _without_roles_of_records(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Admission, "check", lambda self, said, now: None)


def _without_grants(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(token, "verified", lambda *signed: True)


def _for_ever(patch: pytest.MonkeyPatch) -> None:
    look = Admission.look
    patch.setattr(Admission, "look", lambda self, peer, shown, now: look(self, peer, shown, 0.0))


def _without_a_list(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Admission, "learn", lambda self, data: False)


def _whoever_shows_it(patch: pytest.MonkeyPatch) -> None:
    look = Admission.look

    def stolen(self: Admission, peer: Peer, shown: bytes, now: float) -> Pass:
        member = token.Token.read(shown).member if shown else peer
        return look(self, member, shown, now)

    patch.setattr(Admission, "look", stolen)


def _whoever_signs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Notary, "check", lambda self, update: None)


def _unchecked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Trust, "draws", lambda self, *chunk: False)


def _never_sent_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Trust, "sends_away", lambda self, peer: False)


def _leased_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leases.Leases, "lapsed", lambda self, now: [])
    patch.setattr(coordinator.Coordinator, "_taken", lambda self, *answer: [])
    patch.setattr(Schedule, "_single", lambda self: iter(()))


def _boundless(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PushBudget, "bill", lambda self, *push: Bill((), CHUNKS))


DEFENCES = [
    Defence("rows are compared", wrong_rows, _without_comparing),
    Defence("liars are shunned", found_again, _without_shunning),
    Defence("records are signed", forged(Forgery.SLANDER), _without_signatures),
    Defence("records of tomorrow", forged(Forgery.FUTURE), _whatever_the_time),
    Defence("records of yesterday", forged(Forgery.PAST), _whatever_the_time),
    Defence("records of another swarm", forged(Forgery.ELSEWHERE), _of_any_swarm),
    Defence("older records", replayed, _without_sequences),
    Defence("what a chunk can add", impossible, _whatever_it_adds),
    Defence("leases end", hostage, _leased_for_ever),
    Defence("as many as are asked for stand for a delta", alone, _whoever_signs),
    Defence("who brings nothing learns no more", boasts_again, _never_sent_away),
    Defence("newcomers' work is learned again", misled, _unchecked),
    Defence("owners try each other", hollow(Lie.SHOWS), _without_audits),
    Defence("who never shows anything is wrong", hollow(Lie.EVADES), _evading_for_ever),
    Defence("members only", served(Pretence.NONE), _without_a_gate),
    Defence("roles", served(Pretence.ROLE), _without_roles),
    Defence("roles in the directory", listed, _without_roles_of_records),
    Defence("grants are signed", served(Pretence.MADE), _without_grants),
    Defence("tokens end", served(Pretence.EXPIRED), _for_ever),
    Defence("the list of the revoked", served(Pretence.REVOKED), _without_a_list),
    Defence("a token is its member's", served(Pretence.STOLEN), _whoever_shows_it),
    Defence("newcomers push little", poisoned, _boundless),
    Defence("it takes a majority to bar an owner", slandered, _one_name_is_enough),
]
