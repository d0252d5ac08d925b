"""`giaann swarm` on swarms of dummies, up to Ctrl-C on a terminal."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from giaann_p2p.errors import GiaannError
from giaann_p2p.local.folder import Folder, Record
from giaann_p2p.local.remote import Remote
from giaann_p2p.local.roles import Spec
from tests.cli.conftest import GIAANN, Run
from tests.cli.test_interrupt import interrupted
from tests.unit.local.conftest import entries
from tests.unit.local.helpers import eventually, processes_of


def folder_with(path: Path, **changes: str) -> Path:
    """Return a folder of a swarm that is made of dummies."""
    path.mkdir()
    (path / "lock").touch()
    Folder(path).keep(Record(spec=Spec(entries=entries(**changes), storages=2)))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    found = folder_with(tmp_path / "swarm")
    yield found
    with suppress(GiaannError):
        Remote(found).down(now=True, within=20)
    assert processes_of(found) == []


def test_a_swarm_is_started_looked_at_harmed_and_ended(giaann: Run, folder: Path) -> None:
    at = ["--dir", folder]
    done = giaann("swarm", "up", "--detach", *at)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{Remote(folder).look().link}\n"
    assert f"logs and data are in {folder}\n" in done.stderr
    assert f"  giaann swarm down --dir {folder} " in done.stderr

    done = giaann("swarm", "status", *at)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert " ".join(lines[0]) == "peer state process for listens at metrics memory"
    assert [line[:2] for line in lines[1:4]] == [
        ["bootstrap-1", "ready"],
        ["storage-1", "ready"],
        ["storage-2", "ready"],
    ]
    assert lines[4] == ["link:", Remote(folder).look().link]

    done = giaann("swarm", "add", "storage", "2", *at)
    assert (done.returncode, done.stdout) == (0, "storage-3\nstorage-4\n")
    assert giaann("swarm", "add", "storage", "--json", *at).stdout == '["storage-5"]\n'
    assert giaann("swarm", "kill", "storage-1", "storage-3", *at).returncode == 0
    assert giaann("swarm", "kill", "storage-2", "--signal", "term", *at).returncode == 0
    assert giaann("swarm", "stop", "storage-4", *at).returncode == 0

    def states() -> dict[str, tuple[str, int | None]]:
        found = json.loads(giaann("swarm", "status", "--json", *at).stdout)["peers"]
        return {peer["name"]: (peer["state"], peer["code"]) for peer in found}

    wanted = {
        "bootstrap-1": ("ready", None),
        "storage-1": ("ended", -9),
        "storage-2": ("ended", -15),
        "storage-3": ("ended", -9),
        "storage-4": ("stopped", None),
        "storage-5": ("ready", None),
    }
    eventually(lambda: states() == wanted)
    done = giaann("swarm", "status", *at)
    assert done.returncode == 1
    assert "2 of 6 peers are ready" in done.stderr
    assert "storage-1    was ended by SIGKILL" in done.stdout
    assert giaann("swarm", "cont", "storage-4", *at).returncode == 0
    for name in ("storage-1", "storage-2", "storage-3"):
        assert giaann("swarm", "restart", name, *at).returncode == 0
    eventually(lambda: giaann("swarm", "status", *at).returncode == 0)

    done = giaann("swarm", "logs", "storage-1", *at)
    assert done.stdout.count("--join") == 2
    assert giaann("swarm", "logs", "storage-1", "-n", "1", *at).stdout.count("--join") == 1
    assert giaann("swarm", "logs", "storage-1", "-n", "0", *at).stdout == ""
    assert "storage-1 was ended by SIGKILL" in giaann("swarm", "logs", "supervisor", *at).stdout

    done = giaann("swarm", "down", *at)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert processes_of(folder) == []
    assert (folder / "peers" / "storage-5" / "data").is_dir()
    assert giaann("swarm", "down", "--erase", *at).returncode == 0
    assert not folder.exists()


def test_wrong_wishes_are_told(giaann: Run, folder: Path, tmp_path: Path) -> None:
    at = ["--dir", folder]

    def told(*words: str | Path, code: int = 1) -> str:
        done = giaann("swarm", *words)
        assert (done.returncode, done.stdout) == (code, "")
        return done.stderr

    for words in (["status"], ["map"], ["kill", "storage-1"], ["down"], ["add", "storage"]):
        assert f"no swarm runs in {folder}; giaann swarm up --dir {folder} starts" in told(
            *words, *at
        )
    assert "has no log of 'storage-1'; nothing was ever started" in told(
        "logs", "storage-1", *at, code=2
    )
    assert "a folder's name cannot be empty" in told("status", "--dir", "", code=2)
    assert giaann("swarm", "up", "--detach", *at).returncode == 0
    assert "no peer 'storage1': did you mean storage-1?" in told("stop", "storage1", *at, code=2)
    assert "no role 'bee'; give bootstrap or storage or compute" in told("add", "bee", *at, code=2)
    assert "'LOUD' is not a signal; give a name such as KILL" in told(
        "kill", "storage-1", "--signal", "LOUD", *at, code=2
    )
    assert "no log of 'storge-1': did you mean storage-1?" in told("logs", "storge-1", *at, code=2)
    holder = Remote(folder).look().pid
    assert f"is in use by process {holder}; end that swarm" in told("up", *at)
    assert f"is in use by process {holder}" in told("up", "--detach", *at)
    assert giaann("swarm", "down", "--now", *at).returncode == 0
    assert "was founded with replicas 2, which cannot change" in told(
        "up", "--replicas", "3", *at, code=2
    )
    (tmp_path / "thesis.txt").touch()
    assert "has other content" in told("up", "--dir", tmp_path, code=2)
    assert "is not a swarm's folder; nothing was removed" in told(
        "down", "--erase", "--dir", tmp_path
    )
    assert told("up", "--storage", "-1", code=2)
    assert told("add", "storage", "0", code=2)


@pytest.mark.parametrize("detach", [["--detach"], []])
def test_a_swarm_that_cannot_start_says_why(giaann: Run, tmp_path: Path, detach: list[str]) -> None:
    folder = folder_with(tmp_path / "swarm", bootstrap="crashing")
    done = giaann("swarm", "up", "--dir", folder, *detach)
    assert (done.returncode, done.stdout) == (1, "")
    assert "bootstrap-1 ended with exit code 1; the last lines of its log: " in done.stderr
    assert processes_of(folder) == []


def test_json_tells_all(giaann: Run, folder: Path) -> None:
    found = json.loads(giaann("swarm", "up", "--detach", "--json", "--dir", folder).stdout)
    again = json.loads(giaann("swarm", "status", "--json", "--dir", folder).stdout)
    assert found["folder"] == str(folder)
    assert found["supervisor"] == again["supervisor"]
    assert found["link"].startswith("giaann:local@")
    assert [peer["state"] for peer in found["peers"]] == ["ready"] * 3


def test_the_folder_can_come_from_the_environment(
    giaann: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIAANN_SWARM", str(tmp_path / "one"))
    assert f"no swarm runs in {tmp_path / 'one'}" in giaann("swarm", "status").stderr
    monkeypatch.delenv("GIAANN_SWARM")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "two"))
    where = tmp_path / "two" / "giaann" / "swarm"
    assert f"no swarm runs in {where}" in giaann("swarm", "status").stderr


def test_ctrl_c_ends_a_swarm(folder: Path) -> None:
    code, out, seen = interrupted(
        ["swarm", "up", "--dir", str(folder)], lambda seen: "3 of 3 peers are ready" in seen
    )
    assert code == 130
    assert out.startswith("giaann:local@")
    assert "storage-2" in seen
    assert "ending all peers; Ctrl-C again to kill them" in seen
    assert processes_of(folder) == []


def test_a_second_ctrl_c_kills(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "swarm", default="stubborn")
    command = [*GIAANN, "swarm", "up", "--grace", "1000", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"giaann:x\n"
        process.send_signal(signal.SIGINT)
        while b"Ctrl-C again" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(500) == 130
    assert processes_of(folder) == []


def test_a_swarm_is_ended_from_another_terminal(giaann: Run, folder: Path) -> None:
    command = [*GIAANN, "swarm", "up", "--json", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["folder"] == str(folder)
        assert giaann("swarm", "down", "--dir", folder).returncode == 0
        _, told = process.communicate(timeout=500)
        assert process.returncode == 0
    assert told == b"giaann: the swarm has ended, because a user asked for it\n"


def test_a_killed_command_takes_its_swarm_with_it(folder: Path) -> None:
    command = [*GIAANN, "swarm", "up", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"giaann:")
        process.kill()
    eventually(lambda: processes_of(folder) == [])
    assert not os.path.lexists(folder / "run")


def test_a_log_is_followed(folder: Path) -> None:
    log = Folder(folder).log("bee")
    log.parent.mkdir()
    log.write_text("one\ntwo\n")
    command = [*GIAANN, "swarm", "logs", "bee", "-n", "1", "--follow", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"two\n"
        with log.open("a") as file:
            file.write("three\n")
        assert process.stdout.readline() == b"three\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(500) == 130
