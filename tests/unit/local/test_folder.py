"""One supervisor a folder, and nothing left of those that were killed."""

import errno
import os
import socket
import subprocess
from pathlib import Path

import pytest

from giaann_p2p.errors import DamagedError, DiskError, StoreError, UsageError
from giaann_p2p.local import linux
from giaann_p2p.local.folder import Folder, Hold, Known, Record
from giaann_p2p.local.roles import Spec
from giaann_p2p.local.status_file import Status, StatusFile
from tests.unit.local.helpers import names_in, processes_of


def long_folder(base: Path) -> Folder:
    return Folder(base / ("bees" * 25) / ("wasps" * 20) / "swarm")


def test_everything_has_its_place(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "s")
    assert repr(folder) == f"<Folder: {tmp_path}/s>"
    assert folder.log("storage-1") == tmp_path / "s/logs/storage-1.log"
    assert folder.data("storage-1") == tmp_path / "s/peers/storage-1/data"
    assert folder.status("storage-1") == tmp_path / "s/peers/storage-1/status.json"
    with Hold(folder) as hold:
        hold.prepare()
        assert folder.path.stat().st_mode & 0o777 == 0o700
        assert folder.run.stat().st_mode & 0o777 == 0o700
        assert (folder.path / "logs").is_dir()
    assert names_in(folder.path) == ["lock", "logs"]


def test_a_link_to_a_folder_is_that_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert Folder(tmp_path / "link").path == tmp_path / "real"


def test_a_record_is_kept(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.record() is None
    known = Known(name="storage-1", role="storage", listen="/x", metrics_port=3)
    record = Record(spec=Spec(shards=8), link="L", peers=[known])
    folder.keep(record)
    assert folder.record() == record
    (tmp_path / "swarm.json").write_text("{}")
    with pytest.raises(DamagedError, match=r"swarm\.json is damaged: spec is missing"):
        folder.record()


def test_a_folder_has_one_holder(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "s")
    hold = Hold(folder)
    with pytest.raises(StoreError, match=f"in use by process {os.getpid()}; .* swarm down --dir"):
        Hold(folder)
    with pytest.raises(StoreError, match="in use"):
        folder.erase()
    hold.close()
    hold.close()
    Hold(folder).close()


def disk_full(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_folder_on_a_full_disk_is_named_and_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(tmp_path / "s")
    monkeypatch.setattr(os, "pwrite", disk_full)
    with pytest.raises(DiskError, match=r"/s cannot be used as a swarm's folder: No space left"):
        Hold(folder)
    monkeypatch.undo()
    Hold(folder).close()


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("Bees.")
    with pytest.raises(UsageError, match="has other content"):
        Hold(Folder(tmp_path))
    with pytest.raises(StoreError, match="is not a swarm's folder; nothing was removed"):
        Folder(tmp_path).erase()
    with pytest.raises(UsageError, match=r"thesis\.txt cannot be used as a swarm's folder: "):
        Hold(Folder(tmp_path / "thesis.txt"))
    assert names_in(tmp_path) == ["thesis.txt"]


def test_a_long_folder_has_its_sockets_elsewhere(tmp_path: Path) -> None:
    folder = long_folder(tmp_path)
    with Hold(folder) as hold:
        hold.prepare()
        run = folder.run
        assert len(os.fsencode(run)) <= 80
        assert run.stat().st_mode & 0o777 == 0o700
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(folder.socket))
        assert (folder.path / "run" / "control.sock").is_socket()
    assert not run.exists()
    assert not os.path.lexists(folder.path / "run")


@pytest.mark.parametrize("long", [False, True])
def test_what_a_killed_supervisor_has_left_is_removed(tmp_path: Path, long: bool) -> None:
    folder = long_folder(tmp_path) if long else Folder(tmp_path / "s")
    hold = Hold(folder)
    hold.prepare()
    run = folder.run
    (run / "control.sock").touch()
    folder.data("storage-1").mkdir(parents=True)
    StatusFile(folder.status("storage-1")).write(Status(state="ready"))
    (folder.data("storage-1") / "kept").touch()
    left = subprocess.Popen(
        ["sleep", "1000"], env={**os.environ, linux.MARK: str(folder.path)}, start_new_session=True
    )
    other = subprocess.Popen(["sleep", "1000"], env={linux.MARK: f"{folder.path}-2"})
    os.close(hold._lock)  # as its death does
    try:
        with Hold(folder) as hold:
            assert left.wait() == -9
            assert other.poll() is None
            assert not run.exists()
            assert not folder.status("storage-1").exists()
            assert (folder.data("storage-1") / "kept").exists()
            hold.prepare()
    finally:
        other.kill()
        other.wait()
    assert processes_of(folder.path) == []


def test_a_link_to_other_things_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "bees.txt").touch()
    Hold(Folder(tmp_path / "s")).close()
    (tmp_path / "s" / "run").symlink_to(tmp_path / "thesis")
    Hold(Folder(tmp_path / "s")).close()
    assert not os.path.lexists(tmp_path / "s" / "run")
    assert (tmp_path / "thesis" / "bees.txt").exists()


def test_a_folder_is_erased(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "s")
    with Hold(folder) as hold:
        hold.prepare()
    folder.erase()
    assert names_in(tmp_path) == []


def test_a_folder_that_cannot_be_erased_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    Hold(Folder(tmp_path)).close()
    monkeypatch.setattr("shutil.rmtree", refuse)
    with pytest.raises(DiskError, match=f"^{tmp_path} cannot be removed: Permission denied$"):
        Folder(tmp_path).erase()
    monkeypatch.setattr(Path, "exists", refuse)
    with pytest.raises(DiskError, match=r"/lock: Permission denied$"):
        Folder(tmp_path).erase()
