"""Prompts through a swarm: what one machine answers, whoever dies meanwhile."""

import asyncio
import os
from collections.abc import Awaitable, Callable

import pytest

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.learn import learn
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.parse import Parser
from giaann_p2p.model.rows import DeltaRows
from giaann_p2p.model.sequence import Sequences
from giaann_p2p.model.text import Sentence
from giaann_p2p.node.reading.prompting import PromptOptions
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.swarm.wire.identity import Peer
from tests.unit.node.helpers import Town, play
from tests.unit.node.helpers_prompts import (
    MANNERS,
    Known,
    Oracle,
    asked,
    expected,
    prompts,
    taught,
    tokens_of,
)

KILLS = int(os.environ.get("PROMPT_KILLS", "24"))
"""Prompts in the midst of which a peer dies or stands still; 200 take a minute."""


@pytest.fixture(scope="module")
def learned(wiki: Sequences) -> Delta:
    return learn(wiki, SPEC)


@pytest.mark.parametrize("manner", MANNERS.values(), ids=MANNERS)
def test_the_swarm_answers_what_one_machine_answers(
    learned: Delta, parser: Parser, manner: Manner
) -> None:
    rows = DeltaRows(learned)

    async def story(town: Town) -> None:
        client = await taught(town, learned)
        oracle = Oracle(town, 100, parser)
        await oracle.client.lookout.whole.wait()
        texts = prompts(16)
        answers = [asked(client, Known(oracle), text, manner) for text in texts]
        told = await asyncio.gather(*(answer.all() for answer in answers))
        for text, found, answer in zip(texts, told, answers, strict=True):
            assert tokens_of(found) == tokens_of(expected(rows, parser, text, manner))
            assert answer.begun is not None
            assert len(answer.costs) == len(found.tokens)
        await oracle.close()

    play(story)


def test_long_rows_that_have_not_changed_are_not_sent_again(learned: Delta, parser: Parser) -> None:
    rows, manner = DeltaRows(learned), Manner()

    async def story(town: Town) -> None:
        client = await taught(town, learned)
        oracle = Oracle(town, 100, parser)
        await oracle.client.lookout.whole.wait()
        calls, received = oracle.client.reading.calls, list[int]()
        for _ in range(3):
            before = calls.bytes_in
            for text in prompts(3):
                found = await asked(client, Known(oracle), text, manner).all()
                assert tokens_of(found) == tokens_of(expected(rows, parser, text, manner))
            received.append(calls.bytes_in - before)
            await asyncio.sleep(1.5)  # until what is cached is too old
        assert received[0] > 50_000
        assert max(received[1:]) < 0.6 * received[0]  # short rows come again
        await oracle.close()

    play(story)


@pytest.mark.slow
def test_whoever_dies_in_the_midst_of_an_answer_it_goes_on_with_the_same_tokens(
    learned: Delta, parser: Parser
) -> None:
    rows, count = DeltaRows(learned), KILLS
    texts = [text for words in (5, 6, 7, 8, 9) for text in prompts(60, words)]
    texts = [text for text in texts if _names_a_concept(text, parser)][:count]
    assert len(texts) == count

    async def story(town: Town) -> None:
        client = await taught(town, learned, houses=4)
        shortly = PromptOptions(ahead=1)
        oracles = [Oracle(town, 100 + number, parser, shortly) for number in range(2)]
        for oracle in oracles:
            await oracle.client.lookout.whole.wait()
        known = Known(*oracles)
        manners = [MANNERS["auto"], Manner(max_tokens=20, timing="seq")]
        asked_twice = 0
        for number, text in enumerate(texts):
            manner = manners[number % len(manners)]
            answer = asked(client, known, text, manner)
            await anext(answer, None)
            heal = await _harm(town, oracles, known, answer.peers[-1], number)
            began = asyncio.get_running_loop().time()
            told = await answer.all()
            took = asyncio.get_running_loop().time() - began
            assert tokens_of(told) == tokens_of(expected(rows, parser, text, manner)), number
            assert took < 4, (number, took)
            asked_twice += len(answer.peers) > 1
            await heal()
        assert asked_twice > count / 8
        for oracle in oracles:
            await oracle.close()

    play(story)


def _names_a_concept(text: str, parser: Parser) -> bool:
    (sentence, *_) = parser.parse_prompt([Sentence(text, 1)])
    return any(name for _, name in sentence.words)


async def _harm(
    town: Town, oracles: list[Oracle], known: Known, at: Peer, number: int
) -> Callable[[], Awaitable[None]]:
    """Do harm to a peer that works on an answer; return what makes it good again."""
    oracle = next(one for one in oracles if one.me == at)
    house = town.chance.choice(town.houses)
    if number % 4 == 0:
        oracle.freeze()

        async def heal() -> None:
            oracle.freeze(frozen=False)
            await asyncio.sleep(40)  # it is trusted again

    elif number % 4 == 1:
        await oracle.die()

        async def heal() -> None:
            oracles.remove(oracle)
            oracles.append(oracle.successor())
            await oracles[-1].client.lookout.whole.wait()
            known.there = Known(*oracles).there

    elif number % 4 == 2:
        await house.die()

        async def heal() -> None:
            house.come_back()
            await town.until(town.settled)
            await asyncio.sleep(5)

    else:
        town.freeze(house)

        async def heal() -> None:
            town.freeze(house, frozen=False)
            await asyncio.sleep(1)

    return heal
