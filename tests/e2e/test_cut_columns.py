"""A swarm whose largest columns are cut, then cut further, learns and answers as one machine."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from giaann_p2p import Brain
from giaann_p2p.client.column import column
from giaann_p2p.client.oracle import oracle
from giaann_p2p.client.prompting import ask
from giaann_p2p.client.pulling import pull
from giaann_p2p.client.session import Session, visit
from giaann_p2p.client.trained import TrainReport
from giaann_p2p.client.training import Trainer
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.said import Generation
from giaann_p2p.model.usual import new_spec
from giaann_p2p.store.cuts import MARK
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.commands import doctor, fsck, reshard, status
from tests.e2e.conftest import NewSwarm
from tests.e2e.material import WIKI
from tests.helpers import DATA

PROMPTS = (DATA / "prompts.txt").read_text().splitlines()[:40]
MORE = (DATA / "quick.txt").read_text()
MANNER = Manner(max_tokens=10)
AT_ONCE, VOTED, NOUN = 16, 3, "anarchism"
WITHIN = 120.0

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def answers(brain: Brain, prompts: Iterable[str] = PROMPTS) -> list[Generation]:
    return [brain.generate(prompt, max_tokens=MANNER.max_tokens) for prompt in prompts]


@pytest.mark.parametrize("profile", ["words", "subwords"])
def test_cut_columns_are_learned_and_read_as_whole_ones(
    new_swarm: NewSwarm, tmp_path: Path, profile: str
) -> None:
    with (
        new_swarm(storages=4, computes=1, profile=profile, cut_like=str(WIKI)) as swarm,
        Brain.open(tmp_path / "solo", new_spec(profile)) as brain,
    ):
        brain.train(WIKI)
        asyncio.run(first(swarm, brain, tmp_path / "home"))
        assert fsck(swarm.link, tmp_path / "solo")["equal"]
        swarm.kill("storage-1")

        size = "--chunk", "128", "--shards", "128"
        told = reshard(swarm, *size, "--cut-like", str(WIKI), "--yes")
        assert sum(told["cut"]["after"].values()) > sum(told["cut"]["before"].values()) > 0
        as_shown(swarm, told["cut"])
        brain.train(MORE)
        asyncio.run(then(swarm, brain, tmp_path / "later"))
        assert fsck(swarm.link, tmp_path / "later")["equal"]


async def first(swarm: LocalSwarm, brain: Brain, home: Path) -> None:
    async with visit(Link.read(swarm.link)) as visiting:
        assert len(visiting.around.rules.columns) > 3
        await taught(visiting, WIKI)
        assert await asked(visiting) == tokens(answers(brain))
        shown = await column(visiting, NOUN)
        assert shown.size > 20
        assert all(MARK not in lead.concept for word in shown.words for lead in word.leads)
        assert sum(word.connections for word in shown.words[:1]) > 100
        await pull(visiting, home)
    async with oracle(swarm.link, verify=1.0) as voted:
        told = [await voted(prompt, MANNER).all() for prompt in PROMPTS[:VOTED]]
    assert tokens(told) == tokens(answers(brain, PROMPTS[:VOTED]))
    as_at_home(home, brain)


async def then(swarm: LocalSwarm, brain: Brain, home: Path) -> None:
    async with visit(Link.read(swarm.link)) as visiting:
        async with asyncio.timeout(WITHIN):
            while True:
                if visiting.around.rules.edition:
                    break
                await asyncio.sleep(0.2)
        (report,) = await taught(visiting, MORE)
        assert report.chunks == 1
        (again,) = await taught(visiting, WIKI)  # known by its chunks of 64
        assert again.chunks == 0
        assert again.chunks_known > 0
        expected = tokens(answers(brain))
        async with asyncio.timeout(WITHIN):
            while True:
                if await asked(visiting) == expected:
                    break
                await asyncio.sleep(0.5)  # a quorum has the chunk; the last holder soon will
        await pull(visiting, home)
    as_at_home(home, brain)


def as_shown(swarm: LocalSwarm, parts: dict[str, dict[str, int]]) -> None:
    """Check what status and doctor say of cut columns; `parts` are those before and after."""
    cut = [
        {"chunk": chunk, "columns": len(cut), "parts": sum(cut.values())}
        for chunk, cut in ((64, parts["before"]), (128, parts["after"]))
    ]
    assert status(swarm.link)["cut"] == cut
    assert f"{cut[1]['columns']:,} columns into {cut[1]['parts']:,} parts" in doctor(swarm.link)


def as_at_home(home: Path, brain: Brain) -> None:
    """Check a pulled brain against one that learned the same, uncut."""
    with Brain.open(home, readonly=True) as pulled:
        assert tokens(answers(pulled, PROMPTS[:10])) == tokens(answers(brain, PROMPTS[:10]))
        assert {*pulled.connections()} == {*brain.connections()}


async def taught(visiting: Session, text: str | Path) -> list[TrainReport]:
    trainer = Trainer(visiting)
    try:
        return await trainer.train(text)
    finally:
        await trainer.close()


async def asked(visiting: Session) -> list[list[object]]:
    """Ask a swarm all prompts, some at once; return the tokens of the answers."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(prompt: str) -> Generation:
        async with turns:
            return await ask(visiting, prompt, MANNER).all()

    return tokens(await asyncio.gather(*map(one, PROMPTS)))


def tokens(told: Iterable[Generation]) -> list[list[object]]:
    return [[*one.tokens] for one in told]
