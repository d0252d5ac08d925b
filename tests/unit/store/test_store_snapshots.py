"""The store's snapshots and syncs: when they are due, and what goes wrong in the middle of one."""

import errno
import os
import random
import threading
from collections.abc import Iterable, Iterator

import pytest

from giaann_p2p.errors import DiskError, UsageError
from giaann_p2p.store import journal as module
from giaann_p2p.store import snapshot
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.sync import Sync
from giaann_p2p.store.memory import columns
from giaann_p2p.store.state import StoreState
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.helpers import SMALL
from tests.helpers_store import JOB, copy_of, on_disk
from tests.unit.store.helpers import ALL, LAYOUT, LESSONS, same, taught


def test_a_write_that_fails_behind_the_log_seals_the_store(
    disk: FakeDisk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.apply([LESSONS[0].update(ALL)])

    def fail(*_: object) -> None:
        raise MemoryError("none is left")

    with monkeypatch.context() as patch:
        patch.setattr(StoreState, "add", fail)
        with pytest.raises(MemoryError):
            store.apply([LESSONS[1].update(ALL)])
    for write in (lambda: store.note("a", b""), store.snapshot):
        with pytest.raises(
            UsageError, match=r"lags behind the log \(.*none is left.*\); open the store"
        ):
            write()
    assert same(store, taught(LESSONS[0]))
    assert same(Store.open(disk), taught(*LESSONS[:2]))


def test_a_snapshot_is_given_up_when_the_store_is_sealed_meanwhile(
    disk: FakeDisk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a write in memory must not become a snapshot."""
    store.apply([LESSONS[0].update(ALL)])
    parts = StoreState.parts

    def late(self: StoreState, shards: object) -> Iterator[list[int]]:
        with pytest.raises(MemoryError):
            store.apply([LESSONS[1].update(ALL)])
        yield from parts(self, shards)

    def half(self: StoreState, update: Update, shards: object) -> None:
        self.columns.add(update.delta, shards)
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(StoreState, "parts", late)
        patch.setattr(StoreState, "add", half)
        with pytest.raises(UsageError, match="lags behind the log"):
            store.snapshot()
    assert not [name for name in disk.names() if name.startswith("snapshot")]
    assert same(Store.open(disk), taught(*LESSONS[:2]))


def test_a_snapshot_is_due_when_the_log_is_long(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LEAST_LOG", 4000)
    assert not store.snapshot_due
    for one in LESSONS:
        store.apply([one.update(ALL)])
        if store.snapshot_due:
            break
    assert store.snapshot_due
    store.snapshot()
    assert not store.snapshot_due


def test_syncs_come_as_often_as_they_are_wanted(disk: FakeDisk) -> None:
    on_disk(disk, LAYOUT).close()
    now = [0.0]
    store = Store.open(disk, sync=Sync(10), clock=lambda: now[0])
    for one in LESSONS[:5]:
        store.apply([one.update(ALL)])
    now[0] = 11
    store.apply([LESSONS[5].update(ALL)])
    for one in LESSONS[6:9]:
        store.apply([one.update(ALL)])
    left = [len(Store.open(disk.crash(random.Random(i))).applied(0, JOB)) for i in range(20)]
    assert min(left) >= 6
    store.sync()
    left = [len(Store.open(disk.crash(random.Random(i))).applied(0, JOB)) for i in range(20)]
    assert set(left) == {9}


def test_a_snapshot_while_others_write_loses_nothing(
    disk: FakeDisk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_LEAST_PENDING", 100)
    monkeypatch.setattr("giaann_p2p.store.state._PART", 0)  # one shard a part
    threads = [
        threading.Thread(target=lambda some=some: [store.apply([u.update(ALL)]) for u in some])
        for some in (LESSONS[::2], LESSONS[1::2])
    ]
    for thread in threads:
        thread.start()
    made = 0
    while any(thread.is_alive() for thread in threads) or made < 2:
        store.snapshot()
        made += 1
        for one in (copy_of(disk), disk.crash(random.Random(made))):
            assert set(Store.open(one).applied(0, JOB)) <= set(range(40))
    for thread in threads:
        thread.join()
    assert same(store, taught(*LESSONS))
    assert same(Store.open(disk), taught(*LESSONS))


def test_each_moment_of_a_snapshot_is_one_to_crash_at(
    disk: FakeDisk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks, drops and notes come between the parts of a snapshot."""
    monkeypatch.setattr("giaann_p2p.store.state._PART", 0)
    expected = taught(*LESSONS[:2])
    store.apply([one.update(ALL) for one in LESSONS[:2]])
    held = Store.in_memory(SMALL, LAYOUT)
    held.hold(ALL)
    held.apply([one.update(ALL) for one in LESSONS[:6]])
    deeds = iter(
        [
            (
                lambda: store.apply([LESSONS[2].update(ALL)]),
                lambda: expected.apply(LESSONS[2].chunk, ALL, LESSONS[2].rows),
            ),
            (
                lambda: store.apply([LESSONS[3].update(ALL)]),
                lambda: expected.apply(LESSONS[3].chunk, ALL, LESSONS[3].rows),
            ),
            (
                lambda: store.adopt(held.content(0)),
                lambda: expected.adopt(0, taught(*LESSONS[:6]).shards[0]),
            ),
            (lambda: store.drop([3]), lambda: expected.drop([3])),
        ]
    )
    capture = StoreState.capture

    def late(self: StoreState, numbers: list[int]) -> object:
        found = capture(self, numbers)
        with monkeypatch.context() as patch:
            patch.setattr(StoreState, "capture", capture)
            store._journal.lock.release()
            deed, mean = next(deeds)
            deed()
            store._journal.lock.acquire()
            mean()
            assert same(Store.open(copy_of(disk)), expected)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(StoreState, "capture", late)
        store.snapshot()
    assert next(deeds, None) is None
    assert same(store, expected)
    for seed in range(5):
        assert same(Store.open(disk.crash(random.Random(seed))), expected)


def test_a_reader_whose_snapshot_is_forgotten_starts_over(
    disk: FakeDisk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.apply([LESSONS[0].update(ALL)])
    store.snapshot()
    read, left = snapshot.read, [2]

    def late(*arguments: object) -> object:
        if left[0]:
            left[0] -= 1
            store.apply([LESSONS[2 - left[0]].update(ALL)])
            store.snapshot()
        return read(*arguments)

    monkeypatch.setattr(snapshot, "read", late)
    assert same(Store.open(disk, readonly=True), taught(*LESSONS[:3]))
    assert left == [0]


def test_a_reader_of_a_disk_that_fails_is_told(disk: FakeDisk, store: Store) -> None:
    store.snapshot()
    (name,) = (name for name in disk.names() if name.startswith("snapshot"))
    read = disk.read

    def failing(asked: str, size: int = -1) -> bytes:
        if asked == name:
            raise OSError(errno.EIO, os.strerror(errno.EIO), asked)
        return read(asked, size)

    disk.read = failing
    for readonly in (False, True):
        with pytest.raises(DiskError, match=f"{name}: Input/output error"):
            Store.open(disk, readonly=readonly)


def test_what_a_crash_left_to_be_forgotten_is_forgotten_by_the_next(
    disk: FakeDisk, store: Store
) -> None:
    store.apply([LESSONS[0].update(ALL)])
    old = disk.read("log-00000001")
    store.snapshot()
    wanted = disk.names()
    for name in ("log-00000001", "snapshot-00000001", "snapshot-00000007.new"):
        file = disk.create(name)
        file.write(old)
        file.sync()
    assert same(Store.open(disk, readonly=True), taught(LESSONS[0]))
    assert len(disk.names()) == len(wanted) + 3
    assert same(Store.open(disk), taught(LESSONS[0]))
    assert disk.names() == wanted


def test_a_shard_dropped_while_a_snapshot_begins_is_gone(
    disk: FakeDisk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the new log file and the snapshot's first record others may write."""
    write = snapshot.write

    def interrupted(
        files: Files, identity: bytes, number: int, records: Iterable[tuple[int, bytes]]
    ) -> int:
        store.apply([LESSONS[1].update(ALL)])
        store.drop([2])
        return write(files, identity, number, records)

    store.apply([LESSONS[0].update(ALL)])
    monkeypatch.setattr(snapshot, "write", interrupted)
    store.snapshot()
    expected = taught(*LESSONS[:2])
    expected.drop([2])
    assert same(store, expected)
    assert same(Store.open(disk, readonly=True), expected)
