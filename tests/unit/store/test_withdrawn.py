"""A shard forgets a chunk and nothing else: what it holds is a function of its set of chunks."""

import random
from collections.abc import Iterable, Iterator
from contextlib import suppress

import numpy as np
import pytest

from giaann_p2p.errors import StoreError, UsageError
from giaann_p2p.model.delta import EMPTY, total
from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.store.applied import WITHDRAWN, Applied
from giaann_p2p.store.codec import sheaf
from giaann_p2p.store.content import Content
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update, cut
from giaann_p2p.swarm.reading.row_match import same
from tests.helpers_store import JOB, NEURONS, state_of
from tests.unit.store.helpers_archive import ALL, LAYOUT, LESSONS, begun, learned, numbers, told


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, disk: FakeDisk) -> Iterator[Store]:
    with begun(disk if request.param == "disk" else None) as store:
        yield store


def back(*chosen: int, shards: Iterable[int] = ALL) -> list[Update]:
    """Return withdrawals."""
    return [one._replace(chunk=one.chunk | WITHDRAWN) for one in told(*chosen, shards=shards)]


def check(store: Store) -> None:
    """Check each shard against its set, by adding up deltas one by one."""
    for shard, applied in store.sets(ALL).items():
        there = [
            n for n in applied.of(JOB) if n < WITHDRAWN and n + WITHDRAWN not in applied.of(JOB)
        ]
        deltas = [cut(update, np.array([shard]), LAYOUT).delta for update in told(*there)]
        wanted = Content(np.array([shard], np.uint16), [applied], total([EMPTY, EMPTY, *deltas]))
        assert store.content(shard).digest == wanted.digest
        assert applied.withdrawn <= applied


def check_reads(store: Store, expected: Store) -> None:
    """Check that both answer alike, row by row and in one go."""
    words = {Neuron(*pair) for pair in zip(*_pairs(), strict=True)} | set(NEURONS)
    question = Question(sorted(words))
    concept, feature = (np.array(part, np.uint64) for part in zip(*question.neurons, strict=True))
    at_once = sheaf.decode(store.rows(concept, feature), store.limits).read(question)
    answers = zip(expected.read(question), store.read(question), at_once, strict=True)
    assert all(same(wanted, one) and same(wanted, other) for wanted, one, other in answers)


def _pairs() -> tuple[list[int], list[int]]:
    deltas = [lesson.delta for lesson in LESSONS]
    return (
        [int(n) for delta in deltas for n in delta.concept],
        [int(n) for delta in deltas for n in delta.feature],
    )


def test_what_is_withdrawn_leaves_no_trace_in_what_is_held(store: Store) -> None:
    store.apply(told(0, 1, 2, 3))
    assert [list(new) for new in store.apply(back(1, 3))] == [list(ALL)] * 2
    check_reads(store, learned(0, 2))  # which is not merged yet
    assert [store.content(n).digest for n in ALL] == [learned(0, 2).content(n).digest for n in ALL]
    assert store.statistics().rows == learned(0, 2).statistics().rows
    assert store.statistics().columns == learned(0, 2).statistics().columns
    check_reads(store, learned(0, 2))
    assert store.applied(0, JOB) == numbers(0, 1, 2, 3, 1 + WITHDRAWN, 3 + WITHDRAWN)
    assert [list(new) for new in store.apply([*back(1), *told(1, 3)])] == [[]] * 3
    check(store)


def test_all_may_be_withdrawn(store: Store) -> None:
    store.apply(told(0))
    store.apply(back(0))
    check_reads(store, learned())
    store.compact()
    check_reads(store, learned())
    assert store.statistics()[:4] == (0, 0, 0, 0)
    store.apply(told(1))
    check_reads(store, learned(1))
    check(store)


