"""Which chunk comes next: spread by chance, with least overlap, and without a say in the result."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from pyroaring import BitMap

from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.learn import learn
from giaann_p2p.model.sequence import Ids
from giaann_p2p.swarm.training.chunks import ChunkState
from giaann_p2p.swarm.training.decisions import Lease
from giaann_p2p.swarm.training.overlap import BUCKETS, Common, sketch
from giaann_p2p.swarm.training.policy import AtRandom, LeastOverlap
from giaann_p2p.swarm.training.schedule import Policy, Schedule
from tests.benchmarks.grouping import grouped
from tests.helpers import SMALL, assert_same, built

JOB, OTHER = b"one job of many.", b"and another one."
WORDS = ["cat", "dog", "hat", "mat", "sun", "sky", "oak", "elm"]


def ids(*numbers: int) -> Ids:
    return np.array(numbers, np.uint64)


def drawn(policy: Policy, count: int) -> list[int]:
    return [policy.pick(BitMap(range(0, 200, 2)), []) for _ in range(count)]


@pytest.mark.parametrize("kind", [AtRandom, LeastOverlap])
def test_draws_follow_from_the_job_alone(kind: type[AtRandom]) -> None:
    first = drawn(kind(JOB), 50)
    assert first == drawn(kind(JOB), 50)
    assert first != drawn(kind(OTHER), 50)
    assert set(first) <= set(range(0, 200, 2))
    assert len(set(first)) > 30
    assert kind(JOB).pick(BitMap([7]), [7]) == 7


def test_draws_are_even() -> None:
    counts = np.bincount(drawn(AtRandom(JOB), 5000), minlength=200)[::2]
    assert 20 < counts.min() <= counts.max() < 90


def test_the_one_that_shares_least_is_picked() -> None:
    policy = LeastOverlap(JOB)
    for chunk in range(10):
        policy.note(chunk, sketch(ids(*range(chunk, chunk + 5))))
    assert policy.pick(BitMap([1, 2, 5]), [0]) == 5
    assert policy.pick(BitMap([1, 2, 3]), [5, 6]) in (1, 2, 3)
    assert policy.pick(BitMap([3, 9]), [5, 4]) == 9
    policy.forget(9)
    assert policy.pick(BitMap([1, 9]), [5, 4]) == 1  # what is unknown comes last
    assert policy.pick(BitMap([9]), [5, 4]) == 9
    assert policy.pick(BitMap([4]), [9, 11]) == 4


@pytest.mark.parametrize("seed", range(20))
def test_overlap_is_counted_beyond_the_usual(seed: int) -> None:
    rng = random.Random(seed)
    chunks = [set(rng.sample(range(60), rng.randrange(1, 30))) for _ in range(12)]
    sketches = [sketch(ids(*chunk)) for chunk in chunks]
    common = Common()
    for one in sketches:
        common.add(one)
    others = rng.sample(range(12), 3)
    found = common.beyond(sketches, [sketches[at] for at in others])
    for one, beyond in zip(chunks, found.tolist(), strict=True):
        shared = sum(len(one & chunks[at]) for at in others)
        usual = sum(len(one & other) for other in chunks)
        assert beyond == 12 * shared - 3 * usual


def test_a_sketch_tells_which_buckets_are_touched() -> None:
    found = sketch(ids(5, 5, BUCKETS + 5, (1 << 64) - 1))
    assert np.flatnonzero(found).tolist() == [5, BUCKETS - 1]
    assert set(found.tolist()) == {0, 1}
    assert not sketch(ids()).any()


def plain_groups(columns: Sequence[set[int]], size: int) -> list[list[int]]:
    """Groups, as their rule reads."""
    left, groups = list(range(len(columns))), []
    while left:
        group: list[int] = []
        while left and len(group) < size:
            touched = set().union(*(columns[at] for at in group))
            best = max(left, key=lambda at: len(columns[at] & touched) / (len(columns[at]) + 1))
            group.append(best)
            left.remove(best)
        groups.append(sorted(group))
    return groups


@pytest.mark.parametrize("seed", range(40))
def test_groups_are_those_of_the_plain_version(seed: int) -> None:
    rng = random.Random(seed)
    columns = [set(rng.sample(range(12), rng.randrange(0, 6))) for _ in range(rng.randrange(0, 30))]
    size = rng.randrange(1, 7)
    twice = [ids(*one, *rng.sample(sorted(one), len(one) // 2)) for one in columns]
    assert [group.tolist() for group in grouped(twice, size)] == plain_groups(columns, size)


def test_like_comes_to_like() -> None:
    columns = [ids(at % 4 * 10, at % 4 * 10 + 1) for at in range(32)]
    groups = grouped(columns, 8)
    assert [group.tolist() for group in groups] == [list(range(k, 32, 4)) for k in range(4)]


def sentence(rng: random.Random) -> str:
    return " ".join(f"{word}/N runs/" for word in rng.sample(WORDS, 3))


def learned(policy: Policy, deltas: list[Delta], rng: random.Random) -> Delta:
    """Learn chunks as a schedule says, workers finishing in any order; return the sum."""
    plan = Schedule(policy)
    leased: list[Lease] = []
    done = []
    for worker in (b"a", b"b", b"c"):
        plan.joined(worker, 2, 0)
    actions = plan.grown(len(deltas), 0) + plan.ended(0)
    while True:
        leased += [action for action in actions if isinstance(action, Lease)]
        if not leased:
            break
        worker, chunk, _ = leased.pop(rng.randrange(len(leased)))
        done.append(deltas[chunk])
        actions = plan.done(worker, chunk, 1)
    assert plan.chunks(ChunkState.COMMITTED) == BitMap(range(len(deltas)))
    assert len(done) == len(deltas)
    return total(done)


@pytest.mark.parametrize("seed", range(10))
def test_what_is_learned_is_the_same_whatever_the_policy(seed: int) -> None:
    rng = random.Random(seed)
    chunks = [built(*(sentence(rng) for _ in range(3))) for _ in range(30)]
    deltas = [learn(chunk, SMALL) for chunk in chunks]
    least = LeastOverlap(JOB)
    for number, chunk in enumerate(chunks):
        least.note(number, sketch(chunk.concept))
    one = learned(AtRandom(JOB), deltas, rng)
    two = learned(least, deltas, rng)
    assert_same(one, two)
    assert_same(one, total(deltas))
    assert digest(one) == digest(total(deltas))
