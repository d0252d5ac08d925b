"""Stores whose disk fails at any operation, loses its power at any, or is full.

With `retain` they also keep the deltas: after whatever happened, each that was not released is at
hand, and is what it was.
"""

import contextlib
import errno
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import pytest

from giaann_p2p.errors import DiskError, StoreError, UsageError
from giaann_p2p.store.content import Content
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.sync import ALWAYS, NEVER, Sync
from giaann_p2p.store.fsck import fsck
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.memory import columns
from giaann_p2p.store.store import Store
from tests.helpers import SMALL
from tests.helpers_store import (
    JOB,
    State,
    assert_recalled,
    assert_rows,
    copy_of,
    lessons,
    names_of,
    plain_state,
    plain_store,
    retained_of,
    state_of,
)
from tests.plain import store as plain

LAYOUT = Layout(shards=4)
ALL = range(4)
LESSONS = lessons(14)
NAMES = names_of(LESSONS)
NEURONS = sorted({neuron for one in LESSONS for neuron in one.rows})
OFTEN = 1 << 30

Atom = Callable[[plain.Store], object]


class Step(NamedTuple):
    """Something done to a store, and what it means: parts of which a crash keeps the first ones."""

    do: Callable[[Store], object]
    atoms: list[Atom]
    logged: bool = True


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_LEAST_PENDING", 100)


def apply(*chosen: int, shards: range = ALL) -> Step:
    some = [LESSONS[i] for i in chosen]
    return Step(
        lambda store: store.apply([one.update(shards) for one in some]),
        [lambda expected, one=one: expected.apply(one.chunk, shards, one.rows) for one in some],
    )


def note(key: str, value: bytes) -> Step:
    return Step(
        lambda store: store.note(key, value), [lambda expected: expected.notes.update({key: value})]
    )


def hold(*shards: int) -> Step:
    return Step(lambda store: store.hold(shards), [lambda expected: expected.hold(shards)])


def drop(*shards: int) -> Step:
    return Step(lambda store: store.drop(shards), [lambda expected: expected.drop(shards)])


def done(expected: plain.Store, step: Step) -> None:
    for atom in step.atoms:
        atom(expected)


@cache
def elsewhere(count: int, shard: int, *chosen: int) -> tuple[Content, plain.Shard]:
    """Return what a shard of so many holds in another store."""
    layout = Layout(shards=count)
    store, expected = Store.in_memory(SMALL, layout), plain_store(layout)
    for step in (hold(*range(count)), apply(*chosen, shards=range(count))):
        step.do(store)
        done(expected, step)
    return store.content(shard), expected.shards[shard]


def release(*chosen: int) -> Step:
    chunks = [LESSONS[i].chunk for i in chosen]
    return Step(
        lambda store: store.release(JOB, [chunk.number for chunk in chunks]),
        [lambda expected: expected.release(*chunks)],
        logged=False,
    )


def adopt(shard: int, *chosen: int) -> Step:
    return Step(
        lambda store: store.adopt(elsewhere(store.layout.shards, shard, *chosen)[0]),
        [lambda expected: expected.adopt(shard, elsewhere(expected.number, shard, *chosen)[1])],
    )


def double(number: int) -> Step:
    layout = Layout(shards=number)
    return Step(
        lambda store: store.double(number),
        [lambda expected: expected.double(lambda neuron: layout.shard_of(*neuron), number)],
    )


def apply_to_all(*chosen: int) -> Step:
    """Apply chunks to all shards that are held, as many as there are by then."""
    some = [LESSONS[i] for i in chosen]
    return Step(
        lambda store: store.apply([one.update(store.shards.tolist()) for one in some]),
        [
            lambda expected, one=one: expected.apply(one.chunk, sorted(expected.shards), one.rows)
            for one in some
        ],
    )


def drop_last() -> Step:
    """Drop the last shard, which is one part of a former shard if there was a doubling."""
    return Step(
        lambda store: store.drop([store.layout.shards - 1]),
        [lambda expected: expected.drop([expected.number - 1])],
    )


def hold_last() -> Step:
    return Step(
        lambda store: store.hold([store.layout.shards - 1]),
        [lambda expected: expected.hold([expected.number - 1])],
    )


SNAPSHOT, COMPACT = Step(Store.snapshot, []), Step(Store.compact, [])