def test_a_chunk_that_is_withdrawn_before_it_comes_never_comes(store: Store) -> None:
    store.apply(back(0))
    assert store.applied(0, JOB) == numbers(0, WITHDRAWN)
    assert [list(new) for new in store.apply(told(0, 1))] == [[], list(ALL)]
    store.apply([*back(2), *told(2)])
    store.apply([*told(3), *back(3)])  # the first of them counts, and the other may come again
    assert store.applied(0, JOB) == numbers(0, 1, 2, 3, WITHDRAWN, 2 + WITHDRAWN)
    store.apply(back(3))
    check_reads(store, learned(1))
    check(store)


def test_a_store_that_is_opened_again_is_the_same(disk: FakeDisk) -> None:
    store = begun(disk)
    store.apply(told(0, 1, 2))
    store.apply(back(1, shards=[0, 2]))
    before = state_of(store)
    with Store.open(disk, retain=True) as again:
        assert state_of(again) == before
        again.snapshot()
        again.apply(back(1, shards=[1]))
        check(again)
        assert [u.shards.tolist() for u in again.recall(JOB, 1 | WITHDRAWN, ALL)] == [[0, 2], [1]]


def test_what_was_not_added_cannot_be_withdrawn_and_nothing_is_changed(store: Store) -> None:
    store.apply(told(0, 1))
    (other,) = back(0)
    other = other._replace(delta=told(5)[0].delta)
    before = state_of(store)
    with pytest.raises(StoreError, match="chunk 0 cannot be withdrawn"):
        store.apply([*told(2), other])
    assert state_of(store) == before
    store.apply(back(0))
    check(store)


def test_a_shard_without_what_is_withdrawn_there_takes_the_place_of_one_with_it(
    store: Store,
) -> None:
    store.apply(told(0, 1))
    theirs = learned(0, 1, 2)
    theirs.apply(back(1))
    for n in ALL:
        store.adopt(theirs.content(n))
    check(store)
    check_reads(store, learned(0, 2))
    store.adopt(learned(0, 1).content(0))  # nothing of it comes back
    check(store)


def test_adopting_never_needs_what_is_gone_on_both_sides(store: Store) -> None:
    store.apply(told(0, 1, 2))
    store.apply(back(1))
    store.release(JOB, [1, 1 | WITHDRAWN])
    theirs = learned(0, 3)
    store.adopt(theirs.content(2))
    check(store)
    with pytest.raises(UsageError, match="in common, each has others"):
        store.adopt(learned(1, 3).content(1))  # which holds what would have to be subtracted


@pytest.mark.parametrize(
    "seed",
    [*range(15), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(15, 60))],
)
def test_any_history_comes_to_what_its_sets_say(seed: int) -> None:
    rng = random.Random(seed)
    disks = [FakeDisk() for _ in range(3)]
    stores = [begun(disk) for disk in disks]
    for _ in range(40):
        at = rng.randrange(3)
        store = stores[at]
        chunks = rng.sample(range(8), rng.randrange(1, 4))
        shards = sorted(rng.sample(ALL, rng.randrange(1, 5)))
        deed = rng.randrange(5)
        if deed in (0, 1):
            store.apply(told(*chunks, shards=shards))
        elif deed == 2:
            store.apply(back(chunks[0], shards=shards))
        elif deed == 3:
            other = rng.choice(stores)
            with suppress(UsageError):  # some in common, and each has others that are not kept
                for n in shards:
                    store.adopt(other.content(n))
        else:
            stores[at] = Store.open(disks[at], retain=True)
        check(stores[at])
    gone = {
        n for store in stores for held in store.sets(ALL).values() for n in held.withdrawn.of(JOB)
    }
    for store in stores:
        store.apply(back(*gone))
        store.apply(told(*range(8)))
        check(store)
    assert state_of(stores[0]) == state_of(stores[1]) == state_of(stores[2])


def test_the_withdrawals_of_chunks_are_told_from_the_chunks() -> None:
    chunks = Applied().plus(JOB, 3).plus(JOB, 7).plus(JOB, 7 | WITHDRAWN)
    assert chunks.withdrawn == Applied().plus(JOB, 7)
    assert chunks.withdrawn.withdrawals == Applied().plus(JOB, 7 | WITHDRAWN)
    assert not Applied().plus(JOB, 3).withdrawn
    assert not Applied().withdrawn
