"""Deltas that are kept until they are released: found, cut, read back, or refused by name."""

import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from pyroaring import BitMap

from giaann_p2p.errors import DamagedError, DiskError, StoreFull, UsageError
from giaann_p2p.model.delta import total
from giaann_p2p.model.digest import digest
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.archive import KEPT_BYTES, Archive, Kept
from giaann_p2p.store.budget import Budget
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.heads import heads
from giaann_p2p.store.disk.record import Header, Place
from giaann_p2p.store.disk.sync import NEVER
from giaann_p2p.store.fsck import fsck
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.ledger import Ledger
from giaann_p2p.store.state import Kind
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update, head_size, update_head
from tests.helpers import SMALL
from tests.helpers_store import (
    JOB,
    JOBS,
    assert_recalled,
    copy_of,
    lessons,
    plain_store,
    retained_of,
    rows_of,
    state_of,
)
from tests.plain import store as plain

LAYOUT = Layout(shards=4)
ALL = range(4)
LESSONS = lessons(12, seed=5)
OLD = "log-00000001"


def numbers(*chunks: int) -> BitMap:
    return BitMap(chunks)


def told(*chosen: int, shards: Iterable[int] = ALL) -> list[Update]:
    return [LESSONS[i].update(shards) for i in chosen]


def begun(disk: FakeDisk | None = None, budget: Budget | None = None) -> Store:
    """Return a store that retains and holds all shards, on a disk or in memory."""
    store = Store.in_memory(SMALL, LAYOUT, budget, retain=True)
    if disk:
        store = Store.open(disk, SMALL, LAYOUT, budget=budget, retain=True)
    store.hold(ALL)
    return store


def yardstick() -> plain.Store:
    """Return a store that was told everything."""
    expected = plain_store(LAYOUT, retain=True)
    expected.hold(ALL)
    for one in LESSONS:
        expected.apply(one.chunk, ALL, one.rows)
    return expected


def logs(disk: FakeDisk) -> list[int]:
    return [int(name[4:]) for name in disk.names() if name.startswith("log-")]


@pytest.fixture
def disk() -> FakeDisk:
    return FakeDisk()


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, disk: FakeDisk) -> Store:
    return begun(disk if request.param == "disk" else None)


def test_what_was_applied_is_recalled_until_it_is_released(store: Store) -> None:
    store.apply(told(0, 1, 2))
    assert store.retained(JOB) == numbers(0, 1, 2)
    assert store.retained(JOBS[1]) == numbers()
    assert_recalled(store, yardstick())
    before = store.archive_bytes
    store.release(JOB, numbers(0, 2, 77))
    store.release(JOBS[1], [1])
    assert store.retained(JOB) == numbers(1)
    assert 0 < store.archive_bytes < before
    assert store.recall(JOB, 0, ALL) == store.recall(JOBS[1], 1, ALL) == []
    assert_recalled(store, yardstick())
    store.release(JOB, [1])
    assert store.archive_bytes == 0
    assert repr(store._state.archive) == "<Archive: 0 deltas, 0 bytes>"


def test_a_delta_is_kept_for_the_shards_to_which_it_was_new(store: Store) -> None:
    store.apply(told(0, shards=[1, 3]))
    store.apply(told(0, shards=[0, 1]))
    store.apply(told(1, shards=[2]))
    found = store.recall(JOB, 0, ALL)
    assert [update.shards.tolist() for update in found] == [[1, 3], [0]]
    assert [n for n in ALL if (JOB, 0) in store.retained_for(n)] == [0, 1, 3]
    assert [n for n in ALL if (JOB, 1) in store.retained_for(n)] == [2]
    assert store.recall(JOB, 0, [2]) == []
    assert store.recall(JOB, 0, [-1, 4, 99, 1 << 40]) == []
    assert_recalled(store, yardstick())