STEPS = [
    hold(*ALL),
    apply(0, 1),
    note("k", b"1"),
    apply(2, 0, 3),
    SNAPSHOT,
    apply(4),
    drop(1),
    apply(5, 6, shards=range(2, 4)),
    hold(1),
    adopt(1, 0, 7),
    note("k", b"2"),
    adopt(2, 8, 9),
    COMPACT,
    apply(10, 11, shards=range(1)),
    adopt(0, 0, 1),
    apply(12, 2),
]

RETAINING = [
    hold(*ALL),
    apply(0, 1),
    apply(2, 3, shards=range(2)),
    SNAPSHOT,  # the archive: 0 to 3
    apply(4, 2),
    drop(1),
    SNAPSHOT,
    release(0, 1, 3),
    apply(5, 6, shards=range(2, 4)),
    adopt(2, 0, 1, 7),  # what it lacks is retained: 2, 4, 5 and 6
    adopt(3, 0, 1, 3, 5, 8),
    hold(1),
    SNAPSHOT,
    apply(1, 9, shards=range(1, 2)),
    release(2, 4),
    COMPACT,
    release(5, 6, 9),
    apply(10),
    adopt(0, *range(5), 11),
    release(*range(10)),
    apply(12, shards=range(1, 3)),
]


def doubling(*adopted: int) -> list[Step]:
    return [
        hold(*ALL),
        apply(0, 1),
        apply(2, 3, shards=range(2)),
        SNAPSHOT,
        apply_to_all(4),
        double(8),
        apply_to_all(5),
        drop_last(),
        release(0, 3),
        apply_to_all(6, 2),
        SNAPSHOT,  # the archive: from before the doubling and from after it
        adopt(1, *adopted),
        hold_last(),
        double(32),
        release(5),
        apply_to_all(8, 9),
        drop_last(),
        COMPACT,
        release(1),
        apply_to_all(10, 3),
    ]


DOUBLING = doubling(*range(8))
RETAINING_AND_DOUBLING = doubling(0, 1, 3, 7)  # what it lacks is retained

HISTORIES = [
    pytest.param(STEPS, False, id="forgets"),
    pytest.param(RETAINING, True, id="retains"),
    pytest.param(DOUBLING, False, id="forgets and doubles"),
    pytest.param(RETAINING_AND_DOUBLING, True, id="retains and doubles"),
]
histories = pytest.mark.parametrize(("steps", "retain"), HISTORIES)


def made(sync: Sync = ALWAYS, retain: bool = False) -> tuple[FakeDisk, Store]:
    disk = FakeDisk()
    Store.open(disk, SMALL, LAYOUT).close()
    return disk, Store.open(disk, sync=sync, retain=retain)


def operations(steps: list[Step], retain: bool = False, sync: Sync = ALWAYS) -> int:
    disk, store = made(sync, retain)
    before = disk.operations
    for step in steps:
        step.do(store)
    return disk.operations - before


def versions(expected: plain.Store, step: Step) -> Iterator[plain.Store]:
    """Iterate over what may be left of a step, from nothing to all."""
    expected = expected.copy()
    yield expected.copy()
    for atom in step.atoms:
        atom(expected)
        yield expected.copy()


def assert_retained(store: Store, left: list[plain.Store]) -> plain.Store:
    """What one of these retained is retained, and right; what was released may be back.

    Return the last of those that it may be.
    """
    found, state = retained_of(store), state_of(store)
    matching = [expected for expected in left if expect(expected) == state]
    assert any(contains(found, expected.retained) for expected in matching)
    assert_recalled(store, matching[-1])
    return matching[-1]


def contains(found: dict[int, set[plain.Chunk]], wanted: dict[int, set[plain.Chunk]]) -> bool:
    return all(chunks <= found[number] for number, chunks in wanted.items())


def assert_retained_after_a_crash(disk: FakeDisk, left: list[plain.Store], seed: int) -> None:
    crashed = disk.crash(random.Random(seed))
    with Store.open(crashed, retain=True) as store:
        expected = assert_retained(store, left)
        state, found = state_of(store), retained_of(store)
        store.snapshot()
    again = Store.open(crashed.crash(random.Random(seed)), retain=True)
    assert state_of(again) == state
    assert contains(retained_of(again), found)
    assert_recalled(again, expected)
    assert not fsck(crashed).problems


