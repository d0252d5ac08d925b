"""A brain behind a gateway: the same answers as without, several at once, and texts taught."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from giaann_p2p import Brain
from giaann_p2p.errors import PromptError, UsageError
from giaann_p2p.gateway.backend import Learned
from giaann_p2p.gateway.brain_backend import BrainBackend
from giaann_p2p.gateway.failures import Busy
from giaann_p2p.model.manner import Manner, Sampling
from giaann_p2p.model.spec import ModelSpec

TEXT = (
    "Bees make honey from the nectar that they collect from flowers in the summer.\n"
    "The old captain of the ship told the young sailors a long story about the sea.\n"
)
MORE = "The gardener waters the roses behind the house in the early morning before breakfast.\n"


@pytest.fixture(scope="module")
def brain() -> Iterator[Brain]:
    with Brain(ModelSpec()) as found:
        found.train(TEXT)
        yield found


@asynccontextmanager
async def backend_of(brain: Brain) -> AsyncIterator[BrainBackend]:
    backend = BrainBackend(brain, "bees", training=True)
    try:
        yield backend
    finally:
        await backend.close()


async def said(backend: BrainBackend, prompt: str, tokens: int = 80) -> str:
    async with backend.answering(prompt, Manner(max_tokens=tokens)) as answer:
        return (await answer.all()).text


def test_answers_are_those_of_the_brain_also_many_at_once(brain: Brain) -> None:
    prompts = ["Bees make honey from", "The old captain of the ship"] * 4
    alone = [brain.generate(prompt).text for prompt in prompts]

    async def play() -> list[str]:
        async with backend_of(brain) as backend:
            return await asyncio.gather(*(said(backend, prompt) for prompt in prompts))

    assert asyncio.run(play()) == alone
    assert "nectar" in alone[0]


def test_an_answer_tells_its_costs_and_why_it_ended(brain: Brain) -> None:
    async def play() -> None:
        async with backend_of(brain) as backend:
            async with backend.answering("Bees make honey", Manner(max_tokens=2)) as answer:
                assert (answer.begun, answer.completion, answer.unknown) == (None, "", [])
                done = await answer.all()
            assert done.stopped == "limit"
            assert answer.begun is not None
            assert len(answer.costs) == 2

    asyncio.run(play())


def test_what_cannot_be_is_refused(brain: Brain) -> None:
    async def play() -> None:
        async with backend_of(brain) as backend:
            with pytest.raises(PromptError):
                await said(backend, " ")
            with pytest.raises(UsageError, match="temperature"):
                async with backend.answering("Bees", Manner(sampling=Sampling(temperature=1))):
                    pass

    asyncio.run(play())


def test_columns_nouns_and_texts_are_shown(brain: Brain) -> None:
    async def play() -> None:
        async with backend_of(brain) as backend:
            found = await backend.column("Bee", 1, 2)
            assert found is not None
            assert (found.concept, len(found.words), found.size) == ("bee", 1, 2)
            assert (found.words[0].feature, found.words[0].occurrences) == (None, 1)
            assert len(found.words[0].leads) == 2
            assert await backend.column("zorp", 1, 1) is None
            nouns = await backend.search("s", 9)
            assert {one.noun for one in nouns.found} >= {"sea", "ship", "story"}
            assert (await backend.status())["rows"] > 10
            assert (await backend.jobs()).jobs[0].chunks == 1
            assert backend.lacking == ""
            assert backend.facts.kind == "brain"

    asyncio.run(play())


def test_a_text_is_learned_once_and_prompts_go_on_meanwhile() -> None:
    async def play(brain: Brain) -> None:
        async with backend_of(brain) as backend:
            teaching = backend.train("garden.txt", MORE)
            first = await anext(teaching)
            assert first.name == "garden.txt"  # type: ignore[union-attr]
            with pytest.raises(Busy):
                await anext(backend.train("other", TEXT))
            found = await asyncio.gather(said(backend, "Bees make honey from"), _rest(teaching))
            assert "nectar" in found[0]
            assert found[1].report["sequences"] == 1
            assert found[1].report["name"] == "garden.txt"
            assert (await _rest(backend.train("garden.txt", MORE))).report["known"]
            names = [job.name for job in (await backend.jobs()).jobs]
            assert names == ["text", "garden.txt"]
            assert " rose behind the house" in await said(backend, "The gardener waters the")

    with Brain(ModelSpec()) as brain:
        brain.train(TEXT)
        asyncio.run(play(brain))


async def _rest(teaching: object) -> Learned:
    last = [one async for one in teaching][-1]  # type: ignore[attr-defined]
    assert isinstance(last, Learned)
    return last
