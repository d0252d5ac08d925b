"""The zygote by itself, at the other end of its line."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from giaann_p2p.local import linux
from giaann_p2p.local.nursery import places
from giaann_p2p.local.orders import (
    Ended,
    Failed,
    News,
    Order,
    OrderRefused,
    Paused,
    Ready,
    Signal,
    Spawn,
    Spawned,
    line_of,
    read_news,
)
from tests.unit.local.helpers import eventually, processes_of

COMMAND = [sys.executable, "-m", "giaann_p2p.local.zygote"]
DEEDS = "tests.unit.local.deeds"
_News = TypeVar("_News", bound=News)


class Zygote:
    """A zygote, and the line to it."""

    def __init__(self, folder: Path, *modules: str) -> None:
        self.folder = folder
        self.line, theirs = socket.socketpair()
        self.line.settimeout(20)
        with theirs:
            self.process = subprocess.Popen(
                [*COMMAND, str(theirs.fileno()), str(folder), *modules],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": places(), linux.MARK: str(folder)},
                start_new_session=True,
                stderr=subprocess.PIPE,
            )
        self.file = self.line.makefile("rb")

    def tell(self, order: Order) -> None:
        self.line.sendall(line_of(order))

    def hear(self, kind: type[_News]) -> _News:
        news = read_news(self.file.readline())
        assert isinstance(news, kind), news
        return news

    def spawn(self, deed: str, *arguments: str, name: str = "bee") -> int:
        self.tell(self.order(deed, *arguments, name=name))
        news = self.hear(Spawned)
        assert news.name == name
        return news.pid

    def order(self, deed: str, *arguments: str, name: str = "bee") -> Spawn:
        return Spawn(
            name=name,
            entry=f"{DEEDS}:{deed}",
            arguments=list(arguments),
            log=str(self.folder / f"{name}.log"),
            folder=str(self.folder),
            environment={"BEE": "maja"},
        )

    def log(self, name: str = "bee") -> str:
        return (self.folder / f"{name}.log").read_text()

    def close(self) -> None:
        self.file.close()
        self.line.close()
        self.process.communicate(timeout=500)


@pytest.fixture
def zygote(tmp_path: Path) -> Iterator[Zygote]:
    found = Zygote(tmp_path, DEEDS)
    assert found.hear(Ready).pid == found.process.pid
    yield found
    found.close()
    eventually(lambda: processes_of(tmp_path) == [])


def test_a_peer_is_its_own_process(zygote: Zygote, tmp_path: Path) -> None:
    told = []
    for name in ("bee", "wasp"):
        file = tmp_path / f"{name}.json"
        pid = zygote.spawn(
            "tell",
            str(file),
            "b c",
            name=name,
        )
        assert zygote.hear(Ended) == Ended(name, pid, 0)
        found = json.loads(file.read_text())
        told.append(found.pop("chance"))
        assert found == {
            "pid": pid,
            "parent": zygote.process.pid,
            "session": pid,
            "group": pid,
            "arguments": [str(file), "b c"],
            "argv": [f"{DEEDS}:tell", str(file), "b c"],
            "name": name,
            "folder": str(tmp_path),
            "bee": "maja",
            "input": "/dev/null",
            "files": [0, 1, 2],
            "blocked": [],
            "term": True,
        }
    assert told[0] != told[1]


@pytest.mark.parametrize(
    ("how", "code", "words"),
    [
        (["none"], 0, "to be flushed"),
        (["return", "3"], 3, "to be flushed"),
        (["return", "256"], 0, "to be flushed"),
        (["exit", "4"], 4, "to be flushed"),
        (["words"], 1, "to be flushedit rains\n"),
        (["raise"], 1, "ValueError: no honey\n"),
        (["interrupt"], 130, "to be flushed"),
        (["signal", "15"], -15, ""),
        (["signal", "6"], -6, ""),
        (["signal", "9"], -9, ""),
    ],
)
def test_ends_are_told(zygote: Zygote, how: list[str], code: int, words: str) -> None:
    pid = zygote.spawn("end", *how)
    assert zygote.hear(Ended) == Ended("bee", pid, code)
    assert words in zygote.log()


def test_what_cannot_be_called_ends_with_the_reason(zygote: Zygote) -> None:
    pid = zygote.spawn("nothing")
    assert zygote.hear(Ended) == Ended("bee", pid, 1)
    assert "has no attribute 'nothing'" in zygote.log()
    pid = zygote.spawn("end", name="wasp")
    assert zygote.hear(Ended) == Ended("wasp", pid, 0)


def test_a_log_goes_on_where_it_ended(zygote: Zygote) -> None:
    for _ in range(2):
        zygote.spawn("end")
        zygote.hear(Ended)
    assert zygote.log() == "to be flushed" * 2


def test_a_peer_stops_and_goes_on(zygote: Zygote) -> None:
    pid = zygote.spawn("sleep")
    zygote.tell(Signal("nobody", signal.SIGKILL))
    zygote.tell(Signal("bee", signal.SIGSTOP))
    assert zygote.hear(Paused) == Paused("bee", pid, True)
    zygote.tell(Signal("bee", signal.SIGCONT))
    assert zygote.hear(Paused) == Paused("bee", pid, False)
    zygote.tell(Signal("bee", signal.SIGTERM))
    assert zygote.hear(Ended) == Ended("bee", pid, -15)


def grown(pid: int, count: int) -> list[int]:
    """Wait until a process has so many descendants."""
    eventually(lambda: len(linux.descendants(pid)) == count)
    return linux.descendants(pid)


def gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_signal_reaches_a_peer_or_all_it_has_started(zygote: Zygote) -> None:
    pid = zygote.spawn("family")
    child, *_ = grown(pid, 3)

    def state() -> str:
        return Path(f"/proc/{child}/stat").read_text().split()[2]

    zygote.tell(Signal("bee", signal.SIGSTOP))
    zygote.hear(Paused)
    assert state() == "S"
    zygote.tell(Signal("bee", signal.SIGSTOP, everyone=True))
    eventually(lambda: state() == "T")
    zygote.tell(Signal("bee", signal.SIGCONT, everyone=True))
    zygote.hear(Paused)
    eventually(lambda: state() == "S")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_its_peer(zygote: Zygote, number: int) -> None:
    pid, other = zygote.spawn("family"), zygote.spawn("family", name="wasp")
    left, kept = grown(pid, 3), grown(other, 3)
    os.kill(pid, number)
    assert zygote.hear(Ended) == Ended("bee", pid, -number)
    eventually(lambda: gone(left))
    assert linux.descendants(other) == kept


def test_a_peer_that_ends_leaves_nothing(zygote: Zygote) -> None:
    zygote.spawn("orphan")
    assert zygote.hear(Ended).code == 0
    eventually(lambda: len(processes_of(zygote.folder)) == 1)  # the zygote itself


@pytest.mark.parametrize("how", ["closed", "half-closed", "term", "garbage"])
def test_a_zygote_takes_everything_with_it(zygote: Zygote, how: str) -> None:
    for name in ("bee", "wasp"):
        grown(zygote.spawn("family", name=name), 3)
    zygote.tell(Signal("wasp", signal.SIGSTOP, everyone=True))
    zygote.hear(Paused)
    match how:
        case "closed":
            zygote.file.close()
            zygote.line.close()
        case "half-closed":
            zygote.line.shutdown(socket.SHUT_WR)
        case "term":
            zygote.process.terminate()
        case "garbage":
            zygote.line.sendall(b"fly!\n")
    zygote.process.wait(500)
    assert processes_of(zygote.folder) == []


def test_peers_die_with_a_zygote_that_is_killed(zygote: Zygote) -> None:
    pids = [zygote.spawn("sleep"), zygote.spawn("sleep", name="wasp")]
    zygote.process.kill()
    eventually(lambda: not any(linux.command(pid) in ("bee", "wasp") for pid in pids))


def test_what_cannot_be_imported_is_told(tmp_path: Path) -> None:
    zygote = Zygote(tmp_path, DEEDS, "tests.unit.local.nowhere")
    why = zygote.hear(Failed).why
    assert why == "ModuleNotFoundError: No module named 'tests.unit.local.nowhere'"
    assert zygote.process.wait(500) == 1
    zygote.close()


def test_nothing_is_forked_beside_a_thread(tmp_path: Path) -> None:
    zygote = Zygote(tmp_path, "tests.unit.local.threaded")
    zygote.hear(Ready)
    zygote.tell(zygote.order("sleep"))
    assert (
        zygote.hear(OrderRefused).why
        == "the imported modules started 1 threads, so it is unsafe to fork"
    )
    zygote.close()
