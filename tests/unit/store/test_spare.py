"""Released deltas are remembered as long as there is room, the oldest least."""

from dataclasses import replace
from random import Random
from unittest.mock import Mock

import numpy as np
import pytest
from pyroaring import BitMap

from giaann_p2p.store import spare as spare_module
from giaann_p2p.store.applied import WITHDRAWN, Applied
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.record import Place
from giaann_p2p.store.kept import Kept
from giaann_p2p.store.layout import among
from giaann_p2p.store.spare import Spare
from giaann_p2p.store.store import Store
from tests.helpers import SMALL
from tests.helpers_store import JOB
from tests.unit.store.helpers_archive import ALL, LAYOUT, logs, numbers, told

ROOM = 1 << 20


def begun(disk: FakeDisk, spare: int = ROOM) -> Store:
    store = Store.open(disk, SMALL, LAYOUT, retain=True, spare=spare)
    store.hold(ALL)
    return store


def remembered(store: Store) -> dict[int, list[int]]:
    """Return the shards of each chunk of which a delta is at hand."""
    found: dict[int, list[int]] = {}
    for kept in store.kept():
        parcel = store.parcel(kept)
        assert parcel is not None
        found[kept.chunk] = sorted([*found.get(kept.chunk, []), *parcel.shards.tolist()])
    return found


def cached_for(store: Store, *shards: int) -> BitMap:
    """Return the chunks of which a delta is retained or cached for each of some shards."""
    return store.kept_for_all(np.array(shards, np.uint16), [JOB], cached=True).of(JOB)


def test_what_is_released_is_given_to_whom_nothing_else_helps(disk: FakeDisk) -> None:
    store = begun(disk)
    store.apply(told(0, 1, 2))
    whole = {chunk: store.parcels(JOB, chunk, [1, 2]) for chunk in (0, 1)}
    store.release(JOB, [0])
    store.release(JOB, [1], [2])
    assert store.retained_for(2).of(JOB) == numbers(2)
    assert cached_for(store, 2) == numbers(0, 1, 2)
    assert store.kept_for_all(np.array([2], np.uint16), [JOB]).of(JOB) == numbers(2)
    assert store.retained_for(2, [JOB, bytes(16)]) == store.retained_for(2)
    assert store.retained_for(2, [bytes(16)]) == Applied()
    assert store.kept_for_all(np.array([2], np.uint16), [bytes(16)], cached=True) == Applied()
    for chunk in (0, 1):
        found = store.remembered(JOB, chunk, [1, 2])
        shards = sorted(shard for parcel in found for shard in parcel.shards.tolist())
        assert shards == [1, 2]
        if chunk == 0:
            assert [bytes(one.data) for one in found] == [bytes(one.data) for one in whole[0]]
    assert store.remembered(JOB, 9, [1]) == []
    store.drop([2])
    assert cached_for(store, 2) == cached_for(store, 1, 2) == numbers()
    assert cached_for(store, 1) == cached_for(store, 0, 1) == numbers(0, 1, 2)


def test_what_is_released_is_remembered_and_given_to_nobody(disk: FakeDisk) -> None:
    store = begun(disk)
    store.apply(told(0, 1))
    store.release(JOB, [0])
    store.release(JOB, [1], [2])
    assert remembered(store) == {0: list(ALL), 1: list(ALL)}
    assert store.retained(JOB) == numbers(1)
    assert store.recall(JOB, 0, ALL) == []
    assert not store.retained_for(2)


@pytest.mark.parametrize("snapshots", [0, 1, 2])
def test_it_is_found_again_when_the_store_is_opened(disk: FakeDisk, snapshots: int) -> None:
    store = begun(disk)
    store.apply(told(0, 1))
    store.release(JOB, [0], [0, 1])
    for _ in range(snapshots):
        store.snapshot()
        store.apply(told(2))
    store.release(JOB, [1])
    store.close()
    again = Store.open(disk, retain=True, spare=ROOM)
    assert {n: remembered(again)[n] for n in (0, 1)} == {0: list(ALL), 1: list(ALL)}
    assert again.retained(JOB) == numbers(*([0, 2] if snapshots else [0]))
    assert Store.open(disk, retain=True).retained(JOB) == again.retained(JOB)