def test_only_what_was_asked_travels(store: Store) -> None:
    big = max(LESSONS, key=lambda one: len(one.rows))
    store.apply([big.update(ALL)])
    (whole,) = store.recall(*big.chunk, ALL)
    assert bytes(whole.parcel) == encode(big.delta)  # as it is, and not made anew
    parts = [store.recall(*big.chunk, [n])[0] for n in ALL]
    assert sum(part.delta.connections for part in parts) == big.delta.connections
    assert digest(total([part.delta for part in parts])) == digest(big.delta)
    for n, part in zip(ALL, parts, strict=True):
        homes = {LAYOUT.shard_of(*neuron) for neuron in rows_of(part.delta)}
        assert homes <= {n}
        assert part.delta.names.keys() <= {
            word
            for neuron in zip(part.delta.concept, part.delta.feature, strict=True)
            for word in map(int, neuron)
        }


def test_what_is_recalled_teaches_another_store_the_same(store: Store) -> None:
    store.apply(told(*range(5)))
    other = begun()
    for chunk in store.retained(JOB):
        other.apply(store.recall(JOB, chunk, [0, 1]))
        other.apply(store.recall(JOB, chunk, [2, 3]))
    assert state_of(other) == state_of(store)
    assert retained_of(other) == retained_of(store)


def test_a_dropped_shard_takes_along_what_was_kept_for_it_alone(store: Store) -> None:
    store.apply(told(0) + told(1, shards=[2]))
    store.drop([2])
    assert store.retained(JOB) == numbers(0)
    assert [update.shards.tolist() for update in store.recall(JOB, 0, ALL)] == [[0, 1, 3]]
    store.hold([2])
    assert store.retained_for(2) == Applied()
    store.apply(told(0))
    assert len(store.recall(JOB, 0, ALL)) == 2
    store.drop(ALL)
    assert store.archive_bytes == 0


def test_snapshots_leave_the_files_with_what_is_retained(disk: FakeDisk) -> None:
    store = begun(disk)
    expected = yardstick()
    store.apply(told(0, 1))
    store.snapshot()
    store.apply(told(2))
    store.snapshot()
    store.note("nothing", b"in file 3")
    store.snapshot()
    store.apply(told(3))
    store.snapshot()
    assert disk.names() == [f"log-0000000{n}" for n in range(1, 6)] + [
        "snapshot-00000005",
        "store.json",
    ]
    for number in (1, 2, 3):  # 3 says where 2 ends
        assert number in store._state.archive.files
    assert_recalled(store, expected)
    again = Store.open(copy_of(disk), retain=True)
    assert retained_of(again) == retained_of(store)
    assert (again.archive_bytes, state_of(again)) == (store.archive_bytes, state_of(store))
    assert_recalled(again, expected)
    store.release(JOB, [0])
    assert logs(disk) == [1, 2, 3, 4, 5]
    store.release(JOB, [1])
    assert logs(disk) == [2, 3, 4, 5]
    store.release(JOB, [2])
    assert logs(disk) == [4, 5]
    store.release(JOB, [3])
    assert logs(disk) == [5]
    assert state_of(Store.open(disk, retain=True)) == state_of(store)


def test_the_log_that_recovery_needs_stays_whatever_is_released(disk: FakeDisk) -> None:
    store = begun(disk)
    store.snapshot()
    store.apply(told(0, 1))
    store.release(JOB, [0, 1])
    assert logs(disk) == [2]
    assert Store.open(disk, retain=True).retained(JOB) == numbers(0, 1)  # it is back
    assert state_of(Store.open(disk)) == state_of(store)


def test_files_that_cannot_be_removed_are_removed_later(disk: FakeDisk) -> None:
    store = begun(disk)
    store.apply(told(0, 1))
    store.snapshot()
    disk.fail_at(1, 5)
    store.release(JOB, [0, 1])
    assert logs(disk) == [1, 2]
    assert store.retained(JOB) == numbers()
    store.release(JOB, [])
    assert logs(disk) == [2]


