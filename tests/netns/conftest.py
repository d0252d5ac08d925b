"""Swarms on networks of this machine; where none can be made, the tests say so and are left out."""

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.netns.network import Network, lacking
from tests.netns.swarm import Swarm

NewSwarm = Callable[..., Swarm]
_LACKING: list[str] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it so that nobody takes it for a success."""
    if _LACKING:
        terminalreporter.section("BROKEN NETWORKS WERE NOT TESTED", sep="!", red=True, bold=True)
        terminalreporter.line(f"no networks can be made on this machine: {_LACKING[0]}")


@pytest.fixture(scope="session")
def possible() -> None:
    """Leave a test out where it cannot be run; the summary says so in capitals."""
    if why := lacking():
        _LACKING.append(why)
        pytest.skip(f"no networks can be made on this machine: {why}")


@pytest.fixture
def network(possible: None) -> Iterator[Network]:
    made = Network()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def new_swarm(possible: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[NewSwarm]:
    """Make a swarm, in a folder whose path is short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="giaann-netns-"))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    threads = threading.active_count()
    try:
        yield lambda **changes: Swarm(folder / "swarm", **changes)
        assert threading.active_count() == threads
    finally:
        shutil.rmtree(folder, ignore_errors=True)
