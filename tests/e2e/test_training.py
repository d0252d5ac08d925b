"""A swarm learns a text while its peers of every role, and whoever submitted it, are killed.

GIAANN_TRAINING_EPOCHS=200 learns the text as often; GIAANN_TRAINING_SEED=7 kills in another order.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from giaann_p2p.client.checkup import checked
from giaann_p2p.client.session import Session, visit
from giaann_p2p.client.trained import TrainReport
from giaann_p2p.client.training import Trainer, TrainOptions
from giaann_p2p.local.peer import ProcessState
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.conftest import NewSwarm
from tests.e2e.material import WIKI, Wiki
from tests.e2e.writer import settled

EPOCHS = int(os.environ.get("GIAANN_TRAINING_EPOCHS", "30"))
SEED = int(os.environ.get("GIAANN_TRAINING_SEED", "1"))
STORAGES, COMPUTES = 3, 2
PAUSE = 2.0
GIAANN = "from giaann_p2p.cli.main import main; main()"

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300 + 30 * EPOCHS)]


def test_a_text_is_learned_while_peers_are_killed_and_join(new_swarm: NewSwarm) -> None:
    with new_swarm(storages=STORAGES, computes=COMPUTES) as swarm:
        harm = Harm(swarm)
        try:
            reports = asyncio.run(learned(swarm, harm))
        finally:
            print("\n".join(["", *harm.story]))
    rate = sum(report.sentences for report in reports) / sum(report.seconds for report in reports)
    print(f"{EPOCHS} epochs, {rate:.0f} sentences/s while {len(harm.story)} deeds were done")
    assert [report.epoch for report in reports] == list(range(1, EPOCHS + 1))
    assert all(report.complete and report.chunks_known == 0 for report in reports)
    assert {(report.chunks, report.sentences, report.sequences) for report in reports} == {
        (3, 141, 139)
    }
    assert {what.split()[0] for what in harm.story} == {"kill", "drain"}


async def learned(swarm: LocalSwarm, harm: "Harm") -> list[TrainReport]:
    async with visit(Link.read(swarm.link)) as visiting:
        wiki = Wiki(visiting.manifest.spec, visiting.manifest.layout)
        trainer, over = Trainer(visiting), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(harm.run(over))
            try:
                reports = await trainer.train(WIKI, TrainOptions(epochs=EPOCHS))
            finally:
                over.set()
        again = await trainer.train(WIKI, TrainOptions(epochs=EPOCHS, policy="random"))
        await trainer.close()
        assert all(report.known and report.chunks_known == 3 for report in again)
        for epoch in range(1, EPOCHS + 1):
            for number in range(len(wiki.deltas)):
                wiki.committed(wiki.job(epoch), number, number)
        await settled(visiting, wiki, STORAGES)
        return reports


class Harm:
    """Kills a peer every few seconds, and lets another join or the same come back."""

    def __init__(self, swarm: LocalSwarm) -> None:
        self.story: list[str] = []
        self._swarm, self._chance = swarm, random.Random(SEED)

    async def run(self, over: asyncio.Event) -> None:
        """Do harm until it is over, and once of each kind at least."""
        ways = [self._compute, self._storage, self._drained]
        while ways or not over.is_set():
            way = ways.pop(0) if ways else self._chance.choice([self._compute, self._storage])
            await way()
            await asyncio.sleep(self._chance.uniform(0, PAUSE))

    async def _compute(self, number: int = signal.SIGKILL) -> None:
        name = self._some("compute")
        self.story.append(f"{'kill' if number == signal.SIGKILL else 'drain'} {name}")
        await asyncio.to_thread(self._swarm.kill, name, number)
        code = await asyncio.to_thread(self._swarm.wait_ended, name, 60.0)
        assert code == (0 if number == signal.SIGTERM else -number), f"{name} ended with {code}"
        (new,) = await asyncio.to_thread(self._swarm.add, "compute")
        await asyncio.to_thread(self._swarm.wait_ready, [new], 60.0)

    async def _drained(self) -> None:
        await self._compute(signal.SIGTERM)

    async def _storage(self) -> None:
        name = self._some("storage")
        self.story.append(f"kill {name}")
        await asyncio.to_thread(self._swarm.kill, name)
        await asyncio.to_thread(self._swarm.wait_ended, name)
        await asyncio.sleep(self._chance.uniform(0, PAUSE))
        await asyncio.to_thread(self._swarm.restart, name)
        await asyncio.to_thread(self._swarm.wait_ready, [name], 120.0)

    def _some(self, role: str) -> str:
        peers = self._swarm.peers()
        ready = [one.name for one in peers if one.role == role and one.state == ProcessState.READY]
        return self._chance.choice(sorted(ready))


def test_the_same_command_goes_on_when_its_client_was_killed(
    new_swarm: NewSwarm, tmp_path: Path
) -> None:
    text = tmp_path / "long.txt"
    text.write_text("\n".join([WIKI.read_text()] * 10))
    with new_swarm(storages=STORAGES, computes=COMPUTES) as swarm:
        command = [sys.executable, "-c", GIAANN, "train", "--json", "--join", swarm.link, str(text)]
        asyncio.run(killed(swarm, command))
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        print(f"\n{told['chunks_known']} chunks were known, {told['chunks']} were learned then")
        assert told["chunks_known"] > 0
        assert told["chunks"] > 0
        assert told["complete"]
        chunks = asyncio.run(compared(swarm, text))
        assert told["chunks_known"] + told["chunks"] == chunks


async def killed(swarm: LocalSwarm, command: list[str]) -> None:
    """Give a command, and kill it as soon as the swarm has learned anything of it."""
    async with visit(Link.read(swarm.link)) as visiting:
        client = subprocess.Popen(  # noqa: ASYNC220  (it takes a moment)
            command, stdout=subprocess.PIPE, start_new_session=True
        )
        try:
            while not await rows(visiting):
                assert client.poll() is None, "it has ended before it could be killed"
                await asyncio.sleep(0.02)
        finally:
            os.killpg(client.pid, signal.SIGKILL)
            client.communicate()
    assert client.returncode == -signal.SIGKILL


async def rows(visiting: Session) -> int:
    """Return how many rows the swarm has learned."""
    peers = visiting.storage_peers()
    return (await checked(visiting.place.transport, visiting.around.rules, peers)).rows


async def compared(swarm: LocalSwarm, text: Path) -> int:
    """Compare what the swarm has learned with what one machine does; return how many chunks."""
    async with visit(Link.read(swarm.link)) as visiting:
        solo = Wiki(visiting.manifest.spec, visiting.manifest.layout, text)
        for number in range(len(solo.deltas)):
            solo.committed(solo.job(1), number, number)
        await settled(visiting, solo, STORAGES)
        return len(solo.deltas)
