"""The file layer: a real directory and the one in memory do the same."""

import errno
import os
from pathlib import Path

import pytest

from giaann_p2p.store.disk import files as file_layer
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.files import DiskFiles, Files


@pytest.fixture(params=["disk", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    return DiskFiles(tmp_path) if request.param == "disk" else FakeDisk()


def test_what_is_written_is_read(files: Files) -> None:
    file = files.create("a")
    file.write(b"one ", b"", memoryview(b"two "))
    file.write(bytearray(b"three"))
    file.sync()
    files.sync()
    assert file.size == files.size("a") == 13
    assert (files.read("a"), files.read("a", 3)) == (b"one two three", b"one")
    assert files.read("a", 99) == b"one two three"
    assert (files.read("a", 3, 4), files.read("a", start=4)) == (b"two", b"two three")
    assert (files.read("a", 99, 8), files.read("a", 3, 99)) == (b"three", b"")
    file.close()
    file.close()
    again = files.reopen("a")
    again.truncate(4)
    again.write(b"more")
    assert (again.size, files.read("a")) == (8, b"one more")
    again.close()


def test_names(files: Files) -> None:
    for name in ("b", "c", "a"):
        file = files.create(name)
        file.write(name.encode())
        file.close()
    assert files.names() == ["a", "b", "c"]
    files.rename("a", "b")
    assert (files.names(), files.read("b")) == (["b", "c"], b"a")
    files.remove("c")
    assert files.names() == ["b"]
    assert files.path("b").endswith("b")


def test_errors_are_os_errors(files: Files) -> None:
    files.create("a").close()
    with pytest.raises(FileExistsError):
        files.create("a")
    for wrong in (files.read, files.size, files.reopen, files.remove):
        with pytest.raises(FileNotFoundError):
            wrong("b")
    with pytest.raises(FileNotFoundError):
        files.rename("b", "a")
    closed = files.reopen("a")
    closed.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        closed.write(b"x")


def test_a_renamed_file_is_written_to_under_its_new_name(files: Files) -> None:
    file = files.create("a")
    files.rename("a", "b")
    file.write(b"text")
    file.close()
    assert files.read("b") == b"text"


def test_many_pieces_in_small_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.writev

    def slow(handle: int, parts: list[memoryview]) -> int:
        assert len(parts) <= 1024
        return real(handle, [parts[0][:7]])

    pieces = [b"%d" % number * (number % 5) for number in range(3000)]
    monkeypatch.setattr(file_layer.os, "writev", slow)
    files = DiskFiles(tmp_path)
    file = files.create("a")
    file.write(*pieces)
    file.close()
    assert files.read("a") == b"".join(pieces)


def test_a_write_that_breaks_off_counts_what_went_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = DiskFiles(tmp_path).create("a")
    file.write(b"whole ")
    real, calls = os.writev, []

    def full(handle: int, parts: list[memoryview]) -> int:
        calls.append(handle)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, [parts[0][:3]])

    monkeypatch.setattr(file_layer.os, "writev", full)
    with pytest.raises(OSError, match="No space"):
        file.write(b"in vain")
    assert file.size == 9
    file.truncate(6)
    assert DiskFiles(tmp_path).read("a") == b"whole "
    file.close()


def test_folders_are_not_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert DiskFiles(tmp_path).names() == []