def expect(expected: plain.Store) -> State:
    return plain_state(expected, NAMES)


def assert_one_of(disk: FakeDisk, wanted: list[State], seeds: range) -> None:
    """However the power goes, one of these states is left, and the store goes on from there."""
    for seed in seeds:
        crashed = disk.crash(random.Random(seed))
        assert state_of(Store.open(crashed, readonly=True)) in wanted
        store = Store.open(crashed)
        assert state_of(store) in wanted
        store.note("alive", b"")
        again = Store.open(crashed.crash(random.Random(seed)))
        assert state_of(again) == state_of(store)


FAILURES = [
    pytest.param(errno.EIO, False, 1, id="EIO"),
    pytest.param(errno.EIO, True, 1, id="EIO-half"),
    pytest.param(errno.ENOSPC, True, 3, id="ENOSPC-thrice"),
    pytest.param(errno.EIO, False, OFTEN, id="dead"),
    pytest.param(errno.EIO, True, OFTEN, id="dead-half"),
]


@pytest.mark.slow
@histories
@pytest.mark.parametrize(("error", "partial", "times"), FAILURES)
def test_what_was_acknowledged_outlives_a_failure_of_any_operation(
    error: int, partial: bool, times: int, steps: list[Step], retain: bool
) -> None:
    total = operations(steps, retain)
    assert total > 50
    for n in range(1, total + 1, 2 if retain and times > 1 else 1):  # it fails at n + 1, too
        disk, store = made(retain=retain)
        disk.fail_at(n, error, partial, times)
        expected, failed = plain_store(LAYOUT, retain), 0
        for step in steps:
            try:
                left = list(versions(expected, step))
            except plain.RefusedError:  # for what could not be done before
                with pytest.raises(UsageError):
                    step.do(store)
                continue
            try:
                step.do(store)
            except DiskError:
                failed += 1
                assert_rows(store, expected, NEURONS)
                if failed == 1:
                    assert_one_of(disk, list(map(expect, left)), range(n, n + 1))
                    if retain:
                        assert_retained_after_a_crash(disk, left, n)
            else:
                expected = left[-1]
        told = times == 1 or n == total or retain  # no mark, and no release, tells
        assert failed or told
        assert state_of(store) == expect(expected)
        if retain:
            assert_retained(store, [expected])
        if times < OFTEN:
            disk.fail_at(1, error, times=0)
            goes_on(disk, store, expected, n)
        closed_at_last(store)


def goes_on(disk: FakeDisk, store: Store, expected: plain.Store, seed: int) -> None:
    """A disk that works again is written to again, and nothing of what failed comes back."""
    for step in (hold(3), apply(13, shards=range(3, 4)), note("works", b"again"), SNAPSHOT):
        step.do(store)
        done(expected, step)
    assert_one_of(disk, [expect(expected)], range(seed, seed + 1))
    if expected.retain:
        assert_retained(store, [expected])
        if seed % 3 == 0:
            assert_retained_after_a_crash(disk, [expected], seed)


def closed_at_last(store: Store) -> None:
    """Closing may tell of the disk, as often as it is tried; it lets go all the same."""
    for _ in range(2):
        with contextlib.suppress(DiskError):
            store.close()
    with pytest.raises(UsageError, match="closed"):
        store.note("k", b"")


@histories
def test_without_syncs_a_crash_leaves_the_first_of_what_was_done(
    steps: list[Step], retain: bool
) -> None:
    for end in range(1, len(steps) + 1):
        disk, store = made(NEVER, retain)
        expected = plain_store(LAYOUT, retain)
        left: list[plain.Store] = []
        for step in steps[:end]:
            step.do(store)
            if not step.logged:  # a crash that takes what came before does not take it back
                for earlier in left:
                    done(earlier, step)
            left += versions(expected, step)
            done(expected, step)
        assert_one_of(disk, list(map(expect, left)), range(3))
        if retain:
            assert_retained_after_a_crash(disk, left, end)
        store.sync()
        assert_one_of(disk, [expect(expected)], range(3))


