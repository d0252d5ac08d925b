"""Swarms of real peers, what is shown of one that fails, and that nothing is left of it."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from giaann_p2p.local import linux
from giaann_p2p.local.errors import LocalSwarmError
from giaann_p2p.local.logs import Log
from giaann_p2p.local.swarm import LocalSwarm
from tests.unit.local.helpers import eventually, names_in, processes_of

NewSwarm = Callable[..., AbstractContextManager[LocalSwarm]]
_LAST_LINES = 15
SHARDS = 64


@pytest.fixture
def new_swarm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NewSwarm]:
    """Make swarms, in one folder; what a test leaves behind fails it."""
    folder = tmp_path / "swarm"
    short = Path(tempfile.mkdtemp(prefix="giaann-e2e-"))
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    processes, sockets = linux.descendants(os.getpid()), _sockets()
    try:
        yield _maker(folder)
        assert processes_of(folder) == []
        assert names_in(folder) == ["lock", "logs", "peers", "swarm.json"]
        assert names_in(short) == []
        eventually(lambda: linux.descendants(os.getpid()) == processes)
        assert _sockets() == sockets
        assert _sockets_in(folder, short) == []
    finally:
        shutil.rmtree(short, ignore_errors=True)


def _maker(folder: Path) -> NewSwarm:
    @contextmanager
    def make(**changes: object) -> Iterator[LocalSwarm]:
        wanted = {"storages": 5, "replicas": 3, "shards": SHARDS, "profile": "words", **changes}
        with LocalSwarm(folder, **wanted) as swarm:
            try:
                yield swarm
            except BaseException:
                _show(swarm)
                raise

    return make


def _show(swarm: LocalSwarm) -> None:
    """Print what may tell why a test fails."""
    try:
        peers = str(swarm.peers())
    except LocalSwarmError as error:  # the test ended it: why the test fails is raised behind this
        peers = str(error)
    print(f"the swarm was in {swarm.folder.path}; its peers: {peers}")
    for file in sorted((swarm.folder.path / "logs").glob("*.log")):
        print(f"--- {file}")
        for line in Log(swarm.folder, file.stem).last(_LAST_LINES):
            print(line)


def _sockets() -> int:
    """Return how many sockets this process has open."""
    files = Path("/proc/self/fd").iterdir()
    return sum(_target(file).startswith("socket:") for file in files)


def _target(file: Path) -> str:
    try:
        return str(file.readlink())
    except OSError:
        return ""


def _sockets_in(*folders: Path) -> list[str]:
    """Return the sockets of this machine that have their name in a folder."""
    names = [line.rpartition(" ")[2] for line in Path("/proc/net/unix").read_text().splitlines()]
    return [name for name in names if any(name.startswith(str(folder)) for folder in folders)]
