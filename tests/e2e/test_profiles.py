"""A swarm of either profile learns and answers as one machine; it always has an answer."""

import asyncio
from pathlib import Path

import pytest

from giaann_p2p import Brain
from giaann_p2p.client.prompting import ask
from giaann_p2p.client.pulling import Pulled, pull
from giaann_p2p.client.session import visit
from giaann_p2p.client.training import Trainer
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.said import Generation
from giaann_p2p.model.usual import new_spec
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.conftest import NewSwarm
from tests.e2e.material import WIKI
from tests.helpers import DATA

PROMPTS = (DATA / "prompts.txt").read_text().splitlines()
"""Beginnings of ordinary English sentences, of three to eight words; written before any was tried.
"""
MANNER = Manner(max_tokens=10)
AT_ONCE = 16

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.mark.parametrize("profile", ["subwords", "words"])
def test_all_prompts_are_answered_and_as_by_one_machine(
    new_swarm: NewSwarm, tmp_path: Path, profile: str
) -> None:
    with Brain(new_spec(profile)) as brain:
        brain.train(WIKI)
        learned = brain.info()
        wanted = [brain.generate(prompt, max_tokens=MANNER.max_tokens) for prompt in PROMPTS]
    assert len(wanted) == 200
    assert all(answer.text.strip() for answer in wanted)
    with new_swarm(storages=3, computes=2, shards=16, profile=profile) as swarm:
        found = asyncio.run(answered(swarm))
        home = asyncio.run(taken_home(swarm, tmp_path / "home"))
        assert home.digest == learned.digest
        with Brain.open(tmp_path / "home", readonly=True) as brain:
            assert brain.info().digest == learned.digest
            assert brain.generate(PROMPTS[0], max_tokens=MANNER.max_tokens) == wanted[0]
    for prompt, one, other in zip(PROMPTS, found, wanted, strict=True):
        assert one.tokens == other.tokens, prompt


async def taken_home(swarm: LocalSwarm, folder: Path) -> Pulled:
    async with visit(Link.read(swarm.link)) as visiting:
        return await pull(visiting, folder)


async def answered(swarm: LocalSwarm) -> list[Generation]:
    """Have a swarm learn, then ask it all prompts, some at once."""
    turns = asyncio.Semaphore(AT_ONCE)
    async with visit(Link.read(swarm.link)) as visiting:
        trainer = Trainer(visiting)
        await trainer.train(WIKI)
        await trainer.close()

        async def one(prompt: str) -> Generation:
            async with turns:
                return await ask(visiting, prompt, MANNER).all()

        return await asyncio.gather(*map(one, PROMPTS))
