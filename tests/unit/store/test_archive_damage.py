"""Old files that are damaged, cut, gone or never synced: what is recalled, and what is told."""

import random
from collections.abc import Callable

import pytest
from pyroaring import BitMap

from giaann_p2p.errors import DamagedError, DiskError, UsageError
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.heads import heads
from giaann_p2p.store.disk.record import Header
from giaann_p2p.store.disk.sync import NEVER
from giaann_p2p.store.fsck import fsck
from giaann_p2p.store.records import Kind
from giaann_p2p.store.store import Store
from tests.helpers_store import JOB, assert_recalled, copy_of, state_of
from tests.unit.store.helpers_archive import (
    ALL,
    OLD,
    begun,
    learned,
    logs,
    numbers,
    recalled,
    told,
    yardstick,
)


def damaged(disk: FakeDisk, content: bytes, name: str = OLD) -> FakeDisk:
    other = copy_of(disk)
    other.damage(name, content)
    return other


@pytest.mark.slow
@pytest.mark.parametrize("name", [OLD, "log-00000002"])
def test_a_flipped_bit_in_an_old_file_is_told_and_the_store_opens(
    archived: FakeDisk, name: str
) -> None:
    content, expected, rng = archived.read(name), yardstick(), random.Random(name)
    wanted = state_of(Store.open(copy_of(archived), retain=True))
    unharmed = 0
    for at in [*range(160), *rng.sample(range(160, len(content)), 200)]:
        flipped = bytearray(content)
        flipped[at] ^= 1 << rng.randrange(8)
        disk = damaged(archived, bytes(flipped), name)
        problems = fsck(disk).problems
        assert all(problem.startswith(f"{name} is damaged at byte ") for problem in problems)
        store = Store.open(disk, retain=True)
        assert state_of(store) == wanted
        right = [recalled(store, chunk, expected) for chunk in range(6)]
        assert store.retained(JOB) == BitMap(chunk for chunk in range(6) if right[chunk])
        assert problems or all(right)  # what fills up a record says nothing
        unharmed += all(right)
    assert unharmed < 120  # marks, and the end of the file before


def test_an_old_file_that_is_cut_keeps_the_first_deltas(archived: FakeDisk) -> None:
    content, expected, seen = archived.read(OLD), yardstick(), set()
    for size in range(0, len(content), 5):
        store = Store.open(damaged(archived, content[:size]), retain=True)
        found = [chunk for chunk in range(4) if recalled(store, chunk, expected)]
        assert found == list(range(len(found)))
        assert store.retained(JOB) == BitMap([*found, 4, 5])
        seen.add(len(found))
    assert seen == {0, 1, 2, 3, 4}


def test_damage_costs_no_more_than_it_hit(archived: FakeDisk) -> None:
    """A payload is only read when it is asked for."""
    content = bytearray(archived.read(OLD))
    store = Store.open(copy_of(archived), retain=True)
    (kept,) = store._state.archive.find(JOB, 1)
    assert kept.place
    content[kept.place.offset + kept.size - 9] ^= 1
    disk = damaged(archived, bytes(content))
    store = Store.open(disk, retain=True)
    assert store.retained(JOB) == numbers(*range(6))
    with pytest.raises(DamagedError, match=f"{OLD} is damaged at byte {kept.place.offset}: "):
        store.recall(JOB, 1, [0])
    assert store.retained(JOB) == numbers(0, 2, 3, 4, 5)
    assert_recalled(store, yardstick())
    assert f"{OLD} is damaged at byte {kept.place.offset}: " in fsck(disk).problems[0]


def test_an_old_file_that_is_gone_is_no_damage(archived: FakeDisk) -> None:
    disk = copy_of(archived)
    store = Store.open(disk, retain=True)
    disk.remove(OLD)
    with pytest.raises(DamagedError, match=f"{OLD} is damaged at byte 0: the file is missing"):
        store.recall(JOB, 0, ALL)
    assert fsck(disk).problems == []
    again = Store.open(disk, retain=True)
    assert again.retained(JOB) == numbers(4, 5)
    assert_recalled(again, yardstick())


