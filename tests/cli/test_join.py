"""`giaann join`: a name for a link, which every command takes; and what a shell completes."""

from pathlib import Path

import pytest

from giaann_p2p.client.links import SavedLinks
from tests.cli.conftest import Run
from tests.unit.peers.helpers import LINK


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_a_name_is_saved_listed_used_and_forgotten(giaann: Run) -> None:
    done = giaann("join", LINK, "--as", "bees")
    assert (done.returncode, done.stdout) == (
        0,
        "saved: --join bees now stands for this link\n",
    )
    assert giaann("join").stdout == f"bees  {LINK}\n"
    assert giaann("join", "--json").stdout == f'{{"bees":"{LINK}"}}\n'
    by_name, by_link = (giaann("token", "name", "--join", one) for one in ("bees", LINK))
    assert (by_name.returncode, by_name.stdout) == (0, by_link.stdout)
    assert giaann("join", "--forget", "bees").returncode == 0
    done = giaann("token", "name", "--join", "bees")
    assert done.returncode == 2
    assert "'bees' is neither a join link" in done.stderr


def test_a_name_needs_a_link_and_a_link_a_name(giaann: Run) -> None:
    assert giaann("join", LINK).returncode == 2
    assert giaann("join", "--as", "bees").returncode == 2
    assert SavedLinks().all() == {}


@pytest.mark.parametrize(
    ("typed", "completed"),
    [("giaann sta", ["status"]), ("giaann status --join ", ["bees", "wasps"])],
)
def test_a_shell_completes(
    giaann: Run, monkeypatch: pytest.MonkeyPatch, typed: str, completed: list[str]
) -> None:
    giaann("join", LINK, "--as", "bees")
    giaann("join", LINK, "--as", "wasps")
    monkeypatch.setenv("_GIAANN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
    assert giaann().stdout.split() == completed


def test_completion_is_installed_for_a_shell(
    giaann: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    # Else it is the shell among the parents of this process that counts, and there may be none.
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    done = giaann("--install-completion")
    assert (done.returncode, done.stderr) == (0, "")
    assert "bash completion installed" in done.stdout
    (script,) = (tmp_path / ".bash_completions").iterdir()
    assert "_GIAANN_COMPLETE" in script.read_text()
    assert str(script) in (tmp_path / ".bashrc").read_text()
