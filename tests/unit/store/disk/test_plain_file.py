"""Pipes, devices and links where files should be: nothing waits or is written elsewhere."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from giaann_p2p.errors import DiskError, UsageError
from giaann_p2p.local.status_file import Status
from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.node.members.acquaintances import Acquaintances
from giaann_p2p.store.disk.files import DiskFiles
from giaann_p2p.store.disk.small_file import read_json, read_whole, write_whole

OTHERS = b"somebody's own file"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("put", [pipe, device, Path.mkdir])
def test_what_is_no_file_is_told_of_at_once(tmp_path: Path, put: Callable[[Path], None]) -> None:
    path = tmp_path / "file"
    put(path)
    for read in (lambda: read_whole(path, 100), lambda: read_json(path, Status)):
        with pytest.raises(DiskError, match="not a plain file; remove it"):
            read()
    with pytest.raises(UsageError, match="not a plain file; remove it"):
        open_key_file(path)
    assert Acquaintances(path).addresses == []
    assert DiskFiles(tmp_path).names() == []


def test_a_file_may_be_a_link_to_be_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "token").symlink_to(tmp_path / "secret")
    assert read_whole(tmp_path / "token", 100) == b"x"


@pytest.mark.parametrize("put", [lambda path, to: path.symlink_to(to), lambda path, _: pipe(path)])
def test_no_draft_is_written_through_a_link(
    tmp_path: Path, put: Callable[[Path, Path], None]
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(OTHERS)
    put(tmp_path / ".token.new", victim)
    write_whole(tmp_path / "token", b"x")
    known = Acquaintances(tmp_path / "known-peers.json")
    put(tmp_path / ".known-peers.json.new", victim)
    known.write()
    assert victim.read_bytes() == OTHERS
    assert (tmp_path / "token").read_bytes() == b"x"
    assert not (tmp_path / "token").is_symlink()
    assert Acquaintances(tmp_path / "known-peers.json").sequence == known.sequence


@pytest.mark.parametrize("synced", [True, False])
def test_a_file_that_is_replaced_is_on_the_disk_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synced: bool
) -> None:
    """The folder is synced, too: it has the name."""
    done, sync, replace = list[str](), os.fsync, Path.replace

    def fsync(number: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")
        sync(number)

    def replaced(draft: Path, path: Path) -> Path:
        done.append("replace")
        return replace(draft, path)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replaced)
    write_whole(tmp_path / "edition", b"x", synced=synced)
    assert done == (["file", "replace", "folder"] if synced else ["replace"])


def test_a_log_that_is_a_link_is_none_of_the_stores(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(OTHERS)
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "log-00000001").symlink_to(tmp_path / "victim")
    files = DiskFiles(tmp_path / "store")
    assert files.names() == []
    with pytest.raises(FileExistsError):
        files.create("log-00000001")
