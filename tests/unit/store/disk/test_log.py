"""The log: what it takes it gives back, and a disk that fails is told and survived."""

import errno
import random
from pathlib import Path

import pytest

from giaann_p2p.errors import DamagedError, DiskError
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.fake_file import FakeFile
from giaann_p2p.store.disk.files import DiskFiles
from giaann_p2p.store.disk.log import Log
from giaann_p2p.store.disk.record import MARK
from giaann_p2p.store.disk.recover import recover
from giaann_p2p.store.disk.replay import replay
from giaann_p2p.store.disk.sync import NEVER, Sync
from giaann_p2p.store.disk.verify import verify
from tests.helpers_log import IDENTITY, found, recovered

A, B, C, D = (1, b"a"), (2, b""), (254, b"c" * 21), (0, b"dddddddd")


@pytest.fixture
def disk() -> FakeDisk:
    return FakeDisk()


@pytest.fixture
def log(disk: FakeDisk) -> Log:
    return recovered(disk)[0]


def test_records_come_back_in_order(disk: FakeDisk, log: Log) -> None:
    log.append([A, B])
    log.append([])
    log.append([C])
    assert found(disk) == [A, B, C]
    log.close()
    again, records = recovered(disk)
    assert (records, again.number) == ([A, B, C], 1)
    again.append([D])
    assert found(disk) == [A, B, C, D]
    assert disk.names() == ["log-00000001"]


def test_on_a_real_disk(tmp_path: Path) -> None:
    files = DiskFiles(tmp_path)
    log = recovered(files)[0]
    log.append([A, (7, memoryview(b"x" * 100_000))])
    log.append([B])
    assert log.roll() == 2
    log.append([C])
    log.close()
    again, records = recovered(files)
    assert records == [A, (7, b"x" * 100_000), B, C]
    again.forget_before(2)
    assert found(files, 2) == [C]
    with pytest.raises(DamagedError, match=rf"{tmp_path}/log-00000001 is damaged .* is missing"):
        found(files)


def test_payloads_are_views_at_multiples_of_8(disk: FakeDisk, log: Log) -> None:
    log.append([A, C, D])
    for record in replay(disk, IDENTITY):
        payload_at = record.place.offset + 16
        assert payload_at % 8 == 0
        assert record.payload.readonly
        content = disk.read("log-00000001")
        assert content[payload_at : payload_at + len(record.payload)] == record.payload


def test_one_write_and_one_sync_for_a_group(disk: FakeDisk, log: Log) -> None:
    before = disk.operations
    log.append([A, B, C])
    assert disk.operations - before == 3  # and the mark
    log.append([A])
    assert disk.operations - before == 6


def test_syncs_at_intervals(disk: FakeDisk) -> None:
    log = recovered(disk, sync=Sync(5.0))[0]
    seen = []
    for now in (100.0, 104.9, 105.0, 109.0, 110.5, 90.0, 91.0):
        before = disk.operations
        log.append([A], now)
        seen.append(disk.operations - before)
    assert seen == [1, 1, 3, 1, 3, 3, 1]  # a clock that goes back is no reason to wait
    before = disk.operations
    log.sync()
    log.sync()
    assert disk.operations - before == 2


def test_never_syncs(disk: FakeDisk) -> None:
    log = recovered(disk, sync=NEVER)[0]
    before = disk.operations
    for now in (0.0, 1e9, -1.0):
        log.append([A], now)
    assert disk.operations - before == 3
    log.close()
    assert disk.operations - before == 5


def test_rolls_and_forgets(disk: FakeDisk, log: Log) -> None:
    log.append([A])
    assert (log.number, log.roll(), log.number) == (1, 2, 2)
    log.append([B])
    assert log.roll() == 3
    assert log.size == sum(disk.size(name) for name in disk.names())
    assert found(disk, 2) == [B]
    log.forget_before(2)
    assert disk.names() == ["log-00000002", "log-00000003"]
    log.forget_before(99)
    assert disk.names() == ["log-00000003"]
    assert log.size == disk.size("log-00000003")
    log.append([C])
    assert found(disk, 3) == [C]
    assert log.size == disk.size("log-00000003")


def test_a_closed_log_takes_no_more(log: Log) -> None:
    log.close()
    log.close()
    with pytest.raises(ValueError, match="closed"):
        log.append([A])


@pytest.mark.parametrize("kind", [-1, MARK, 256])
def test_a_kind_has_a_range(disk: FakeDisk, log: Log, kind: int) -> None:
    with pytest.raises(ValueError, match="kind"):
        log.append([A, (kind, b"")])
    assert found(disk) == []


def test_a_full_disk_is_told_and_survived(disk: FakeDisk, log: Log) -> None:
    log.append([A])
    disk.capacity = disk.size("log-00000001") + 10
    for _ in range(3):
        with pytest.raises(
            DiskError, match=r"log-0000000\d: No space left.*the write was not kept"
        ):
            log.append([B, C])
        assert found(disk) == [A]
    disk.capacity = None
    log.append([C, D])
    assert found(disk) == [A, C, D]
    assert (log.number, disk.names()) == (2, ["log-00000001", "log-00000002"])
    log.append([B])
    assert log.number == 2


