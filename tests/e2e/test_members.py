"""A swarm that only its members may join: real processes, with tokens and without."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import GIAANN
from tests.unit.local.helpers import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
LOOPBACK = ("--listen", "/ip4/127.0.0.1/tcp/0")
PROMPT = "Bees make honey from the nectar"
SENTENCE = f"{PROMPT} that they collect from flowers in the summer."
WITHIN = 120.0


class Club:
    """The swarm's processes, and what its founder and its members do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "XDG_DATA_HOME": str(folder / "home")}
        self.daemons: list[subprocess.Popen[str]] = []
        more = ("--new", "club", "--profile", "words", "--shards", "4", "--replicas", "2")
        self.boot = self.start("bootstrap", "boot", *more)
        assert self.boot.stdout is not None
        self.link = self.boot.stdout.readline().strip()

    def start(self, command: str, name: str, *more: str) -> subprocess.Popen[str]:
        arguments = [*GIAANN, command, "--data-dir", str(self.folder / name), *LOOPBACK, *more]
        with (self.folder / f"{name}.log").open("w") as log:
            daemon = subprocess.Popen(
                arguments, env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.daemons.append(daemon)
        return daemon

    def giaann(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*GIAANN, *arguments],
            check=False,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=WITHIN,
        )

    def client(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.giaann(*arguments, "--join", self.link)

    def name_of(self, *more: str) -> str:
        return self.client("token", "name", *more).stdout.strip()

    def token_for(self, name: str, rights: str) -> str:
        done = self.giaann(
            *("token", "issue", name, "--as", rights, "--data-dir", str(self.folder / "boot"))
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def member(self, role: str, name: str) -> subprocess.Popen[str]:
        """Start a storage or compute peer with a token."""
        known_as = self.name_of("--data-dir", str(self.folder / name))
        token = self.token_for(known_as, role)
        return self.start(role, name, "--join", self.link, "--member-token", token)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def close(self) -> None:
        for daemon in self.daemons:
            daemon.send_signal(signal.SIGKILL)
            daemon.communicate()


@contextmanager
def club(folder: Path) -> Iterator[Club]:
    made = Club(folder)
    try:
        yield made
    except BaseException:
        for log in sorted(folder.glob("*.log")):
            print(f"--- {log.name}\n{log.read_text()[-2000:]}")
        raise
    finally:
        made.close()


def test_a_club_serves_its_members_and_no_stranger(tmp_path: Path) -> None:
    with club(tmp_path) as swarm:
        stranger = swarm.start("storage", "stranger", "--join", swarm.link)
        assert stranger.wait(WITHIN) == 1
        assert "members only" in swarm.log("stranger")
        for command in (["status"], ["column", "bee"], ["doctor"]):
            done = swarm.client(*command)
            assert done.returncode == 1
            assert "token" in done.stdout + done.stderr
            assert swarm.name_of() in done.stdout + done.stderr

        storages = [swarm.member("storage", name) for name in ("storage-1", "storage-2")]
        computes = swarm.member("compute", "compute-1")
        given = swarm.giaann("token", "accept", swarm.token_for(swarm.name_of(), "client"))
        assert given.returncode == 0, given.stderr
        eventually(lambda: swarm.client("status").returncode == 0, WITHIN)
        text = tmp_path / "text.txt"
        text.write_text(f"{SENTENCE}\n")
        assert swarm.client("train", str(text)).returncode == 0
        answer = swarm.client("prompt", PROMPT).stdout.strip()
        assert answer.startswith(PROMPT + " that they collect from")
        assert swarm.client("fsck").returncode == 0
        assert swarm.client("doctor").returncode == 0

        gone = swarm.name_of("--data-dir", str(tmp_path / "storage-2"))
        revoked = swarm.client("token", "revoke", gone, "--data-dir", str(tmp_path / "boot"))
        assert revoked.returncode == 0, revoked.stderr
        assert storages[1].wait(WITHIN) == 1
        assert "the founder has revoked" in swarm.log("storage-2")
        eventually(lambda: gone[:8] not in swarm.client("status").stdout, WITHIN)
        assert swarm.client("prompt", PROMPT).stdout.strip() == answer
        back = swarm.start("storage", "storage-2", "--join", swarm.link)  # its disk is no ticket
        assert back.wait(WITHIN) == 1
        assert storages[0].poll() is None
        assert computes.poll() is None
