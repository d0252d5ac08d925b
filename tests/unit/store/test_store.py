"""The store: what it takes, what it refuses, and what goes on meanwhile."""

import errno
import os
import random
import re
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from giaann_p2p.errors import DamagedError, DiskError, StoreError, StoreFull, UsageError
from giaann_p2p.model.delta import EMPTY, total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.learn import learn
from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store import home, snapshot
from giaann_p2p.store import store as module
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.budget import Budget
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.sync import Sync
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.memory import columns
from giaann_p2p.store.state import Content, State
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.helpers import SMALL, built
from tests.helpers_store import (
    JOB,
    NEURONS,
    Lesson,
    assert_rows,
    copy_of,
    lessons,
    names_of,
    on_disk,
    plain_state,
    plain_store,
    state_of,
)
from tests.plain import store as plain

LAYOUT = Layout(shards=4)
ALL = range(4)
LESSONS = lessons(40)
NAMES = names_of(LESSONS)


@pytest.fixture
def disk() -> FakeDisk:
    return FakeDisk()


@pytest.fixture
def store(disk: FakeDisk) -> Iterator[Store]:
    with on_disk(disk, LAYOUT) as store:
        yield store


def taught(*chosen: Lesson) -> plain.Store:
    expected = plain_store(LAYOUT)
    expected.hold(ALL)
    for one in chosen:
        expected.apply(one.chunk, ALL, one.rows)
    return expected


