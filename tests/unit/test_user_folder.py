"""Where a user's files are, and who has no place for them."""

from pathlib import Path

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.gateway import whereabouts
from giaann_p2p.user_folder import user_folder


def test_a_variable_names_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert user_folder("XDG_DATA_HOME") == Path("/data/giaann")
    monkeypatch.setenv("XDG_DATA_HOME", "")
    assert user_folder("XDG_DATA_HOME") == Path.home() / ".local/share/giaann"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert user_folder("XDG_DATA_HOME") == Path.home() / ".local/share/giaann"


def test_a_relative_path_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be another folder for each folder that a command is started in."""
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    with pytest.raises(UsageError, match="XDG_DATA_HOME must be an absolute path; it is data"):
        user_folder("XDG_DATA_HOME")


def test_without_a_home_a_gateway_runs_and_is_not_found(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    file = whereabouts.of_swarm(bytes(32))
    with whereabouts.told(file, whereabouts.Whereabouts(url="http://x", pid=1)) as is_first:
        assert is_first
        assert whereabouts.find(file) is None
    assert "cannot be written" in caplog.text
