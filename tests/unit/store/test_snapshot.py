"""Snapshots: there as a whole or not at all."""

import errno
import random
from collections.abc import Iterator

import pytest

from giaann_p2p.errors import DamagedError, DiskError
from giaann_p2p.store import snapshot
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.record import Header

IDENTITY = b"0123456789abcdef"
RECORDS = [(1, b""), (2, b"five!"), (3, bytes(1000)), (1, b"once more")]


def records_of(disk: FakeDisk, number: int = 3) -> list[tuple[int, bytes]]:
    return [(r.kind, bytes(r.payload)) for r in snapshot.read(disk, IDENTITY, number)]


@pytest.fixture
def disk() -> FakeDisk:
    disk = FakeDisk()
    snapshot.write(disk, IDENTITY, 3, RECORDS)
    return disk


def test_records_come_back(disk: FakeDisk) -> None:
    assert disk.names() == ["snapshot-00000003"]
    assert records_of(disk) == RECORDS
    assert snapshot.newest(disk) == 3
    assert snapshot.size(disk) == disk.size("snapshot-00000003") > 1000
    for seed in range(10):
        assert records_of(disk.crash(random.Random(seed))) == RECORDS


def test_where_there_is_none() -> None:
    assert snapshot.newest(FakeDisk()) is None
    assert snapshot.size(FakeDisk()) == 0
    with pytest.raises(DiskError, match="snapshot-00000003: No such file"):
        records_of(FakeDisk())


def test_the_newest_counts_and_older_ones_are_forgotten(disk: FakeDisk) -> None:
    assert snapshot.write(disk, IDENTITY, 12, []) == disk.size("snapshot-00000012")
    snapshot.write(disk, IDENTITY, 123_456_789, [(5, b"new")])
    for name in ("snapshot-00000200.new", "snapshot-7", "snapshot-x", "letter.txt"):
        disk.create(name).close()
    assert snapshot.newest(disk) == 123_456_789
    snapshot.forget_before(disk, 12)
    assert disk.names() == [
        "letter.txt",
        "snapshot-00000012",
        "snapshot-123456789",
        "snapshot-7",
        "snapshot-x",
    ]
    assert records_of(disk, 12) == []
    assert records_of(disk, 123_456_789) == [(5, b"new")]


@pytest.mark.parametrize("partial", [False, True])
def test_one_that_fails_leaves_the_one_before(disk: FakeDisk, partial: bool) -> None:
    probe = FakeDisk()
    snapshot.write(probe, IDENTITY, 4, RECORDS)
    for n in range(1, probe.operations + 1):
        other = FakeDisk()
        snapshot.write(other, IDENTITY, 3, RECORDS)
        other.fail_at(n, errno.ENOSPC, partial)
        with pytest.raises(DiskError, match=r"snapshot-00000004\.new: No space .* the log is kept"):
            snapshot.write(other, IDENTITY, 4, RECORDS)
        assert not [name for name in other.names() if name.endswith(".new")]
        for seed in range(3):
            crashed = other.crash(random.Random(seed))
            assert records_of(crashed, snapshot.newest(crashed) or 0) == RECORDS


def test_whatever_ends_it_nothing_is_left_unfinished(disk: FakeDisk) -> None:
    def broken() -> Iterator[tuple[int, bytes]]:
        yield RECORDS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        snapshot.write(disk, IDENTITY, 4, broken())
    assert disk.names() == ["snapshot-00000003"]


def test_power_may_go_at_any_time() -> None:
    probe = FakeDisk()
    snapshot.write(probe, IDENTITY, 4, RECORDS)
    for n in range(1, probe.operations + 1):
        for seed in range(6):
            disk = FakeDisk()
            snapshot.write(disk, IDENTITY, 3, RECORDS)
            disk.fail_at(n, errno.EIO, bool(seed % 2), 1000)
            with pytest.raises(DiskError):
                snapshot.write(disk, IDENTITY, 4, RECORDS)
            crashed = disk.crash(random.Random(seed))
            assert records_of(crashed, snapshot.newest(crashed) or 0) == RECORDS


def test_any_cut_and_any_flip_is_told(disk: FakeDisk) -> None:
    name = "snapshot-00000003"
    content, rng = disk.read(name), random.Random(0)
    for size in range(len(content)):
        disk.damage(name, content[:size])
        with pytest.raises(DamagedError, match=rf"{name} is damaged at byte [\d,]+: "):
            records_of(disk)
    told = 0
    for at in range(len(content)):
        flipped = bytearray(content)
        flipped[at] ^= 1 << rng.randrange(8)
        disk.damage(name, bytes(flipped))
        try:
            assert records_of(disk) == RECORDS  # what fills up a record says nothing
        except DamagedError:
            told += 1
    assert told >= len(content) - 3 * 7
    disk.damage(name, content + bytes(8))
    with pytest.raises(DamagedError, match=f"{name} is damaged at byte {len(content):,}: "):
        records_of(disk)


def test_one_of_another_store_or_number_is_refused(disk: FakeDisk) -> None:
    told = "it belongs to another store or was renamed"
    with pytest.raises(DamagedError, match=told):
        list(snapshot.read(disk, IDENTITY[::-1], 3))
    disk.rename("snapshot-00000003", "snapshot-00000004")
    with pytest.raises(DamagedError, match=told):
        records_of(disk, 4)
    disk.damage("snapshot-00000004", Header(IDENTITY, 4, 0).packed())  # one of a log
    with pytest.raises(DamagedError, match=told):
        records_of(disk, 4)


def test_old_ones_that_cannot_be_removed_are_told(disk: FakeDisk) -> None:
    disk.fail_at(1, errno.EIO)
    with pytest.raises(DiskError, match="old snapshots may remain"):
        snapshot.forget_before(disk, 4)
