"""The store: what it takes, what it refuses, and what it tells."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from giaann_p2p.errors import DamagedError, UsageError
from giaann_p2p.model.delta import EMPTY, total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.rows import Question
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.content import Content
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.state import StoreState
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.helpers import SMALL
from tests.helpers_store import JOB, NEURONS, assert_rows, plain_store, state_of
from tests.unit.store.helpers import ALL, LAYOUT, LESSONS, same, taught


def test_it_tells_what_it_is(store: Store) -> None:
    assert (store.spec, store.layout) == (SMALL, LAYOUT)
    assert store.shards.tolist() == [0, 1, 2, 3]
    assert store.notes == {}
    assert repr(store).startswith("<Store in : 4 shards, 0 connections, ")
    assert repr(Store.in_memory(SMALL, LAYOUT)).startswith("<Store in memory: 0 shards")


def test_which_shards_a_chunk_was_new_to(store: Store) -> None:
    one = LESSONS[0]
    found = store.apply([one.update([0, 1]), one.update(ALL), one.update([3])])
    assert [new.tolist() for new in found] == [[0, 1], [2, 3], []]
    assert [new.tolist() for new in store.apply([one.update(ALL)])] == [[]]
    assert list(store.applied(2, JOB)) == [0]
    assert list(store.applied(2, b"another job.....")) == []


def test_a_snapshot_of_more_than_it_can_hold_fails_as_such(store: Store) -> None:
    heavy = replace(LESSONS[0].delta, strength=np.full_like(LESSONS[0].delta.strength, 1 << 36))
    for chunk in range(3):
        store.apply([Update(JOB, chunk, np.arange(4, dtype=np.uint16), heavy)])
    with patch("giaann_p2p.store.codec.parcel._SUM_BITS", 40):
        for write in (store.snapshot, store.compact):
            with pytest.raises(UsageError, match="add up to more"):
                write()
    store.snapshot()
    assert store.applied(0, JOB)


def test_chunks_handed_out_stay_as_they_are(store: Store) -> None:
    store.apply([LESSONS[0].update(ALL)])
    store.applied(0, JOB).add(5)
    held = store.content(0)
    held.applied[0] = held.applied[0].plus(JOB, 7)
    store.notes["a"] = b""
    assert list(store.applied(0, JOB)) == [0]
    assert store.notes == {}
    other, another = Store.in_memory(SMALL, LAYOUT), Store.in_memory(SMALL, LAYOUT)
    other.adopt(held)
    another.adopt(held)
    other.apply([LESSONS[1].update([0])])
    assert list(another.applied(0, JOB)) == [0, 7]
    assert list(held.applied[0].of(JOB)) == [0, 7]


def test_what_is_not_an_update_is_refused_and_leaves_no_trace(store: Store) -> None:
    before, size = state_of(store), store._disk and store._disk.log.size
    good, shards = LESSONS[0].update(ALL), np.arange(4, dtype=np.uint16)
    delta = LESSONS[1].delta
    nameless, wide = replace(delta, names={}), replace(delta, branch=delta.branch + np.uint8(2))
    heavy = replace(delta, count=np.full(delta.neurons, 1 << 59))
    fields = ("target", "branch", "segment", "strength")
    astray = replace(EMPTY, **{field: getattr(delta, field)[:1] for field in fields})
    for bad, told in [
        (Update(b"short", 0, shards, delta), "16 bytes"),
        (Update(JOB, -1, shards, delta), "numbered from 0"),
        (Update(JOB, 1 << 32, shards, delta), "numbered from 0"),
        (Update(JOB, 1, np.array([4], np.uint16), delta), "shard 4 is not held here"),
        (Update(JOB, 1, shards, heavy), "add up to too much"),
        (Update(JOB, 1, shards, nameless), "lacks the text of"),
        (Update(JOB, 1, shards, wide), "a delta has [34] branches and"),
        (Update(JOB, 1, shards, astray), "a neuron that it lacks"),
    ]:
        with pytest.raises(UsageError, match=told):
            store.apply([good, bad])
    assert state_of(store) == before
    assert (store._disk and store._disk.log.size) == size


@pytest.mark.parametrize("number", [4, -1, 1 << 20])
def test_a_shard_that_there_is_none_is_refused_before_it_is_logged(
    disk: FakeDisk, store: Store, number: int
) -> None:
    with pytest.raises(UsageError, match="numbered 0 to 3"):
        store.hold([0, number])
    store.drop([number])
    held = Content(np.array([max(number, 0) % (1 << 16) + 4], np.uint16), [Applied()], EMPTY)
    with pytest.raises(UsageError, match="numbered 0 to 3"):
        store.adopt(held)
    assert Store.open(disk).shards.tolist() == [0, 1, 2, 3]


def test_what_is_not_held_is_not_read(store: Store) -> None:
    store.apply([LESSONS[0].update([0, 1])])
    expected = plain_store(LAYOUT)
    expected.hold(ALL)
    expected.apply(LESSONS[0].chunk, [0, 1], LESSONS[0].rows)
    assert_rows(store, expected, [*LESSONS[0].rows, *NEURONS])
    store.drop([0, 0])
    expected.drop([0])
    assert_rows(store, expected, [*LESSONS[0].rows, *NEURONS])
    assert store.content(0).digest == 0
    assert len(store.content(0).shards) == 0
    with pytest.raises(UsageError, match="shard 0 is not held here"):
        store.apply([LESSONS[0].update(ALL)])
    store.hold([0])
    assert [new.tolist() for new in store.apply([LESSONS[0].update(ALL)])] == [[0, 2, 3]]
    assert same(store, taught(LESSONS[0]))


def test_holding_what_is_held_writes_nothing(disk: FakeDisk, store: Store) -> None:
    store.apply([LESSONS[0].update(ALL)])
    before = disk.operations
    store.hold(ALL)
    store.apply([LESSONS[0].update(ALL)])
    store.apply([])
    store.drop([])
    assert disk.operations == before
    assert same(store, taught(LESSONS[0]))


def test_closed_it_takes_nothing_and_is_read_all_the_same(store: Store) -> None:
    store.apply([LESSONS[0].update(ALL)])
    store.close()
    store.close()
    for write in (
        lambda: store.apply([LESSONS[1].update(ALL)]),
        lambda: store.note("a", b""),
        lambda: store.hold([0]),
        lambda: store.drop([0]),
        lambda: store.adopt(store.content(0)),
        store.sync,
        store.snapshot,
        store.compact,
    ):
        with pytest.raises(UsageError, match="this store is closed"):
            write()
    assert same(store, taught(LESSONS[0]))


def test_digests_of_shards_add_up(store: Store) -> None:
    store.apply([one.update(ALL) for one in LESSONS[:9]])
    whole = total([one.delta for one in LESSONS[:9]])
    assert store.digest() == digest(whole)
    assert [number for number, _ in store.digests()] == [0, 1, 2, 3]
    assert sum(number for _, number in store.digests()) % (1 << 256) == store.digest()


def test_a_record_that_says_nothing_is_damage(disk: FakeDisk, store: Store) -> None:
    assert store._disk is not None
    store._disk.log.append([(77, b"what?")])
    with pytest.raises(DamagedError, match=r"log-00000001 is damaged at byte \d+: .* kind 77"):
        Store.open(disk)


def test_an_empty_delta_is_taken_in_too(store: Store) -> None:
    shards = np.arange(4, dtype=np.uint16)
    assert [new.tolist() for new in store.apply([Update(JOB, 5, shards, EMPTY)])] == [[0, 1, 2, 3]]
    assert list(store.applied(3, JOB)) == [5]
    assert store.digest() == 0
    assert store.read(Question([NEURONS[0]])) == [None]


def test_a_shard_that_there_is_none_harms_nothing_when_it_is_read(store: Store) -> None:
    store.apply([one.update(ALL) for one in LESSONS[:9]])
    for number in (-1, 99):
        assert len(store.content(number).shards) == 0
        assert store.statistics(number).connections == 0
    assert same(store, taught(*LESSONS[:9]))


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("strength", 0, "strengths must be 1"),
        ("strength", -5, "strengths must be 1"),
        ("strength", 1 << 50, "strengths must be 1 to"),
        ("count", -1, "counts 0 to"),
        ("target", 1000, "neuron that it lacks"),
        ("target", -1, "neuron that it lacks"),
        ("segment", 200, "segments"),
    ],
)
def test_what_could_not_be_read_back_is_not_logged(
    disk: FakeDisk, store: Store, name: str, value: int, told: str
) -> None:
    delta = LESSONS[0].delta
    array = getattr(delta, name).copy()
    array[-1] = value
    before = {name: disk.read(name) for name in disk.names()}
    with pytest.raises(UsageError, match=told):
        store.apply([LESSONS[0]._replace(delta=replace(delta, **{name: array})).update(ALL)])
    assert {name: disk.read(name) for name in disk.names()} == before


def test_what_comes_as_bytes_is_what_it_says(store: Store) -> None:
    update = LESSONS[0].update(ALL)
    limits = StoreState(SMALL, LAYOUT).limits
    received = Update.received(*update[:3], encode(update.delta), limits)
    store.apply([received])
    assert same(store, taught(LESSONS[0]))
    with pytest.raises(DamagedError):
        Update.received(*update[:3], b"garbage", limits)


@pytest.mark.parametrize("numbers", [[1, 0], [1, 1]])
def test_an_update_names_each_shard_once_and_in_order(numbers: list[int]) -> None:
    store = Store.in_memory(SMALL, Layout(shards=4))
    store.hold(range(4))
    with pytest.raises(UsageError, match="shards must be ascending"):
        store.apply([Update(JOB, 0, np.array(numbers, np.uint16), EMPTY)])
    assert list(store.applied(1, JOB)) == []
