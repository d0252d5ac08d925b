"""A founder disowns a peer: what that alone taught is gone from all owners, and nothing else is."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from giaann_p2p.local.swarm import LocalSwarm
from tests.e2e.conftest import NewSwarm
from tests.e2e.material import WIKI
from tests.unit.local.helpers import eventually

LINES = WIKI.read_text().splitlines(keepends=True)
TRUE, FALSE = "".join(LINES[::2]), "".join(LINES[1::2])
GIAANN = "from giaann_p2p.cli.main import main; main()"
WITHIN = 60.0

pytestmark = pytest.mark.e2e


def giaann(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", GIAANN, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=WITHIN,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def train(swarm: LocalSwarm, folder: Path, name: str, text: str) -> dict[str, int]:
    file = folder / name
    file.write_text(text)
    told: dict[str, int] = json.loads(giaann("train", str(file), "--json", "--join", swarm.link))
    assert told["complete"]
    return told


def digest(swarm: LocalSwarm) -> str:
    """Return what all replicas agree on."""
    found: str = json.loads(giaann("fsck", "--json", "--join", swarm.link))["digest"]
    return found


def test_what_a_disowned_peer_taught_is_gone_and_all_else_is_there(
    new_swarm: NewSwarm, tmp_path: Path
) -> None:
    with new_swarm(storages=2, replicas=2, computes=1) as swarm:
        train(swarm, tmp_path, "true.txt", TRUE)
        honest = digest(swarm)

        (liar,) = swarm.add("compute")
        swarm.wait_ready([liar], WITHIN)
        swarm.kill("compute-1", signal.SIGTERM)
        swarm.wait_ended("compute-1", WITHIN)
        told = train(swarm, tmp_path, "false.txt", FALSE)
        both = digest(swarm)
        assert told["chunks"] > 0
        assert both != honest

        name = giaann(
            "token", "name", "--join", swarm.link, "--data-dir", str(swarm.folder.data(liar))
        ).strip()
        founder = "--data-dir", str(swarm.folder.data("bootstrap-1"))
        said = giaann("token", "revoke", name, "--disown", "--join", swarm.link, *founder)
        assert "list 1: 1 revoked, 1 of them disowned; " in said
        assert f"to be withdrawn: {told['chunks']} chunk" in said
        assert f"list 2: 1 revoked, 1 of them disowned, {told['chunks']} chunk" in said
        assert swarm.wait_ended(liar, WITHIN) == 1
        eventually(lambda: digest(swarm) == honest, WITHIN)
        for storage in ("storage-1", "storage-2"):
            swarm.kill(storage)
            swarm.wait_ended(storage)
            swarm.restart(storage)
        swarm.wait_ready(["storage-1", "storage-2", *swarm.add("compute")], WITHIN)
        eventually(lambda: digest(swarm) == honest, WITHIN)

        again = giaann("token", "withdraw", "--json", "--join", swarm.link, *founder)
        assert json.loads(again)["found"] == {
            "owners": 2,
            "silent": 0,
            "chunks": 0,
            "jobs": {},
            "left": 0,
            "no_room": 0,
        }
        assert json.loads(again)["withdrawn"] == told["chunks"]

        for chunks, known in ((told["chunks"], 0), (0, told["chunks"])):  # by somebody else now
            more = train(swarm, tmp_path, "false.txt", FALSE)
            assert (more["chunks"], more["chunks_known"]) == (chunks, known)
            assert digest(swarm) == both
