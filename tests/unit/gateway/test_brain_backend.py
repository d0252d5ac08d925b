"""A brain behind a gateway: the same answers as without, several at once, and texts taught."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from giaann_p2p import Brain
from giaann_p2p.errors import PromptError, UsageError
from giaann_p2p.gateway import brain_backend
from giaann_p2p.gateway.backend import Learned
from giaann_p2p.gateway.brain_backend import THREADS, BrainBackend
from giaann_p2p.gateway.failures import Busy, failure_of
from giaann_p2p.model.manner import MOST_BEAM, MOST_PROMPT, Beam, Manner, Sampling
from giaann_p2p.model.rows import Answer, Question
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


def test_a_prompt_or_beam_that_is_too_large_is_refused(brain: Brain) -> None:
    large = [("Bees", Manner(beam=Beam(width=MOST_BEAM + 1, depth=1)))]
    large += [("bee " * MOST_PROMPT, Manner())]

    async def play() -> None:
        async with backend_of(brain) as backend:
            for prompt, manner in large:
                with pytest.raises(UsageError, match="this gateway takes at most") as found:
                    async with backend.answering(prompt, manner):
                        pass
                assert failure_of(found.value).status == 400
            async with backend.answering("Bees make", Manner(beam=Beam(width=8, depth=8))) as most:
                assert (await most.all()).tokens

    asyncio.run(play())


class HeldRows:
    """The rows of a brain, each read of which waits until all are let go."""

    def __init__(self, brain: Brain) -> None:
        self._rows = brain._rows
        self.came, self.go = threading.Event(), threading.Event()
        self.reads = 0

    def read(self, question: Question) -> Answer:
        self.reads += 1  # by one thread at a time, because prompts are read in turn
        self.came.set()
        self.go.wait(60)
        return self._rows.read(question)


async def leave(backend: BrainBackend, held: HeldRows) -> None:
    """Ask a prompt for each thread; leave while one of them reads and the others wait for it."""
    prompts = [said(backend, "Bees make honey from") for _ in range(THREADS)]
    asked = list(map(asyncio.ensure_future, prompts))
    await asyncio.to_thread(held.came.wait, 60)
    for one in asked:
        one.cancel()
    await asyncio.gather(*asked, return_exceptions=True)


def test_the_thread_of_an_answer_stops_when_its_client_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(brain: Brain, held: HeldRows) -> None:
        async with backend_of(brain) as backend:
            await leave(backend, held)
            held.go.set()
            await asyncio.gather(*(backend.status() for _ in range(THREADS)))
        assert held.reads == 1  # no thread went on to its next step

    with Brain(ModelSpec()) as brain:
        brain.train(TEXT)
        held = HeldRows(brain)
        monkeypatch.setattr(brain, "_rows", held)
        asyncio.run(play(brain, held))


def test_a_thread_that_does_not_stop_keeps_nothing_from_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(brain_backend, "_END_WITHIN", 0.01)

    async def play(brain: Brain, held: HeldRows) -> None:
        backend = BrainBackend(brain, "bees")
        await leave(backend, held)
        await asyncio.wait_for(backend.close(), 60)
        threads = [one for one in threading.enumerate() if one.name.startswith("giaann-brain")]
        assert threads
        assert all(one.daemon for one in threads)

    with Brain(ModelSpec()) as brain:
        brain.train(TEXT)
        held = HeldRows(brain)
        monkeypatch.setattr(brain, "_rows", held)
        try:
            asyncio.run(play(brain, held))
        finally:
            held.go.set()


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


def test_a_lesson_goes_on_when_the_stream_of_an_earlier_one_is_closed() -> None:
    async def play(brain: Brain) -> None:
        async with backend_of(brain) as backend:
            earlier = backend.train("bees.txt", TEXT)
            async for one in earlier:
                if isinstance(one, Learned):
                    break  # it is on its way to the client, and the stream is still open
            with backend._parsing:  # so that the next lesson has not begun
                later = backend.train("garden.txt", MORE)
                await anext(later)
                await earlier.aclose()
            report = (await _rest(later)).report
            assert (report["interrupted"], report["chunks"]) == (False, 1)

    with Brain(ModelSpec()) as brain:
        asyncio.run(play(brain))


async def _rest(teaching: object) -> Learned:
    last = [one async for one in teaching][-1]  # type: ignore[attr-defined]
    assert isinstance(last, Learned)
    return last
