"""The file that says where a gateway is, when it cannot be written."""

import errno
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
