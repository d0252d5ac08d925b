"""What a peer tells of itself."""

import os
from pathlib import Path

import pytest

from giaann_p2p.errors import DamagedError, DiskError
from giaann_p2p.local.status_file import READY, Status, StatusFile
from tests.unit.local.helpers import names_in

FULL = Status(
    state=READY, link="giaann:x", peer="12D3", listen="/ip4/127.0.0.1/tcp/5", metrics_port=9
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = StatusFile(tmp_path / "status.json")
    assert file.read() is None
    file.write(Status(state="joining"))
    assert file.read() == Status(state="joining", pid=os.getpid())
    file.write(FULL)
    found = file.read()
    assert found is not None
    assert (found.pid, found.link, found.metrics_port) == (os.getpid(), "giaann:x", 9)
    assert names_in(tmp_path) == ["status.json"]
    file.remove()
    file.remove()
    assert file.read() is None


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b'{"state": 3}', b'{"link": "x"}', b'{"state":"ready","pid":"1"}', b"\xff"],
)
def test_what_is_no_status_is_said(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "s.json").write_bytes(data)
    with pytest.raises(DamagedError, match=r"s\.json is damaged"):
        StatusFile(tmp_path / "s.json").read()


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "s.json").open("wb") as file:
        file.write(b'{"state":"ready"}')
        file.truncate(1 << 33)
    with pytest.raises(DamagedError):
        StatusFile(tmp_path / "s.json").read()


def test_a_later_daemon_may_tell_more(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_bytes(b'{"state":"ready","pid":7,"weather":"fine"}')
    assert StatusFile(tmp_path / "s.json").read() == Status(state=READY, pid=7)


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="cannot be written: No such file"):
        StatusFile(tmp_path / "none" / "s.json").write(FULL)
    (tmp_path / "s.json").mkdir()
    with pytest.raises(DiskError, match="cannot be written: Is a directory"):
        StatusFile(tmp_path / "s.json").write(FULL)
    assert names_in(tmp_path) == ["s.json"]
