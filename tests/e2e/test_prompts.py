"""Prompts are answered while those who answer them, or hold the rows, are killed.

Each answer is, token for token, that of one machine that has learned the same text.
GIAANN_PROMPTS=200 asks as many; GIAANN_PROMPTS_SEED=7 asks others, and kills at other tokens.
"""

import asyncio
import os
import random
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from typing import NamedTuple

import pytest

from giaann_p2p.client.prompting import ask
from giaann_p2p.client.session import Session, visit
from giaann_p2p.client.training import Trainer
from giaann_p2p.client.training import TrainOptions as Teaching
from giaann_p2p.errors import PromptError
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.manner import Beam, Manner
from giaann_p2p.model.said import Generation
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.solo.brain import Brain
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.conftest import NewSwarm
from tests.e2e.killer import WAYS, Followed, Killer
from tests.e2e.material import WIKI

PROMPTS = int(os.environ.get("GIAANN_PROMPTS", "40"))
SEED = int(os.environ.get("GIAANN_PROMPTS_SEED", "1"))
STORAGES, COMPUTES, EPOCHS = 3, 3, 3
AT_ONCE, EVERY = 4, 4
"""So many prompts are asked at once, each so many turns; else it is one."""
MANNERS = (Manner(), Manner(beam=Beam(width=3, depth=3)), Manner(timing="none"))
WORDS, FEWEST_TOKENS = (4, 10), 5
NEVER = -1

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300 + 10 * PROMPTS)]


class Case(NamedTuple):
    """A prompt, and what one machine answers."""

    prompt: str
    manner: Manner
    wanted: Generation


def test_prompts_are_answered_while_peers_are_killed(new_swarm: NewSwarm) -> None:
    chance = random.Random(SEED)
    asked = list(cases(chance))
    with new_swarm(storages=STORAGES, computes=COMPUTES) as swarm:
        killer = Killer(swarm, SEED)
        try:
            asyncio.run(answered(swarm, killer, asked, chance))
        except BaseException:
            print(f"seed {SEED}; GIAANN_PROMPTS_SEED={SEED} repeats the prompts and the kills")
            print("\n".join(["", *killer.story]))
            raise
    print(f"\nseed {SEED}, {len(killer.followed)} answers, each as one machine's")
    print(killer.figures())
    assert len(killer.followed) == PROMPTS
    assert set(killer.strikes) == set(WAYS)


def cases(chance: random.Random) -> Iterator[Case]:
    """Make prompts that are some way from their end, of the first words of sentences."""
    sentences = [line.split() for line in WIKI.read_text().splitlines()]
    long = [words for words in sentences if len(words) > WORDS[1]]
    with Brain(ModelSpec()) as brain:
        brain.train(WIKI, epochs=EPOCHS)
        count = 0
        while count < PROMPTS:
            prompt = " ".join(chance.choice(long)[: chance.randint(*WORDS)])
            manner = MANNERS[count % len(MANNERS)]
            try:
                wanted = brain.generate(
                    prompt,
                    max_tokens=manner.max_tokens,
                    timing=manner.timing,
                    beam=manner.beam,
                )
            except PromptError:  # the first words name no concept
                continue
            if len(wanted.tokens) >= FEWEST_TOKENS:
                count += 1
                yield Case(prompt, manner, wanted)


async def answered(
    swarm: LocalSwarm, killer: Killer, asked: list[Case], chance: random.Random
) -> None:
    async with visit(Link.read(swarm.link)) as visiting:
        trainer = Trainer(visiting)
        await trainer.train(WIKI, Teaching(epochs=EPOCHS))
        await trainer.close()
        for way, turn in zip(cycle(WAYS), turns(asked), strict=False):
            # The second half is often here before anybody could strike.
            at = chance.randrange(len(turn[0].wanted.tokens) // 2)
            await killer.may_strike(way)
            async with asyncio.TaskGroup() as group:
                group.create_task(answer(visiting, killer, turn[0], at, way))
                for case in turn[1:]:
                    group.create_task(answer(visiting, killer, case, NEVER, way))
        await killer.healed()


def turns(asked: list[Case]) -> Iterator[list[Case]]:
    """Take prompts in turn, some at once."""
    left = list(asked)
    for number in range(len(asked)):
        count = AT_ONCE if number % EVERY == EVERY - 1 else 1
        if left:
            yield left[:count]
        left = left[count:]


async def answer(visiting: Session, killer: Killer, case: Case, at: int, way: str) -> None:
    """See that an answer is what it is on one machine, though somebody is killed meanwhile."""
    followed: Followed = killer.follow(ask(visiting, case.prompt, case.manner))
    found = await followed.all(at, partial(killer.strike, way))
    assert found == case.wanted, f"{case.prompt!r}, {case.manner}"
