"""Deltas that are kept until they are released: found, cut, and let go."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pyroaring import BitMap

from giaann_p2p.errors import DamagedError, StoreFull, UsageError
from giaann_p2p.model.delta import EMPTY, Delta, total
from giaann_p2p.model.digest import digest
from giaann_p2p.store import applied
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.archive import KEPT_BYTES, Archive, Kept
from giaann_p2p.store.budget import Budget
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.heads import heads
from giaann_p2p.store.disk.record import Place
from giaann_p2p.store.fsck import fsck
from giaann_p2p.store.ledger import Ledger
from giaann_p2p.store.records import Kind, release_record, released
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import head_size, update_head
from tests.helpers import SMALL
from tests.helpers_store import JOB, JOBS, assert_recalled, copy_of, retained_of, rows_of, state_of
from tests.plain import store as plain
from tests.unit.store.helpers_archive import (
    ALL,
    LAYOUT,
    LESSONS,
    OLD,
    begun,
    learned,
    logs,
    numbers,
    told,
    yardstick,
)


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
    for shards, chunks in {(0, 1, 3): [0], (0, 3): [0], (2,): [1], (0, 2): [], (): []}.items():
        of_all = store.kept_for_all(np.array(shards, np.uint16), [JOB, JOBS[1]])
        assert list(of_all.of(JOB)) == chunks
    assert store.kept_for_all(np.array([1], np.uint16), [JOBS[1]]) == Applied()
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


def test_nothing_travels_as_a_parcel_of_nothing(store: Store) -> None:
    one = next(one for one in LESSONS if {*ALL} - homes_of(one.delta))
    store.apply([one.update(ALL)])
    for n in {*ALL} - homes_of(one.delta):
        (part,) = store.recall(*one.chunk, [n])
        assert part.delta is EMPTY
        (parcel,) = store.parcels(*one.chunk, [n])
        assert (parcel.shards.tolist(), parcel.data) == ([n], encode(EMPTY))
        assert parcel.unpacked > 0


def homes_of(delta: Delta) -> set[int]:
    return {LAYOUT.shard_of(*neuron) for neuron in rows_of(delta)}


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
    assert state_of(Store.open(disk)) == state_of(store)


def test_what_is_released_for_some_shards_is_kept_for_the_others(store: Store) -> None:
    store.apply(told(0, 1, 2))
    store.apply(told(3, shards=[1, 2]))
    store.release(JOB, [0, 3, 77], [1, 3, 500])
    kept = [list(store.retained_for(shard).of(JOB)) for shard in ALL]
    assert kept == [[0, 1, 2], [1, 2], [0, 1, 2, 3], [1, 2]]
    assert_recalled(store, yardstick())
    (update,) = store.recall(JOB, 0, ALL)
    assert update.shards.tolist() == [0, 2]
    store.release(JOB, [0, 3], [0, 2])
    assert store.retained(JOB) == numbers(1, 2)
    size = store.archive_bytes
    store.release(JOB, [0, 3])
    assert store.archive_bytes == size


def test_what_was_released_stays_so(disk: FakeDisk) -> None:
    store = begun(disk)
    store.apply(told(0, 1))
    store.release(JOB, [0])
    store.apply(told(2))
    store.snapshot()
    store.release(JOB, [1], [2])
    again = Store.open(copy_of(disk), retain=True)
    assert retained_of(again) == retained_of(store)
    assert list(again.retained_for(2).of(JOB)) == [2]
    before = disk.operations
    store.release(JOB, [0, 1], [2])
    assert disk.operations == before  # nothing is said twice


def test_a_release_that_cannot_be_read_is_damage() -> None:
    good = release_record(JOB, numbers(1, 2), np.array([0, 3], np.uint16))
    assert released(memoryview(good))[1] == numbers(1, 2)
    for bad in (good[:-1], good.replace(numbers(1, 2).serialize(), b"x" * 20), b""):
        with pytest.raises(DamagedError):
            released(memoryview(bad))


def test_files_that_cannot_be_removed_are_removed_later(disk: FakeDisk) -> None:
    store = begun(disk)
    store.apply(told(0, 1))
    store.snapshot()
    disk.fail_at(4, 5)  # behind the record, its sync and its mark
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
    hashed = applied._digest
    monkeypatch.setattr(applied, "_digest", lambda pairs: made.append(pairs) or hashed(pairs))
    for _ in range(3):
        assert marks(store) == mine
    assert made == []
    store.apply(told(3))
    assert len({*marks(store).values(), *mine.values()}) == 2
    assert len(made) == 1  # of the part that has the new chunk's job


def test_deltas_kept_in_memory_are_accounted_for() -> None:
    store, plainly = begun(), Store.in_memory(SMALL, LAYOUT)
    plainly.hold(ALL)
    for one in (store, plainly):
        one.apply(told(*range(12)))
    parcels = sum(len(encode(one.delta)) for one in LESSONS)
    assert 0 <= store.nbytes - plainly.nbytes - 12 * KEPT_BYTES - parcels < 12 * 50
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
