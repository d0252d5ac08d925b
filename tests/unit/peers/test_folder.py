"""A daemon's folder."""

from errno import EACCES
from pathlib import Path

import pytest

from giaann_p2p.errors import DiskError, StoreError, UsageError
from giaann_p2p.node.members.membership import usual_folder
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import Manifest
from peers.folder import Folder

MANIFEST = Manifest.founded(Identity.from_seed(b"f" * 32), "bees")
LISTEN = ("/ip4/0.0.0.0/tcp/0", "/ip4/0.0.0.0/udp/0/quic-v1", "/ip6/::/tcp/4100")


def test_one_daemon_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    with Folder(path) as one:
        one.keep_manifest(MANIFEST)
        with pytest.raises(StoreError, match="is another daemon running in it"), Folder(path):
            pass
    with Folder(path) as one:
        assert one.manifest() == MANIFEST
    with pytest.raises(StoreError, match=r"is not a directory$"), Folder(path / "manifest.json"):
        pass


def test_a_folder_that_cannot_be_made_is_not_said_to_be_in_use() -> None:
    with pytest.raises(DiskError, match=r"^/proc/bees: [^;]*$"), Folder(Path("/proc/bees")):
        pass


def test_nothing_is_left_of_a_folder_that_nothing_was_put_in(tmp_path: Path) -> None:
    with Folder(tmp_path / "new"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_one_that_may_not_be_searched_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", refuse)
    with pytest.raises(DiskError, match=r"^/locked/in: Permission denied$"):
        Folder(Path("/locked/in/bees")).__enter__()


def fail(path: Path, *, kept: bool) -> None:
    """Keep a manifest in a folder, and fail then."""
    with Folder(path) as one, one.tried() as keep:
        one.keep_manifest(MANIFEST)
        if kept:
            keep()
        raise ZeroDivisionError


def test_nothing_is_left_of_what_was_tried_in_vain(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        fail(tmp_path / "a" / "b", kept=False)
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_before_or_is_to_be_kept_stays(tmp_path: Path) -> None:
    for path, kept in ((tmp_path / "a", True), (tmp_path / "a", False)):
        with pytest.raises(ZeroDivisionError):
            fail(path, kept=kept)
        assert (path / "manifest.json").exists()


def test_a_manifest_is_proved_whenever_it_is_read(tmp_path: Path) -> None:
    one = Folder(tmp_path)
    assert one.manifest() is None
    one.keep_manifest(MANIFEST)
    assert one.manifest(MANIFEST.swarm_id) == MANIFEST
    with pytest.raises(UsageError, match="give another --data-dir for another swarm"):
        one.manifest(b"x" * 32)
    (tmp_path / "manifest.json").write_bytes(MANIFEST.to_bytes()[:-1])
    with pytest.raises(UsageError, match="not a swarm's manifest"):
        one.manifest()


def test_free_ports_stay_the_same(tmp_path: Path) -> None:
    one = Folder(tmp_path)
    assert one.listen(LISTEN) == LISTEN
    got = ("/ip4/0.0.0.0/tcp/41", "/ip4/0.0.0.0/udp/42/quic-v1", "/ip6/::/tcp/4100")
    one.keep_listen(LISTEN, got)
    assert one.listen(LISTEN) == got
    assert one.listen(("/ip4/127.0.0.1/tcp/0", LISTEN[0])) == ("/ip4/127.0.0.1/tcp/0", got[0])
    (tmp_path / "listen.json").write_bytes(b"\xff")
    assert one.listen(LISTEN) == LISTEN


def test_files_that_cannot_be_read_or_written_are_named(tmp_path: Path) -> None:
    one = Folder(tmp_path)
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(DiskError, match=r"manifest\.json cannot be read: not a plain file"):
        one.manifest()
    with pytest.raises(DiskError, match=r"manifest\.json cannot be written: Is a directory"):
        one.keep_manifest(MANIFEST)


def test_the_usual_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert usual_folder("bees", "storage") == Path("/data/giaann/bees/storage")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert usual_folder("bees", "storage") == Path("/home/me/.local/share/giaann/bees/storage")