def test_without_the_file_behind_it_a_file_ends_at_its_last_mark(disk: FakeDisk) -> None:
    """What stands behind may be work that was given up."""
    store = begun(disk)
    store.apply(told(0))
    assert store._disk is not None
    header, end = store._disk.log.ready().header, disk.size(OLD)
    left = disk.read(OLD) + b"".join(header.record(Kind.UPDATE, b"given up" * 9, end))
    disk.damage(OLD, left)
    for behind, kinds in ((end, [1, 3]), (len(left), [1, 3, 3]), (None, [1, 3])):
        other = copy_of(disk)
        if behind:
            other.create("log-00000002").write(header._replace(number=2, before=behind).packed())
        found = heads(other, header.identity, 1, 10)
        assert [one.kind for one in found] == kinds
    assert store.retained(JOB) == numbers(0)


def unsynced(disk: FakeDisk) -> Store:
    """Return a store with records that were acknowledged, and are not on the disk."""
    begun(disk).close()
    store = Store.open(disk, sync=NEVER, retain=True)
    store.apply(told(0, 1))
    return store


def forget_unsynced(disk: FakeDisk) -> None:
    """Lose what the first file holds behind its last sync, as a system may after a failed one."""
    content, end = disk.read(OLD), Header.unpacked(disk.read("log-00000002")).before
    disk.damage(OLD, content[:end] + bytes(len(content) - end))


@pytest.mark.parametrize("go_on", [Store.snapshot, lambda store: store.apply(told(2))])
def test_what_a_failed_sync_may_lose_is_read_where_it_was_written_anew(
    disk: FakeDisk, go_on: Callable[[Store], object]
) -> None:
    store = unsynced(disk)
    disk.fail_at(1, 5)
    with pytest.raises(DiskError, match="the next append writes the records again"):
        store.sync()
    go_on(store)
    if OLD in disk.names():
        forget_unsynced(disk)
    assert store.retained(JOB) >= numbers(0, 1)
    assert_recalled(store, yardstick())


def test_what_a_crash_left_without_a_mark_is_read_where_it_was_written_anew(disk: FakeDisk) -> None:
    unsynced(disk)
    store = Store.open(disk, retain=True)
    assert logs(disk) == [1, 2]
    forget_unsynced(disk)
    assert store.retained(JOB) == numbers(0, 1)
    assert_recalled(store, yardstick())


def test_a_delta_that_is_damaged_is_not_taken_in(archived: FakeDisk) -> None:
    store = Store.open(copy_of(archived), retain=True)
    (kept,) = store._state.archive.find(JOB, 2)
    assert kept.place
    content = bytearray(archived.read(OLD))
    content[kept.place.offset + 100] ^= 4
    store = Store.open(damaged(archived, bytes(content)), retain=True)
    before, theirs = state_of(store), learned(0, 1, 3, 6).content(1)
    with pytest.raises(DamagedError, match=f"{OLD} is damaged at byte {kept.place.offset}"):
        store.adopt(theirs)
    with pytest.raises(UsageError, match="some chunks in common"):
        store.adopt(theirs)
    assert state_of(store) == before


def test_a_file_that_cannot_be_read_now_may_be_read_later(
    archived: FakeDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(copy_of(archived), retain=True)

    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(FakeDisk, "read", fail)
        with pytest.raises(DiskError, match=f"{OLD}: Input/output error"):
            store.recall(JOB, 0, ALL)
    assert_recalled(store, yardstick())
    assert store.retained(JOB) == numbers(*range(6))


def test_a_record_that_cannot_be_read_is_done_without_and_told_once_a_file(
    archived: FakeDisk, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(copy_of(archived), retain=True)
    places = {kept.chunk: kept.place for kept in store.kept() if kept.place}
    content = bytearray(archived.read(OLD))
    for chunk in (1, 2):
        content[places[chunk].offset + 100] ^= 4
    store = Store.open(damaged(archived, bytes(content)), retain=True)
    assert store.unreadable == 0
    for _ in range(2):
        found = {kept.chunk: store.parcel(kept) for kept in store.kept()}
        assert {chunk for chunk, parcel in found.items() if parcel is None} == {1, 2}
        assert store.unreadable == 2
        (told,) = caplog.messages
        assert "cannot be read" in told
        assert f"{OLD} is damaged at byte " in told
    assert repr(store._deltas).startswith("<Deltas: <Archive: 6 deltas, ")
    assert repr(store._deltas).endswith(", <Unreadable: 2 records>>")

    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(FakeDisk, "read", fail)
    assert [store.parcel(kept) for kept in store.kept()] == [None] * 6
    assert store.unreadable == 6
    assert len(caplog.messages) == len({place.file for place in places.values()}) == 2
    assert "Input/output error" in caplog.messages[1]
