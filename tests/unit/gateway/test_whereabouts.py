"""The file that says where a gateway is, when it cannot be written and when others lock it."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from giaann_p2p.gateway import whereabouts
from giaann_p2p.gateway.whereabouts import Whereabouts

WHERE = Whereabouts(url="http://127.0.0.1:1", pid=1)


def test_a_gateway_starts_though_its_file_cannot_be_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "plain").write_text("")
    file = tmp_path / "plain" / "gateways" / "gateway.json"
    with whereabouts.told(file, WHERE) as is_first:
        assert is_first
        assert f"{file} cannot be written: " in caplog.text
        assert "commands will not find this gateway" in caplog.text


def test_a_gateway_starts_though_the_disk_is_full(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    file = tmp_path / "gateway.json"
    with whereabouts.told(file, WHERE) as is_first:
        assert is_first
        assert f"{file} cannot be written: No space left on device" in caplog.text
        assert whereabouts.find(file) is None
    assert not file.exists()


def test_a_command_that_looks_for_a_gateway_is_not_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "gateway.json"
    handle = os.open(file, os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_SH)
    monkeypatch.setattr("time.sleep", lambda _: fcntl.flock(handle, fcntl.LOCK_UN))
    with whereabouts.told(file, WHERE) as is_first:
        assert is_first
        assert whereabouts.find(file) == WHERE
    os.close(handle)


def test_a_file_that_an_ending_gateway_removes_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, lock, removed = tmp_path / "gateway.json", fcntl.flock, list[None]()

    def late(handle: int, how: int) -> None:
        if not removed:
            removed.append(file.unlink())
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with whereabouts.told(file, WHERE) as is_first:
        assert is_first
        assert whereabouts.find(file) == WHERE
    assert not file.exists()


def test_a_gateway_removes_no_file_of_another_one(tmp_path: Path) -> None:
    file = tmp_path / "gateway.json"
    with whereabouts.told(file, WHERE):
        file.unlink()
        file.write_text("another's")
    assert file.read_text() == "another's"