def test_a_torn_end_in_an_older_file_is_no_damage(disk: FakeDisk, log: Log) -> None:
    log.append([A])
    disk.fail_at(1, errno.EIO, partial=True, times=2)  # the write, and cutting it off again
    with pytest.raises(DiskError):
        log.append([C, C, C])
    assert found(disk) == [A, C]  # whole, though nobody acknowledged it
    log.append([B])
    assert found(disk) == [A, B]
    assert not list(verify(disk, IDENTITY))


def test_a_mark_that_cannot_be_written_is_no_failure(disk: FakeDisk, log: Log) -> None:
    disk.fail_at(3, errno.ENOSPC, partial=True)
    log.append([A])
    log.append([B])
    assert found(disk) == [A, B]
    assert log.number == 2


def test_what_was_not_synced_is_written_again(disk: FakeDisk) -> None:
    log = recovered(disk, sync=NEVER)[0]
    log.append([A, B])
    log.append([C])
    disk.fail_at(1, errno.EIO)
    with pytest.raises(
        DiskError, match="the next append writes the records again; reading still works"
    ):
        log.sync()
    log.append([D])
    assert found(disk) == [A, B, C, D]
    assert found(disk, 2) == [A, B, C, D]


def test_behind_an_interrupted_sync_the_log_takes_a_new_file(
    disk: FakeDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_file: FakeFile) -> None:
        raise KeyboardInterrupt

    log = recovered(disk, sync=NEVER)[0]
    log.append([A])
    with monkeypatch.context() as patched:
        patched.setattr(FakeFile, "sync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            log.sync()
    log.append([B])
    assert (log.number, found(disk)) == (2, [A, B])


def test_what_a_sync_can_save_is_not_written_again(disk: FakeDisk) -> None:
    log = recovered(disk, sync=NEVER)[0]
    log.append([A, B])
    disk.fail_at(1, errno.ENOSPC, partial=True)
    with pytest.raises(DiskError):
        log.append([C])
    log.append([D])
    assert (found(disk), found(disk, 2)) == ([A, B, D], [D])


def test_what_is_recovered_is_safe(disk: FakeDisk) -> None:
    recovered(disk, sync=NEVER)[0].append([A, B])  # and the process is killed
    assert recovered(disk)[1] == [A, B]
    assert all(found(disk.crash(random.Random(n))) == [A, B] for n in range(50))


def test_what_is_lost_of_an_interval_is_told(disk: FakeDisk) -> None:
    log = recovered(disk, sync=NEVER)[0]
    log.append([A])
    log.append([B])
    disk.damage("log-00000001", disk.read("log-00000001")[:-1])  # the system let go of a page
    disk.fail_at(1, errno.EIO)
    with pytest.raises(DiskError, match="1 earlier records were not synced and are lost"):
        log.sync()
    log.append([C])
    assert found(disk) == [A, C]


def test_a_roll_puts_what_was_not_synced_in_an_older_file(disk: FakeDisk) -> None:
    log = recovered(disk, sync=NEVER)[0]
    log.append([A])
    disk.fail_at(1, errno.EIO)
    with pytest.raises(DiskError):
        log.roll()
    assert log.roll() == 3
    assert (found(disk), found(disk, 3)) == ([A], [])


@pytest.mark.parametrize("n", range(1, 6))
def test_a_failed_roll_is_tried_again(disk: FakeDisk, log: Log, n: int) -> None:
    log.append([A])
    disk.fail_at(n, errno.ENOSPC)
    with pytest.raises(DiskError, match="log-00000002"):
        log.roll()
    assert "log.new" not in disk.names()
    assert found(disk) == [A]
    log.append([B])
    assert (found(disk), found(disk, 2), log.roll()) == ([A, B], [B], 3)


def test_files_that_cannot_be_removed(disk: FakeDisk, log: Log) -> None:
    log.roll()
    disk.fail_at(1, errno.EIO)
    with pytest.raises(DiskError, match="old log files may remain"):
        log.forget_before(2)
    log.append([A])
    log.forget_before(2)
    assert disk.names() == ["log-00000002"]
    assert all(disk.crash(random.Random(n)).names() == disk.names() for n in range(20))


def test_a_disk_that_only_reads_is_recovered_from(disk: FakeDisk, log: Log) -> None:
    log.append([A, B])
    torn = disk.read("log-00000001") + b"torn"
    disk.damage("log-00000001", torn)
    disk.fail_at(1, errno.EROFS, times=99)
    again, records = recovered(disk)
    assert records == [A, B]
    with pytest.raises(DiskError, match="Read-only"):
        again.append([C])
    assert disk.read("log-00000001") == torn


def test_other_files_are_left_alone(disk: FakeDisk, log: Log) -> None:
    for name in ("log-1", "log-00000009.old", "log-000000001", "snapshot"):
        disk.create(name)
    log.append([A])
    log.roll()
    log.forget_before(9)
    assert found(disk, 2) == []
    assert len(disk.names()) == 5


def test_a_log_that_has_to_exist(disk: FakeDisk) -> None:
    with pytest.raises(DamagedError, match=r"log-00000005 .*missing"):
        recover(disk, IDENTITY, 5)
    with pytest.raises(DamagedError, match=r"log-00000001 .*missing"):
        recover(disk, IDENTITY, exists=True)
    assert disk.names() == []