@pytest.mark.slow
@pytest.mark.parametrize(
    "steps", [RETAINING, RETAINING_AND_DOUBLING], ids=["same number", "doubles"]
)
def test_records_that_are_written_anew_are_found_where_they_are(steps: list[Step]) -> None:
    """Where the disk fails, records that were acknowledged without a sync go to the next file."""
    moved = 0
    for n in range(1, operations(steps, True, NEVER) + 1):
        disk, store = made(NEVER, True)
        disk.fail_at(n, errno.EIO, bool(n % 2), 1 + n % 3)
        expected = plain_store(LAYOUT, True)
        for step in steps:
            for _ in range(4):
                try:
                    step.do(store)
                    break
                except DiskError:
                    moved += store._disk is not None and len(store._disk.log._again) > 0
            done(expected, step)
        assert_retained(store, [expected])
        disk.fail_at(1, errno.EIO, times=0)
        store.sync()
        assert_retained_after_a_crash(disk, [expected], n)
    assert moved > 3


def test_a_store_is_made_or_not_whatever_fails_meanwhile() -> None:
    whole = FakeDisk()
    Store.open(whole, SMALL, LAYOUT)
    for n in range(1, whole.operations + 1):
        for partial in (False, True):
            for times in (1, 2, OFTEN):
                disk = FakeDisk()
                disk.fail_at(n, errno.EIO, partial, times)
                with contextlib.suppress(DiskError):
                    Store.open(disk, SMALL, LAYOUT)
                disk.fail_at(1, errno.EIO, times=0)
                for left in (disk, copy_of(disk)):
                    store = Store.open(left, SMALL, LAYOUT)
                    store.hold([0])
                    assert Store.open(left, readonly=True).shards.tolist() == [0]


def test_power_that_goes_while_a_store_is_made_never_leaves_half_of_one() -> None:
    whole = FakeDisk()
    Store.open(whole, SMALL, LAYOUT)
    for n in range(1, whole.operations + 1):
        for seed in range(10):
            disk = FakeDisk()
            disk.fail_at(n, errno.EIO, bool(seed % 2), OFTEN)
            with contextlib.suppress(DiskError):
                Store.open(disk, SMALL, LAYOUT)
            crashed = disk.crash(random.Random(seed))
            try:
                store = Store.open(crashed, SMALL, LAYOUT)
            except StoreError as error:  # a rename of which neither name was kept
                assert "store.json is missing" in str(error)  # noqa: PT017
                assert n >= whole.operations - 2
            else:
                store.hold([0])
                assert Store.open(crashed, readonly=True).shards.tolist() == [0]


@histories
def test_failures_of_opening_are_told_and_change_nothing(steps: list[Step], retain: bool) -> None:
    disk, store = made(retain=retain)
    expected = plain_store(LAYOUT, retain)
    for step in steps:
        step.do(store)
        done(expected, step)
    probe = copy_of(disk)
    before = probe.operations
    Store.open(probe, retain=retain)
    for n in range(1, probe.operations - before + 1):
        for partial in (False, True):
            for times in (1, OFTEN):
                other = copy_of(disk)
                other.fail_at(n, errno.EIO, partial, times)
                try:
                    assert_retained(Store.open(other, retain=retain), [expected])
                except DiskError:
                    assert times
                assert state_of(Store.open(other, readonly=True)) == expect(expected)
                other.fail_at(1, errno.EIO, times=0)
                assert_retained(Store.open(other, retain=retain), [expected])


def test_a_full_disk_takes_nothing_reads_go_on_and_space_is_used_as_it_returns() -> None:
    disk, store = made()
    expected = plain_store(LAYOUT)
    for step in STEPS[:5]:
        step.do(store)
        done(expected, step)
    used = sum(disk.size(name) for name in disk.names())
    for free in (0, 1, 30, 100, 300):
        disk.capacity = used + free
        refused = 0
        for step in (apply(4, 5, 6, 7, 8), SNAPSHOT, note("x", bytes(400)), adopt(2, 8, 9)):
            with pytest.raises(DiskError, match="No space left"):
                step.do(store)
            refused += 1
            assert_rows(store, expected, NEURONS)
            assert state_of(store) == expect(expected)
        assert refused == 4
        assert state_of(Store.open(disk, readonly=True)) == expect(expected)
    disk.capacity = None
    for step in STEPS[5:]:
        step.do(store)
        done(expected, step)
    assert state_of(store) == expect(expected)
    assert_one_of(disk, [expect(expected)], range(3))