def test_without_room_nothing_is_remembered_and_its_files_go() -> None:
    for spare, files in ((0, [3]), (ROOM, [1, 2, 3])):
        disk = FakeDisk()
        store = begun(disk, spare)
        store.apply(told(0, 1))
        store.snapshot()
        store.snapshot()
        store.release(JOB, [0, 1])
        assert logs(disk) == files
        assert bool(remembered(store)) == bool(spare)


def test_the_oldest_are_forgotten_first(disk: FakeDisk) -> None:
    store = begun(disk, spare=3 * 4000)  # what small ones count
    store.apply(told(*range(6)))
    store.release(JOB, [2])
    store.release(JOB, [0, 1, 3])
    assert sorted(remembered(store)) == [0, 1, 3, 4, 5]


def test_shards_that_are_let_go_are_forgotten(disk: FakeDisk) -> None:
    store = begun(disk)
    store.apply(told(0, 1))
    store.release(JOB, [0])
    store.drop([1, 2])
    store.hold([1, 2])
    assert remembered(store) == {0: [0, 3], 1: [0, 3]}


def test_what_is_remembered_is_withdrawn_as_it_came_and_not_as_another_tells(
    disk: FakeDisk,
) -> None:
    store = begun(disk)
    mine, theirs = told(0)[0], told(1)[0]
    store.apply([mine._replace(seal=mine.seal._replace(words=b"mine"))])
    store.apply(told(1, 2))
    store.release(JOB, [0])
    before = store.digest()
    lie = theirs._replace(chunk=WITHDRAWN, seal=theirs.seal._replace(words=b"theirs"))
    assert [list(new) for new in store.apply([lie, *told(3)])] == [list(ALL)] * 2
    expected = begun(FakeDisk())
    expected.apply(told(1, 2, 3))
    assert store.digest() == expected.digest() != before
    assert store.recall(JOB, WITHDRAWN, ALL) == []  # nobody else may withdraw this
    store.close()
    again = Store.open(disk, retain=True, spare=ROOM)
    assert again.digest() == expected.digest()
    assert again.recall(JOB, WITHDRAWN, ALL) == []


def record(chunk: int, shards: list[int], file: int, size: int = 5000) -> Kept:
    return Kept(JOB, chunk, np.array(shards, np.uint16), size, Place(file, chunk * 100))


def with_lost_drop(disk: FakeDisk) -> Store:
    """Return a store that dropped shard 1 and holds it again; the record of the drop is gone.

    Chunk 1 was released for shard 1 before, and that file remains, for the sake of chunk 0.
    """
    store = begun(disk, 2 * 4000)
    store.apply([*told(0, shards=[2]), *told(1, shards=[1])])
    store.release(JOB, [1])
    store.snapshot()
    store.snapshot()
    store.drop([1])
    store.snapshot()
    assert logs(disk) == [1, 2, 4]
    store.hold([1])
    store.apply(told(1, shards=[1]))
    return store


def test_a_chunk_released_again_after_a_lost_drop_is_cached_once(disk: FakeDisk) -> None:
    store = with_lost_drop(disk)
    store.release(JOB, [1])
    store.apply(told(*range(2, 8), shards=[2]))
    for chunk in range(2, 8):
        store.release(JOB, [chunk])
    store.close()
    for _ in range(2):
        with Store.open(disk, retain=True, spare=2 * 4000) as again:
            assert remembered(again) == {0: [2], 6: [2], 7: [2]}


