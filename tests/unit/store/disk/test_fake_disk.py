"""The disk in memory: it keeps what was synced, may lose the rest, and fails on demand."""

import errno
import random
from collections.abc import Iterator

import pytest

from giaann_p2p.store.disk.fake_disk import FakeDisk

PAGE = 4096


def crashes(disk: FakeDisk, count: int = 300) -> Iterator[FakeDisk]:
    for seed in range(count):
        yield disk.crash(random.Random(seed))


def test_what_was_synced_stays() -> None:
    disk = FakeDisk()
    file = disk.create("a")
    file.write(b"safe")
    file.sync()
    disk.sync()
    file.write(b" not")
    for left in crashes(disk):
        assert left.read("a")[:4] == b"safe"
    assert disk.read("a") == b"safe not"


def test_a_synced_file_whose_name_was_not_may_be_gone() -> None:
    disk = FakeDisk()
    file = disk.create("a")
    file.write(b"safe")
    file.sync()
    left = [disk.names() for disk in crashes(disk)]
    assert [] in left
    assert ["a"] in left
    assert all(disk.read("a") == b"safe" for disk in crashes(disk) if disk.names())


def test_a_write_is_torn_at_any_byte() -> None:
    disk = FakeDisk()
    file = disk.create("a")
    disk.sync()
    file.write(b"abcde")
    left = {disk.read("a") for disk in crashes(disk)}
    assert {b"abcde"[:size] for size in range(6)} <= left


def test_pages_are_kept_one_by_one() -> None:
    disk = FakeDisk()
    file = disk.create("a")
    file.write(b"s" * 100)
    file.sync()
    disk.sync()
    file.write(b"x" * 3 * PAGE)
    left = [disk.read("a") for disk in crashes(disk)]
    assert all(content[:100] == b"s" * 100 for content in left)
    assert any(content[100:PAGE] == bytes(PAGE - 100) and b"x" in content for content in left)
    assert any(content[PAGE:][:PAGE] == bytes(PAGE) and b"x" in content for content in left)


def test_what_was_cut_off_may_come_back() -> None:
    disk = FakeDisk()
    file = disk.create("a")
    disk.sync()
    file.write(b"old")
    file.sync()
    file.truncate(1)
    file.write(b"new")
    left = {disk.read("a") for disk in crashes(disk)}
    assert {b"old", b"onew", b"o"} <= left
    assert all(content.startswith(b"o") for content in left)


def test_steps_of_names_are_kept_one_by_one() -> None:
    disk = FakeDisk()
    for name in ("gone", "new"):
        file = disk.create(name)
        file.write(name.encode())
        file.sync()
    disk.sync()
    disk.remove("gone")
    disk.rename("new", "old")
    left = {tuple(disk.names()) for disk in crashes(disk)}
    assert {("gone", "new"), ("old",), ("gone", "old"), ("new", "old"), ()} <= left
    disk.sync()
    assert {tuple(disk.names()) for disk in crashes(disk)} == {("old",)}


def test_a_rename_onto_another_leaves_one_of_the_two() -> None:
    disk = FakeDisk()
    for name in ("state", "state.new"):
        file = disk.create(name)
        file.write(name.encode())
        file.sync()
    disk.sync()
    disk.rename("state.new", "state")
    assert {disk.read("state") for disk in crashes(disk)} == {b"state", b"state.new"}


def test_behind_a_failed_sync_no_other_helps() -> None:
    disk = FakeDisk()
    file = disk.create("a")
    disk.sync()
    file.write(b"text")
    disk.fail_at(1, errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    file.sync()
    assert any(disk.read("a") != b"text" for disk in crashes(disk))


@pytest.mark.parametrize("partial", [False, True])
def test_the_nth_change_fails(partial: bool) -> None:
    disk = FakeDisk()
    file = disk.create("a")
    disk.fail_at(2, errno.ENOSPC, partial, times=2)
    file.write(b"good")
    with pytest.raises(OSError, match="No space"):
        file.write(b"half")
    with pytest.raises(OSError, match="No space"):
        disk.remove("a")
    assert disk.names() == ([] if partial else ["a"])
    file.write(b"!")
    assert file.size == (7 if partial else 5)
    assert disk.operations == 5


def test_a_full_disk_takes_what_fits_and_more_when_there_is_room() -> None:
    disk = FakeDisk(10)
    other, file = disk.create("b"), disk.create("a")
    other.write(b"12345")
    with pytest.raises(OSError, match="No space"):
        file.write(b"1234567")
    assert (disk.read("a"), disk.free) == (b"12345", 0)
    file.truncate(2)
    file.write(b"345")
    disk.remove("b")
    file.write(b"67890")
    assert (disk.read("a"), disk.free) == (b"1234567890", 0)
    assert disk.crash(random.Random(1)).capacity == 10


def test_chance_is_the_callers() -> None:
    disk = FakeDisk()
    file = disk.create("a")
    file.write(b"text" * 5000)
    one, other = (disk.crash(random.Random(7)) for _ in range(2))
    assert [(name, one.read(name)) for name in one.names()] == [
        (name, other.read(name)) for name in other.names()
    ]
