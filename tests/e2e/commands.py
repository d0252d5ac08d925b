"""Runs `giaann` commands in processes of their own, without paying for their imports each time.

A forkserver imports what the commands of `Commands` need once; each command is a fork of it. So a
test can ask `giaann status` every few seconds on a machine of two cores that has peers to run, too.
"""

import asyncio
import json
import subprocess
from multiprocessing import TimeoutError as TooLate
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, Self

from typer.testing import CliRunner

from giaann_p2p.cli.main import app
from giaann_p2p.local.swarm import LocalSwarm
from tests.cli.conftest import GIAANN

_PRELOADED = [
    "giaann_p2p.cli.main",
    "giaann_p2p.client.session",
    "giaann_p2p.client.checkup",
    "giaann_p2p.node.members.dht_board",
]
_WITHIN = 90.0


class Said(NamedTuple):
    """What a command printed, and its exit code; -1 if it did not end in time."""

    code: int
    output: str

    @property
    def json(self) -> dict[str, Any]:
        """Return the output of a command that was given --json; empty if it printed none."""
        try:
            found: dict[str, Any] = json.loads(self.output)
        except json.JSONDecodeError:
            return {}
        return found


class Commands:
    """A pool of one process, which is new for each command."""

    def __init__(self) -> None:
        context = get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        self._pool = context.Pool(1, maxtasksperchild=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.terminate()
        self._pool.join()

    async def run(self, *arguments: str, within: float = _WITHIN) -> Said:
        """Run `giaann` with these arguments."""
        running = self._pool.apply_async(_run, (arguments,))
        try:
            return Said(*await asyncio.to_thread(running.get, within))
        except TooLate:
            return Said(-1, "")


def _run(arguments: tuple[str, ...]) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(arguments))
    return done.exit_code, done.stdout


def reshard(swarm: LocalSwarm, *how: str) -> dict[str, object]:
    """Have the founder sign an edition; return what the command tells."""
    founder = "--data-dir", str(swarm.folder.data("bootstrap-1"))
    return _told("reshard", *how, "--json", "--join", swarm.link, *founder)


def fsck(link: str, database: Path) -> dict[str, object]:
    """Have the command compare a swarm with a solo database."""
    return _told("fsck", "--json", "--join", link, "--against", str(database))


def status(link: str) -> dict[str, object]:
    """Return what `giaann status` tells of a swarm, healthy or not."""
    return _told("status", "--json", "--join", link, codes=(0, 1))


def doctor(link: str) -> str:
    """Return the lines of `giaann doctor`, whatever is wrong with this machine."""
    command = [*GIAANN, "doctor", "--join", link, "--listen", "/ip4/127.0.0.1/tcp/0"]
    return subprocess.run(command, capture_output=True, text=True, timeout=500, check=False).stdout


def _told(*command: str, codes: tuple[int, ...] = (0,)) -> dict[str, object]:
    done = subprocess.run(
        [*GIAANN, *command], capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode in codes, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found