def test_a_chunk_kept_again_after_a_lost_drop_is_not_cached_as_well(disk: FakeDisk) -> None:
    with_lost_drop(disk).close()
    with Store.open(disk, retain=True, spare=2 * 4000) as again:
        assert remembered(again) == {0: [2], 1: [1]}
        assert len(again.remembered(JOB, 1, [1])) == 1


def test_a_later_record_replaces_those_of_the_same_chunk_and_shards() -> None:
    spare = Spare(ROOM)
    spare.add(record(1, [0, 1, 2], 1))
    spare.add(record(1, [3], 2))
    spare.add(record(2, [0, 1, 2], 3))
    spare.add(record(1, [1, 3], 4))
    found = [(one.chunk, one.shards.tolist(), one.place.file) for one in spare if one.place]
    assert found == [(1, [0, 2], 1), (2, [0, 1, 2], 3), (1, [1, 3], 4)]
    assert spare.files == {1, 3, 4}
    for shard in (1, 0, 3, 2):
        spare.drop(np.array([shard], np.uint16))
    assert len(spare) == spare._size == len(spare._of_chunk) == len(spare._groups) == 0


@pytest.mark.parametrize("seed", range(20))
def test_whatever_comes_and_goes_it_has_what_a_plain_list_has(seed: int) -> None:
    chance, room = Random(seed), 30 * 5000
    spare, plain = Spare(room), list[Kept]()
    for chunk in range(300):
        draw = chance.random()
        if draw < 0.75:
            shards = sorted(chance.sample(range(6), chance.choice((1, 2, 5, 6, 6, 6))))
            one = record(chunk, shards, chunk // 10, chance.choice((100, 4000, 5000, 20_000)))
            spare.add(one)
            plain.append(one)
        elif draw < 0.95:
            gone = np.array(sorted(chance.sample(range(6), chance.choice((1, 1, 2)))), np.uint16)
            spare.drop(gone)
            left = [replace(one, shards=one.shards[~np.isin(one.shards, gone)]) for one in plain]
            plain = [one for one in left if len(one.shards)]
        elif plain:
            one = chance.choice(plain)
            assert one.place
            moves = {one.place: Place(1000 + chunk, 7)}
            spare.move(moves)
            plain = [replace(o, place=moves.get(o.place, o.place)) for o in plain if o.place]
        while sum(max(one.size, 4000) for one in plain) > room:
            plain.pop(0)
        assert [shown(one) for one in spare] == [shown(one) for one in plain]
        assert spare.files == {one.place.file for one in plain if one.place}
        assert spare._size == sum(max(one.size, 4000) for one in plain)
        assert len(spare) == len(plain)
        assert set(spare._group_of) == set(spare._kept)
        assert sum(len(group.numbers) for group in spare._groups.values()) == len(plain)
        assert all(group.shards.tobytes() == at for at, group in spare._groups.items())


def shown(one: Kept) -> tuple[int, list[int], int, Place | None]:
    return one.chunk, one.shards.tolist(), one.size, one.place


def test_shards_are_let_go_without_looking_at_each_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spare = Spare(1 << 30)
    for chunk in range(10_000):
        spare.add(record(chunk, [0, 1, 2, 3] if chunk % 2 else [1, 2, 3], 1))
    looked, made = Mock(wraps=among), Mock(wraps=replace)
    monkeypatch.setattr(spare_module, "among", looked)
    monkeypatch.setattr(spare_module, "replace", made)
    spare.drop(np.array([0], np.uint16))
    assert (looked.call_count, made.call_count) == (2, 0)
    assert len(spare._groups) == 1
    spare.drop(np.array([9], np.uint16))
    assert looked.call_count == 3
    assert {tuple(one.shards.tolist()) for one in spare} == {(1, 2, 3)}


def test_it_says_what_it_has() -> None:
    assert repr(Spare(100)) == "<Spare: 0 deltas, 0 bytes>"
    assert len(Spare()) == Spare().nbytes == 0
