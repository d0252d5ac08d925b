"""How well a swarm knows the text that it has learned: as well as a machine alone has to."""

import asyncio
from pathlib import Path

import pytest

from giaann_p2p.client.scoring import scored
from giaann_p2p.client.session import visit
from giaann_p2p.client.swarm import Swarm
from giaann_p2p.client.training import Trainer
from giaann_p2p.model.evaluate import Feed
from giaann_p2p.model.halves import Halves
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.solo.corpus import opened
from giaann_p2p.solo.recall import Recalled, recall
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.conftest import NewSwarm
from tests.e2e.material import WIKI

LEAST = {("exact", Feed.TRUE): 0.9985, ("none", Feed.TRUE): 0.990, ("exact", Feed.OWN): 0.998}
"""By timing and by what is fed: the share of tokens after the seed that are right."""
LEAST_RECALLED = 0.95
WORDS = ModelSpec().seed_tokens

pytestmark = pytest.mark.e2e


def test_a_swarm_knows_what_it_has_learned(new_swarm: NewSwarm) -> None:
    with new_swarm(storages=3, computes=2) as swarm:
        found = asyncio.run(accuracies(swarm.link, WIKI))
        known = recalled(swarm.link, WIKI)
    print()
    for (timing, feed), right in found.items():
        print(f"{timing}, {feed} tokens fed: {right:.4f} of the tokens after the seed are right")
    print(f"{known.recalled} of {known.sentences} sentences are completed from {WORDS} words")
    assert all(found[way] >= least for way, least in LEAST.items())
    assert known.sentences > 100
    assert known.share >= LEAST_RECALLED


async def accuracies(link: str, text: Path) -> dict[tuple[str, Feed], float]:
    """Have a swarm learn a text; return how well it predicts it, in each way."""
    async with visit(Link.read(link)) as visiting:
        trainer = Trainer(visiting)
        (report,) = await trainer.train(text)
        await trainer.close()
        assert report.complete
        return {
            (timing, feed): (await scored(visiting, text, timing=timing, feed=feed)).accuracy
            for timing, feed in LEAST
        }


def recalled(link: str, text: Path) -> Recalled:
    """Prompt with the first words of each sentence, as everybody would."""
    profile, result = profile_of(ModelSpec()), Recalled()
    with Swarm.join(link) as swarm, opened(text) as corpus:

        def answer(halves: Halves) -> str:
            return swarm.generate(halves.prompt).text

        texts = profile.texts(corpus.blocks(), corpus.name)
        recall(texts, lambda one: profile.halves(one, WORDS), answer, result)
    return result