def test_a_store_that_does_not_retain_is_as_it_was(disk: FakeDisk) -> None:
    begun(disk).close()
    store = Store.open(disk)
    store.apply(told(0))
    store.snapshot()
    assert logs(disk) == [2]
    assert (store.archive_bytes, store.retained(JOB), store.recall(JOB, 0, ALL)) == (
        0,
        BitMap(),
        [],
    )
    plainly = Store.in_memory(SMALL, LAYOUT)
    plainly.hold(ALL)
    plainly.apply(told(0))
    assert plainly.retained(JOB) == numbers()


def test_a_store_opened_without_it_lets_go_of_all(disk: FakeDisk) -> None:
    store = begun(disk)
    store.apply(told(0))
    store.snapshot()
    store.close()
    seen = Store.open(disk, readonly=True)
    assert seen.retained(JOB) == numbers()
    with pytest.raises(UsageError, match="for reading only"):
        seen.release(JOB, [0])
    Store.open(disk).close()
    assert logs(disk) == [2]


def test_on_a_real_disk(tmp_path: Path) -> None:
    with Store.at(tmp_path, SMALL, LAYOUT, retain=True) as store:
        store.hold(ALL)
        store.apply(told(0, 1))
        store.snapshot()
        store.apply(told(2))
        assert_recalled(store, yardstick())
    with Store.at(tmp_path, retain=True) as store:
        assert store.retained(JOB) == numbers(0, 1, 2)
        assert_recalled(store, yardstick())
        store.release(JOB, range(3))
        assert not (tmp_path / OLD).exists()


@pytest.fixture(scope="module")
def archived() -> FakeDisk:
    """An archived file with four updates, and two in another one."""
    disk = FakeDisk()
    store = begun(disk)
    for chosen in (0, 1, 2, 3):
        store.apply(told(chosen))
    store.snapshot()
    store.apply(told(4, 5))
    store.snapshot()
    store.close()
    return disk


def damaged(disk: FakeDisk, content: bytes, name: str = OLD) -> FakeDisk:
    other = copy_of(disk)
    other.damage(name, content)
    return other


def recalled(store: Store, chunk: int, expected: plain.Store) -> bool:
    """Recall a chunk, which comes as it was told, or not at all, and then not ever."""
    told = ""
    try:
        found = store.recall(JOB, chunk, ALL)
    except DamagedError as error:
        told = str(error)
    if told:
        assert re.match(r"log-0000000[12] is damaged at byte [\d,]+: ", told)
        assert chunk not in store.retained(JOB)
        assert store.recall(JOB, chunk, ALL) == []
        return False
    assert found or chunk not in store.retained(JOB)
    for update in found:
        shards = update.shards.tolist()
        rows = LESSONS[chunk].rows.items()
        wanted = {neuron: row for neuron, row in rows if expected.shard_of(neuron) in shards}
        assert rows_of(update.delta) == wanted
    return sorted(n for update in found for n in update.shards.tolist()) == list(ALL)


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


class Counting:
    """Files that count the bytes that are read."""

    def __init__(self, disk: FakeDisk) -> None:
        self.disk, self.nbytes = disk, 0

    def __getattr__(self, name: str) -> Callable[..., object]:
        return getattr(self.disk, name)  # type: ignore[no-any-return]

    def read(self, name: str, size: int = -1, start: int = 0) -> bytes:
        data = self.disk.read(name, size, start)
        self.nbytes += len(data)
        return data


def test_payloads_of_old_files_are_not_read(disk: FakeDisk) -> None:
    store = begun(disk)
    assert store._disk is not None
    identity, shards = store._disk.identity, np.arange(4, dtype=np.uint16)
    record = b"".join([JOB, bytes(4), (4).to_bytes(4, "little"), shards.tobytes(), bytes(1 << 20)])
    for _ in range(10):
        store._disk.log.append([(Kind.UPDATE, record), (Kind.NOTE, bytes(100))])
    store._disk.log.roll()
    counting = Counting(disk)
    found = list(heads(counting, identity, 1, head_size(4)))
    assert [one.kind for one in found] == [Kind.HOLD, *[Kind.UPDATE, Kind.NOTE] * 10]
    assert all(update_head(one.start)[0] == JOB for one in found if one.kind == Kind.UPDATE)
    assert counting.nbytes < disk.size(OLD) / 50


