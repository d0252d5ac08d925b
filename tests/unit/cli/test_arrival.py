"""What every command does once it is with a swarm."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from giaann_p2p.cli.arrival import arrived, commands_of, usual_folder
from giaann_p2p.client.links import SavedLinks
from giaann_p2p.client.session import Session
from giaann_p2p.errors import UsageError
from giaann_p2p.local import here
from giaann_p2p.swarm.members.commands import GENERAL
from giaann_p2p.swarm.members.losses import NONE, Losses


def visiting(losses: Losses) -> SimpleNamespace:
    """A visit to a swarm that does not exist."""
    manifest = SimpleNamespace(swarm_id=bytes(32))
    return SimpleNamespace(
        manifest=manifest, losses=lambda: losses, now=1000.0, commands=GENERAL, look=None
    )


def test_a_swarm_elsewhere_has_general_commands() -> None:
    assert commands_of(bytes(32)) == GENERAL
    assert GENERAL.add("storage", 2) == "giaann storage --join LINK"


@pytest.mark.parametrize(
    ("folder", "option"),
    [("giaann/swarm", ""), ("bees", " --dir {}/bees"), ("my bees", " --dir '{}/my bees'")],
)
def test_a_local_swarm_has_commands_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, option: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(here, "folder_of", lambda swarm_id: tmp_path / folder)
    found, option = commands_of(bytes(32)), option.format(tmp_path)
    assert found.add("storage") == f"giaann swarm add storage{option}"
    assert found.add("compute", 2) == f"giaann swarm add compute 2{option}"


def no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_a_user_without_a_home_is_told_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(UsageError, match="no home folder: set HOME or XDG_STATE_HOME"):
        usual_folder()
    with pytest.raises(UsageError, match="no home folder: set HOME or XDG_CONFIG_HOME"):
        SavedLinks()
    monkeypatch.setattr(here, "folder_of", lambda swarm_id: tmp_path)
    assert commands_of(bytes(32)).add("storage") == f"giaann swarm add storage --dir {tmp_path}"


def test_losses_are_warned_of_once(capsys: pytest.CaptureFixture[str]) -> None:
    visit = visiting(NONE)
    warning = arrived(cast(Session, visit))
    assert capsys.readouterr().err == ""
    visit.losses = lambda: Losses(shards=[1, 2], connections=1200, seen=880)
    warning.look()
    assert capsys.readouterr().err == (
        "giaann: the swarm has lost some of what it knew: 2 shards held 1,200 connections or more,"
        " last seen 2 min ago, and no live peer has all of them; `giaann status --join LINK` shows"
        " more\n"
    )
    warning.look()
    assert capsys.readouterr().err == ""


def test_losses_are_warned_of_on_arrival(capsys: pytest.CaptureFixture[str]) -> None:
    arrived(cast(Session, visiting(Losses(shards=[1], connections=1, seen=1))))
    assert "1 shard held 1 connections or more" in capsys.readouterr().err
