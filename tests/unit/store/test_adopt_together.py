"""Several shards from elsewhere, made durable at once: all of them, or none."""

import random

import numpy as np
import pytest

from giaann_p2p.errors import DiskError, StoreFull, UsageError
from giaann_p2p.store.budget import Budget
from giaann_p2p.store.content import Content
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from tests.helpers import SMALL
from tests.helpers_store import JOB, lessons, state_of

LAYOUT = Layout(shards=4)
ALL = range(4)
LESSONS = lessons(12)


def taught(*chosen: int) -> Store:
    store = Store.in_memory(SMALL, LAYOUT)
    store.hold(ALL)
    store.apply([LESSONS[at].update(ALL) for at in chosen])
    return store


def contents(*chosen: int) -> list[Content]:
    store = taught(*chosen)
    return [store.content(shard) for shard in ALL]


def opened(disk: FakeDisk) -> Store:
    store = Store.open(disk, SMALL, LAYOUT, retain=True)
    store.hold(ALL)
    return store


def test_many_shards_wait_for_the_disk_once() -> None:
    disk, alone = FakeDisk(), FakeDisk()
    store, slow = opened(disk), opened(alone)
    before = len(disk.names())
    operations = disk.operations, alone.operations
    store.adopt(*contents(*range(6)))
    for content in contents(*range(6)):
        slow.adopt(content)
    assert state_of(store) == state_of(slow) == state_of(taught(*range(6)))
    assert disk.operations - operations[0] < alone.operations - operations[1]
    assert len(disk.names()) == before
    assert state_of(opened(disk.crash(random.Random(1)))) == state_of(store)


def test_each_is_added_to_what_its_shard_has() -> None:
    store = Store.in_memory(SMALL, LAYOUT, retain=True)
    store.hold(ALL)
    store.apply([LESSONS[0].update([0, 1]), LESSONS[1].update(ALL), LESSONS[7].update([2])])
    store.adopt(*contents(1, 2, 3))
    expected = dict(taught(0, 1, 2, 3).digests())
    assert dict(store.digests()) == {
        0: expected[0],
        1: expected[1],
        2: dict(taught(1, 2, 3, 7).digests())[2],
        3: dict(taught(1, 2, 3).digests())[3],
    }
    assert sorted(store.applied(2, JOB)) == [1, 2, 3, 7]


@pytest.mark.parametrize("at", [1, 2])
def test_when_the_disk_fails_none_is_taken_in(at: int) -> None:
    disk = FakeDisk()
    store = opened(disk)
    store.apply([LESSONS[0].update(ALL)])
    before = state_of(store)
    disk.fail_at(at, 5)
    with pytest.raises(DiskError):
        store.adopt(*contents(0, 1, 2))
    assert state_of(store) == before
    store.adopt(*contents(0, 1, 2))
    assert (
        state_of(store)
        == state_of(taught(0, 1, 2))
        == state_of(opened(disk.crash(random.Random(1))))
    )


def test_when_one_cannot_be_none_is_taken_in() -> None:
    store = taught(1, 2)
    before = state_of(store)
    good, strange = contents(1, 2, 3)[0], contents(2, 4)[1]
    with pytest.raises(UsageError, match="some chunks in common"):
        store.adopt(good, strange)
    assert state_of(store) == before


def test_a_shard_comes_once() -> None:
    store = taught(1)
    before = state_of(store)
    with pytest.raises(UsageError, match="given only once"):
        store.adopt(contents(1, 2)[3], contents(1, 3)[3])
    assert state_of(store) == before


def test_there_is_to_be_room_for_all() -> None:
    some = contents(*range(6))
    store = Store.in_memory(SMALL, LAYOUT, Budget(max(_room_for([one]) for one in some)))
    with pytest.raises(StoreFull):
        store.adopt(*some)
    assert len(store.shards) == 0
    store.adopt(some[0])


def _room_for(some: list[Content]) -> int:
    """Return the least budget with which they are taken in, by trying."""
    low, high = 0, 1 << 24
    while high - low > 1:
        middle = (low + high) // 2
        try:
            Store.in_memory(SMALL, LAYOUT, Budget(middle)).adopt(*some)
        except StoreFull:
            low = middle
        else:
            high = middle
    return high


def test_nothing_is_nothing() -> None:
    store = taught(1)
    before = state_of(store)
    store.adopt()
    store.adopt(*contents(1))
    assert state_of(store) == before
    assert np.array_equal(store.shards, np.arange(4))