def same(store: Store, expected: plain.Store) -> bool:
    return state_of(store) == plain_state(expected, NAMES)


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
    for bad, told in [
        (Update(b"short", 0, shards, delta), "16 bytes"),
        (Update(JOB, -1, shards, delta), "numbered from 0"),
        (Update(JOB, 1 << 32, shards, delta), "numbered from 0"),
        (Update(JOB, 1, np.array([4], np.uint16), delta), "shard 4 is not held here"),
        (Update(JOB, 1, shards, nameless), "lacks the text of"),
        (Update(JOB, 1, shards, wide), "a delta of [34] branches and"),
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


def test_content_that_could_not_be_read_back_is_refused(disk: FakeDisk, store: Store) -> None:
    store.apply([LESSONS[0].update(ALL)])
    (shard,) = (n for n in ALL if n == LAYOUT.shard_of(*next(iter(LESSONS[0].rows))))
    held = store.content(shard)
    other = Store.in_memory(SMALL, LAYOUT)
    with pytest.raises(UsageError, match="lacks the text"):
        other.adopt(replace(held, delta=replace(held.delta, names={})))
    wide = replace(held.delta, segment=held.delta.segment + np.uint8(SMALL.segments))
    with pytest.raises(UsageError, match="the store's model has 2 and 5"):
        other.adopt(replace(held, delta=wide))
    other.adopt(held)
    assert other.digest() == held.digest


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


def test_another_model_or_layout_is_refused_by_name(disk: FakeDisk, store: Store) -> None:
    store.close()
    with pytest.raises(UsageError, match="another model: seed_tokens: 12 and 4;"):
        Store.open(disk, ModelSpec())
    with pytest.raises(UsageError, match="another model: branches: 3 and 2"):
        Store.open(disk, ModelSpec(seed_tokens=4, branches=3), readonly=True)
    with pytest.raises(UsageError, match=r"another layout: Layout\(shards=4, blocks=1\)"):
        Store.open(disk, SMALL, Layout(shards=4, blocks=2))
    assert Store.open(disk, SMALL, LAYOUT).spec == SMALL


def test_in_memory_there_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Store.in_memory(SMALL, LAYOUT) as store:
        store.hold(ALL)
        store.apply([LESSONS[0].update(ALL)])
        store.note("a", b"1")
        store.snapshot()
        store.compact()
        store.sync()
        assert not store.snapshot_due
        assert state_of(store)[1] == {"a": b"1"}
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_made_and_found_again(tmp_path: Path) -> None:
    where = tmp_path / "some" / "where"
    with Store.at(where, SMALL, LAYOUT) as store:
        store.hold(ALL)
        store.apply([LESSONS[0].update(ALL)])
        with pytest.raises(StoreError, match="is being written to"):
            Store.at(where)
        with Store.at(where, readonly=True) as seen:
            assert same(seen, taught(LESSONS[0]))
            with pytest.raises(UsageError, match="for reading only"):
                seen.apply([LESSONS[1].update(ALL)])
            seen.snapshot()
    with Store.at(where, SMALL) as store:
        assert same(store, taught(LESSONS[0]))
        store.snapshot()
        assert sorted(path.name for path in where.iterdir()) == [
            "log-00000002",
            "snapshot-00000002",
            "store.json",
        ]


def test_where_there_is_none_nothing_is_read_and_nothing_made(tmp_path: Path) -> None:
    for where in (tmp_path, tmp_path / "none"):
        with pytest.raises(StoreError, match="there is no store in"):
            Store.at(where, readonly=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file is no directory"):
        Store.at(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_write_that_fails_behind_the_log_seals_the_store(
    disk: FakeDisk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.apply([LESSONS[0].update(ALL)])

    def fail(*_: object) -> None:
        raise MemoryError("none is left")

    with monkeypatch.context() as patch:
        patch.setattr(State, "add", fail)
        with pytest.raises(MemoryError):
            store.apply([LESSONS[1].update(ALL)])
    for write in (lambda: store.note("a", b""), store.snapshot):
        with pytest.raises(UsageError, match=r"lags behind the log \(.*none is left.*\): open it"):
            write()
    assert same(store, taught(LESSONS[0]))
    assert same(Store.open(disk), taught(*LESSONS[:2]))


def test_a_snapshot_is_given_up_when_the_store_is_sealed_meanwhile(
    disk: FakeDisk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a write in memory must not become a snapshot."""
    store.apply([LESSONS[0].update(ALL)])
    parts = State.parts

    def late(self: State, shards: object) -> Iterator[list[int]]:
        with pytest.raises(MemoryError):
            store.apply([LESSONS[1].update(ALL)])
        yield from parts(self, shards)

    def half(self: State, update: Update, shards: object) -> None:
        self.columns.add(update.delta, shards)
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(State, "parts", late)
        patch.setattr(State, "add", half)
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
    capture = State.capture

    def late(self: State, numbers: list[int]) -> object:
        found = capture(self, numbers)
        with monkeypatch.context() as patch:
            patch.setattr(State, "capture", capture)
            store._writing.release()
            deed, mean = next(deeds)
            deed()
            store._writing.acquire()
            mean()
            assert same(Store.open(copy_of(disk)), expected)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(State, "capture", late)
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


def test_reading_while_shards_come_and_go_sees_all_of_a_row_or_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half of a row is merged and half is not, so a reader in between would see one of them."""
    monkeypatch.setattr(columns, "_LEAST_PENDING", 1 << 19)
    store = Store.in_memory(SMALL, Layout(shards=1))
    store.hold([0])
    one = LESSONS[0]
    wrong: list[object] = []
    done = threading.Event()
    question = Question([next(iter(one.rows))])
    counts = {0, *(one.rows[question.neurons[0]].count * i for i in (1, 2))}

    def read() -> None:
        last = -1
        while not done.is_set():
            (row,) = store.read(question)
            count = row.count if row else 0
            if count not in counts or (last == 2 and count == 1 and row):
                wrong.append(row)
            last = count

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    until = time.monotonic() + 1
    while time.monotonic() < until:
        store.apply([one.update([0])])
        held = store.content(0)  # merges
        store.apply([Update(JOB, 1000, np.zeros(1, np.uint16), one.delta)])
        store.drop([0])
        store.adopt(held)
        store.drop([0])
        store.hold([0])
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []


def test_ctrl_c_in_the_middle_of_writes_leaves_whole_chunks(disk: FakeDisk, store: Store) -> None:
    """As Ctrl-C does, at many moments; each chunk is in or not, and the store goes on."""
    interrupted, at = 0, 0
    rng = random.Random(0)
    started = time.monotonic()
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        while at < len(LESSONS) and time.monotonic() - started < 20:
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.random() / 200)
                while at < len(LESSONS):
                    store.apply([LESSONS[at].update(ALL)])
                    if at % 5 == 0:
                        store.snapshot()
                    at += 1
            except KeyboardInterrupt:
                interrupted += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
                at = len(store.applied(0, JOB))
                if interrupted % 4 == 0:
                    assert same(store, taught(*LESSONS[:at]))
                    assert same(Store.open(copy_of(disk)), taught(*LESSONS[:at]))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert interrupted > 3
    assert same(store, taught(*LESSONS))
    store.close()
    assert same(Store.open(disk), taught(*LESSONS))


def test_a_store_full_in_memory_is_read_and_takes_more_once_shards_are_dropped(
    disk: FakeDisk,
) -> None:
    on_disk(disk, LAYOUT).close()
    store = Store.open(disk, budget=Budget(200_000))
    before = disk.operations
    told = lessons(1000)
    taken = filled(store, told)
    assert 20 < taken < 1000
    assert disk.operations > before
    assert same(store, taught(*told[:taken]))
    assert [len(new) for new in store.apply([told[0].update(ALL)])] == [0]  # it needs no room
    with pytest.raises(StoreFull):
        store.adopt(big_content())
    store.drop([1, 2, 3])
    store.compact()
    store.apply([told[taken].update([0])])
    store.drop(ALL)
    store.hold(ALL)
    store.apply([one.update(ALL) for one in told[:10]])
    assert same(store, taught(*told[:10]))
    assert same(Store.open(disk, budget=Budget(60_000)), taught(*told[:10]))


def filled(store: Store, told: list[Lesson]) -> int:
    """Return how many chunks there was room for."""
    for taken, one in enumerate(told):
        try:
            store.apply([one.update(ALL)])
        except StoreFull as error:
            told_so = re.match(r"the store is full: [\d,]+ bytes are in use, .* limit", str(error))
            return taken if told_so else -1
    return len(told)


def big_content() -> Content:
    other = Store.in_memory(SMALL, LAYOUT)
    other.hold(ALL)
    other.apply([one.update(ALL) for one in lessons(500, seed=9)])
    return other.content(0)


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


def test_making_a_store_that_fails_leaves_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise DiskError("no")

    monkeypatch.setattr(home, "draft", fail)
    with pytest.raises(DiskError):
        Store.at(tmp_path / "typo")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_delta_is_taken_in_too(store: Store) -> None:
    shards = np.arange(4, dtype=np.uint16)
    assert [new.tolist() for new in store.apply([Update(JOB, 5, shards, EMPTY)])] == [[0, 1, 2, 3]]
    assert list(store.applied(3, JOB)) == [5]
    assert store.digest() == 0
    assert store.read(Question([NEURONS[0]])) == [None]


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


def test_a_shard_that_there_is_none_harms_nothing_when_it_is_read(store: Store) -> None:
    store.apply([one.update(ALL) for one in LESSONS[:9]])
    for number in (-1, 99):
        assert len(store.content(number).shards) == 0
        assert store.statistics(number).connections == 0
    assert same(store, taught(*LESSONS[:9]))


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


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("strength", 0, "adds -1"),
        ("strength", -5, "adds"),
        ("strength", 1 << 40, "at most"),
        ("count", -1, "adds -1"),
        ("target", 1000, "does not have"),
        ("target", -1, "does not have"),
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
    limits = State(SMALL, LAYOUT).limits
    received = Update.received(*update[:3], encode(update.delta), limits)
    store.apply([received])
    assert same(store, taught(LESSONS[0]))
    with pytest.raises(DamagedError):
        Update.received(*update[:3], b"garbage", limits)


def test_the_same_chunks_cannot_have_come_to_something_else(store: Store) -> None:
    store.apply([LESSONS[0].update(ALL)])
    held = store.content(0, 1, 2, 3)
    liar = replace(held, delta=replace(held.delta, strength=held.delta.strength + 1))
    with pytest.raises(StoreError, match="one of them is wrong"):
        store.adopt(liar)
    assert same(store, taught(LESSONS[0]))


def in_memory(*chosen: Lesson) -> Store:
    store = Store.in_memory(SMALL, LAYOUT)
    store.hold(ALL)
    store.apply([one.update(ALL) for one in chosen])
    return store


def test_of_several_shards_that_come_each_is_compared_with_its_own() -> None:
    """Shard 0 is ahead here, shard 1 is behind."""
    store = Store.in_memory(SMALL, LAYOUT)
    store.hold(ALL)
    store.apply([one.update([0]) for one in LESSONS[:9]])
    store.adopt(in_memory(*LESSONS[:4]).content(0, 1))
    expected = dict(in_memory(*LESSONS[:9]).digests())
    expected[1] = dict(in_memory(*LESSONS[:4]).digests())[1]
    found = dict(store.digests())
    assert (found[0], found[1]) == (expected[0], expected[1])


def test_content_of_other_shards_or_twice_is_refused(store: Store) -> None:
    held = in_memory(*LESSONS[:9]).content(0, 1)
    shard = LAYOUT.shards_of(held.delta.concept, held.delta.feature)[held.delta.count > 0]
    assert set(shard.tolist()) == {0, 1}
    with pytest.raises(UsageError, match="rows of other shards"):
        store.adopt(replace(held, shards=held.shards[:1], applied=held.applied[:1]))
    twice = np.array([0, 1, 1], np.uint16)
    with pytest.raises(UsageError, match="comes once"):
        store.adopt(replace(held, shards=twice, applied=[*held.applied, held.applied[1]]))


def test_content_that_is_known_is_not_written_again(disk: FakeDisk, store: Store) -> None:
    store.apply([one.update(ALL) for one in LESSONS[:5]])
    held = store.content(0, 1, 2, 3)
    size = disk.size("log-00000001")
    for _ in range(3):
        store.adopt(held)
    assert disk.size("log-00000001") == size


def test_rows_stay_readable_while_shards_are_taken_in() -> None:
    store = in_memory(*LESSONS[:3])
    delta = LESSONS[0].delta
    neurons = list(map(Neuron, delta.concept.tolist(), delta.feature.tolist()))
    missing: list[None] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            missing.extend(row for row in store.read(Question(neurons)) if row is None)

    reader = threading.Thread(target=read)
    reader.start()
    for count in range(4, len(LESSONS)):
        store.adopt(in_memory(*LESSONS[:count]).content(*ALL))
    done.set()
    reader.join()
    assert missing == []
    assert same(store, taught(*LESSONS[:-1]))


def test_compacting_lets_go_of_what_dropped_shards_had() -> None:
    store = in_memory()
    delta = learn(built(*(f"noun{i}/N sees/ noun{i + 1}/N" for i in range(300))), SMALL)
    store.apply([Update(JOB, 0, store.shards, delta)])
    store.compact()
    count = len(store._state.columns.neurons)
    full, kept = store.nbytes, store.content(0)
    neurons = [
        Neuron(*ids)
        for ids, count in zip(
            zip(kept.delta.concept.tolist(), kept.delta.feature.tolist(), strict=True),
            kept.delta.count.tolist(),
            strict=True,
        )
        if count
    ]
    missing: list[None] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            missing.extend(row for row in store.read(Question(neurons)) if row is None)

    reader = threading.Thread(target=read)
    reader.start()
    store.drop([1, 2, 3])
    for _ in range(5):
        store.compact()
    done.set()
    reader.join()
    assert missing == []
    assert store.nbytes < full
    assert len(store._state.columns.neurons) == kept.delta.neurons < count / 2
    assert store.digest() == kept.digest
    assert store.content(0).applied == kept.applied


@pytest.mark.parametrize("numbers", [[1, 0], [1, 1]])
def test_an_update_names_each_shard_once_and_in_order(numbers: list[int]) -> None:
    store = Store.in_memory(SMALL, Layout(shards=4))
    store.hold(range(4))
    with pytest.raises(UsageError, match="shards are to be ascending"):
        store.apply([Update(JOB, 0, np.array(numbers, np.uint16), EMPTY)])
    assert list(store.applied(1, JOB)) == []