def test_files_that_are_released_while_fsck_looks_are_no_problem(
    archived: FakeDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = copy_of(archived)
    store, size = Store.open(disk, retain=True), disk.size

    def released(name: str) -> int:
        store.release(JOB, range(6))
        return size(name)

    monkeypatch.setattr(disk, "size", released)
    checked = fsck(disk)
    assert (checked.problems, checked.files) == ([], len(disk.names()))
    assert logs(disk) == [3]
    monkeypatch.setattr(disk, "size", lambda name: size("none"))
    with pytest.raises(FileNotFoundError):
        fsck(disk)


def test_records_that_are_not_held_any_more_are_not_kept() -> None:
    archive, ledger = Archive(), Ledger(4)
    shards = np.arange(4, dtype=np.uint16)
    for chunk in range(4):
        archive.add(Kept(JOB, chunk, shards, 100, Place(chunk, 56)))
    for number in range(3):
        ledger.hold(number, Applied({JOB: BitMap(range(number + 1))}))
    archive.keep_only(ledger)
    assert [archive.of(n) for n in ALL] == [*(ledger.of(n) for n in range(3)), Applied()]
    assert archive.files == {0, 1, 2, 3}
    assert archive.size == 300
    archive.move({Place(0, 56): Place(5, 56), Place(5, 56): Place(8, 72), Place(1, 1): Place(9, 9)})
    assert archive.files == {1, 2, 3, 8, 9}
    assert archive.find(JOB, 0)[0].place == Place(8, 72)
    archive.add(Kept(JOB, 2, shards[:0], 100, Place(0, 0)))
    assert len(archive.find(JOB, 2)) == 1


def test_of_two_records_the_later_one_counts() -> None:
    archive = Archive()
    for at, shards in enumerate(([0, 1, 2], [2, 3], [1, 2])):
        archive.add(Kept(JOB, 7, np.array(shards, np.uint16), 100, Place(at, 56)))
    found = [(one.place, one.shards.tolist()) for one in archive.find(JOB, 7)]
    assert sorted(found) == [(Place(0, 56), [0]), (Place(1, 56), [3]), (Place(2, 56), [1, 2])]


def test_what_was_dropped_is_not_back_with_what_came_in_its_place(disk: FakeDisk) -> None:
    store = begun(disk)
    store.apply(told(0, 1))
    store.drop([2])
    store.adopt(learned(0, 1).content(2))
    store.snapshot()
    again = Store.open(disk, retain=True)
    assert again.applied(2, JOB) == numbers(0, 1)
    for one in (store, again):
        assert one.retained_for(2) == Applied()
        assert one.retained(JOB) == numbers(0, 1)


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
    with pytest.raises(DiskError, match="the next append writes it again"):
        store.sync()
    go_on(store)
    if OLD in disk.names():
        forget_unsynced(disk)
    assert store.retained(JOB) >= numbers(0, 1)
    assert_recalled(store, yardstick())


def test_what_a_crash_left_without_a_mark_is_read_where_it_was_written_anew(
    disk: FakeDisk,
) -> None:
    unsynced(disk)
    store = Store.open(disk, retain=True)
    assert logs(disk) == [1, 2]
    forget_unsynced(disk)
    assert store.retained(JOB) == numbers(0, 1)
    assert_recalled(store, yardstick())


def learned(*chosen: int, shards: Iterable[int] = ALL) -> Store:
    store = Store.in_memory(SMALL, LAYOUT)
    store.hold(shards)
    store.apply(told(*chosen, shards=shards))
    return store


def test_a_shard_that_overlaps_is_taken_in_with_the_deltas_that_it_lacks(store: Store) -> None:
    store.apply(told(0, 1, 2, 3))
    theirs = learned(1, 2, 4, 5)
    for n in ALL:
        store.adopt(theirs.content(n))
        assert store.applied(n, JOB) == numbers(*range(6))
    assert state_of(store) == state_of(learned(*range(6)))
    assert store.retained(JOB) == numbers(0, 1, 2, 3)
    if store._disk:
        again = Store.open(store._disk.files, retain=True)
        assert state_of(again) == state_of(store)


def test_it_is_refused_without_these_deltas(store: Store) -> None:
    store.apply(told(0, 1, 2, 3))
    store.release(JOB, [0])
    before = state_of(store)
    for theirs in (learned(1, 4), learned(3, 4)):
        with pytest.raises(UsageError, match="some chunks in common, and each has others"):
            store.adopt(theirs.content(2))
    assert state_of(store) == before
    store.adopt(learned(0, 2, 4).content(2))
    assert store.content(2).digest == learned(0, 1, 2, 3, 4).content(2).digest


def test_deltas_that_are_not_needed_are_not_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.apply(told(0, 1))
    monkeypatch.delattr(Store, "recall")
    for theirs in (learned(0), learned(0, 1), learned(3), learned(0, 1, 3, 4)):
        store.adopt(theirs.content(2))
    assert store.applied(2, JOB) == numbers(0, 1, 3, 4)


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


def test_sets_of_chunks_stay_as_they_were_and_equal_shards_share_them(store: Store) -> None:
    store.apply(told(0, 1) + told(2, shards=[3]))
    found = store.sets(range(8))
    assert list(found) == list(ALL)
    assert found[0] is found[1] is found[2]
    assert found[0] == Applied({JOB: numbers(0, 1)})
    assert found[3] == Applied({JOB: numbers(0, 1, 2)})
    store.apply(told(5))
    store.drop([3])
    assert found[3] == Applied({JOB: numbers(0, 1, 2)})
    store.hold([3])
    store.apply(told(0, 1, 2, shards=[3]))
    assert store.sets([3, 7]) == {3: Applied({JOB: numbers(0, 1, 2)})}


def marks(store: Store) -> dict[int, bytes]:
    return {shard: chunks.digest for shard, chunks in store.sets(ALL).items()}


def test_digests_tell_equal_sets_anywhere(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.apply(told(0, 1, 2))
    other = learned(2, 1, shards=[0, 3])
    assert len({*marks(store).values(), *marks(other).values()}) == 2
    other.apply(told(0, shards=[3]))
    mine, yours = marks(store), marks(other)
    assert list(yours) == [0, 3]
    assert mine[3] == yours[3] != yours[0]
    assert {len(one) for one in mine.values()} == {16}
    made = []
    write = Applied.to_bytes
    monkeypatch.setattr(Applied, "to_bytes", lambda self: made.append(self) or write(self))
    for _ in range(3):
        assert marks(store) == mine
    assert made == []
    store.apply(told(3))
    assert len({*marks(store).values(), *mine.values()}) == 2
    assert len(made) == 1


def test_deltas_kept_in_memory_are_accounted_for() -> None:
    store, plainly = begun(), Store.in_memory(SMALL, LAYOUT)
    plainly.hold(ALL)
    for one in (store, plainly):
        one.apply(told(*range(12)))
    parcels = sum(len(encode(one.delta)) for one in LESSONS)
    assert 0 <= store.nbytes - plainly.nbytes - 12 * KEPT_BYTES - parcels < 12 * 40
    assert parcels < store.archive_bytes < parcels + 12 * 80
    store.release(JOB, range(12))
    assert store.nbytes == plainly.nbytes


def test_what_is_kept_fits_the_budget() -> None:
    room = begun().nbytes + 20_000
    filled = begun(budget=Budget(room))
    same = [LESSONS[0]._replace(chunk=plain.Chunk(JOB, n)).update(ALL) for n in range(1000)]
    with pytest.raises(StoreFull):
        list(map(filled.apply, ([update] for update in same)))
    assert filled.nbytes <= room
    assert 3 < len(filled.retained(JOB)) < 30
    filled.compact()
    filled.release(JOB, range(1000))
    filled.apply([same[-1]])
