"""Cold copies: whole or not there, whatever happens to the disk, and the same content again."""

import errno
import random

import pytest

from giaann_p2p.errors import DamagedError, DiskError, StoreError
from giaann_p2p.store.cold import name_of
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.fsck import fsck
from giaann_p2p.store.store import Store
from tests.helpers_store import on_disk
from tests.unit.store.helpers import ALL, LAYOUT, LESSONS, in_memory, same, taught

SINCE = 1.8e9


def _filled(store: Store) -> Store:
    store.hold(ALL)
    store.apply([one.update(ALL) for one in LESSONS[:5]])
    return store


def _cooled(store: Store) -> Store:
    """Let all shards leave memory for their copies."""
    for shard in ALL:
        _filled(store).cool(shard, SINCE)
    store.drop(ALL)
    return store


def test_what_cooled_comes_back_as_it_was(store: Store) -> None:
    _cooled(store)
    assert not len(store.shards)
    assert sorted(store.cold.copies) == [*ALL]
    store.hold(ALL)
    for shard in ALL:
        store.thaw(shard)
    assert same(store, taught(*LESSONS[:5]))


def test_a_copy_says_what_it_is(store: Store) -> None:
    _cooled(store)
    for shard, copy in store.cold.copies.items():
        assert (copy.shard, copy.since) == (shard, SINCE)
        assert len(copy.chunks) == 5
    assert store.cold.nbytes == sum(copy.nbytes for copy in store.cold.copies.values()) > 0
    assert "4 shards" in repr(store.cold)


def test_a_restart_finds_the_copies(disk: FakeDisk, store: Store) -> None:
    before = dict(_cooled(store).cold.copies)
    store.close()
    with on_disk(disk, LAYOUT) as again:
        assert {n: (c.since, c.nbytes) for n, c in again.cold.copies.items()} == {
            n: (c.since, c.nbytes) for n, c in before.items()
        }
        assert all(again.cold.copies[n].chunks == before[n].chunks for n in before)
        assert fsck(disk).problems == []


def test_what_was_learned_meanwhile_is_added(store: Store) -> None:
    _cooled(store)
    store.hold(ALL)
    store.apply([one.update(ALL) for one in LESSONS[5:8]])
    for shard in ALL:
        store.thaw(shard)
    assert same(store, taught(*LESSONS[:8]))


def test_forgetting_removes_the_file(disk: FakeDisk, store: Store) -> None:
    _cooled(store)
    store.cold.forget([0, 2])
    assert sorted(store.cold.copies) == [1, 3]
    assert name_of(0) not in disk.names()
    store.cold.forget([0])  # once more changes nothing
    assert sorted(store.cold.copies) == [1, 3]


@pytest.mark.parametrize("seed", range(20))
def test_after_a_power_cut_a_copy_is_whole_or_not_there(seed: int) -> None:
    rng, disk = random.Random(seed), FakeDisk()
    store = _filled(on_disk(disk, LAYOUT))
    store.cool(0, SINCE)
    disk.fail_at(rng.randrange(1, 8), errno.EIO, partial=True, times=1 << 30)
    try:
        store.cool(1, SINCE)
        store.cold.forget([0])
    except DiskError:
        pass
    with on_disk(disk.crash(rng), LAYOUT) as again:
        assert not again.cold.damaged
        for shard in again.cold.copies:
            assert len(again.cold.content(shard).applied[0]) == 5


def test_a_disk_that_is_full_leaves_nothing_behind(disk: FakeDisk, store: Store) -> None:
    _filled(store)
    names = disk.names()
    disk.capacity = sum(map(disk.size, names)) + 100
    with pytest.raises(DiskError, match="no cold copy was written"):
        store.cool(0, SINCE)
    assert disk.names() == names
    assert not store.cold.copies


def test_what_a_crash_left_unfinished_is_removed(disk: FakeDisk, store: Store) -> None:
    _cooled(store).close()
    disk.create("cold-00001.new")
    with on_disk(disk, LAYOUT) as again:
        assert sorted(again.cold.copies) == [*ALL]
    assert "cold-00001.new" not in disk.names()


@pytest.mark.parametrize("at", [0, 40, 70, -60, -1])
def test_a_damaged_copy_is_told_and_not_taken_in(disk: FakeDisk, store: Store, at: int) -> None:
    _cooled(store).close()
    data = bytearray(disk.read(name_of(2)))
    data[at] ^= 0x40
    disk.damage(name_of(2), bytes(data))
    assert any(name_of(2) in problem for problem in fsck(disk).problems)
    with on_disk(disk, LAYOUT) as again:
        again.hold(ALL)
        if 2 in again.cold.copies:
            with pytest.raises(DamagedError, match=name_of(2)):
                again.thaw(2)
        else:
            assert again.cold.damaged == [name_of(2)]
        again.thaw(1)


@pytest.mark.parametrize("before", [(1, 1), (2, 1), (2, 2)])
def test_a_copy_forgotten_while_fsck_looks_is_no_problem(
    disk: FakeDisk, store: Store, before: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`before`: the shard, and the number of the read of its copy, before which one goes."""
    for shard in (1, 2):
        store.cool(shard, 0.0)
    reads = {name_of(1): 0, name_of(2): 0}

    def late(name: str, *arguments: int) -> bytes:
        if name in reads:
            reads[name] += 1
            if name == name_of(before[0]) and reads[name] == before[1]:
                store.cold.forget([2])
        return FakeDisk.read(disk, name, *arguments)

    monkeypatch.setattr(disk, "read", late)
    assert fsck(disk).problems == []


def test_a_copy_of_another_store_or_shard_is_none(disk: FakeDisk, store: Store) -> None:
    _cooled(store).close()
    disk.damage(name_of(1), disk.read(name_of(0)))
    with on_disk(disk, LAYOUT) as again:
        assert again.cold.damaged == [name_of(1)]


def test_a_store_in_memory_keeps_none() -> None:
    store = in_memory(*LESSONS[:2])
    assert not store.cold.durable
    with pytest.raises(StoreError, match="no cold copies"):
        store.cool(0, SINCE)
