"""A swarm of real processes, as Python sees it."""

import asyncio
from collections.abc import Iterator

import pytest

from giaann_p2p import AsyncSwarm, Brain, PromptError, Swarm, TrainProgress, TrainReport, UsageError
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.spec import ModelSpec
from tests.cli.conftest import TEXT

pytestmark = pytest.mark.slow  # a swarm is started and taught for them

PROMPT = "Many poets fought in the Spanish"


@pytest.fixture(scope="module")
def link() -> Iterator[str]:
    """A swarm that learns."""
    with LocalSwarm(
        name="bees", profile="words", shards=4, replicas=1, storages=1, computes=1, grace=1.0
    ) as local:
        yield local.link


@pytest.fixture(scope="module")
def swarm(link: str) -> Iterator[Swarm]:
    with Swarm.join(link) as swarm:
        yield swarm


@pytest.fixture(scope="module")
def taught(swarm: Swarm) -> list[TrainReport]:
    return list(swarm.train(TEXT))


@pytest.fixture(scope="module")
def brain() -> Brain:
    brain = Brain(ModelSpec())
    brain.train(TEXT)
    return brain


def test_it_learns_what_a_brain_learns(
    swarm: Swarm, taught: list[TrainReport], brain: Brain
) -> None:
    (report,) = taught
    assert (report.sentences, report.complete) == (3, True)
    found = swarm.fsck()
    assert (found.agrees, found.digest) == (True, brain.digest())
    (again,) = swarm.train(TEXT)
    assert (again.chunks, again.chunks_known) == (0, 1)
    assert swarm.status().verdict == "healthy"


@pytest.mark.usefixtures("taught")
def test_it_says_what_a_brain_says(swarm: Swarm, brain: Brain) -> None:
    whole = swarm.generate(PROMPT, max_tokens=5)
    assert whole == brain.generate(PROMPT, max_tokens=5)
    answer = swarm.stream(PROMPT, max_tokens=5)
    assert list(answer) == whole.tokens
    assert (answer.completion, answer.stopped) == (whole.completion, whole.stopped)
    assert answer.all() == whole
    for _ in swarm.stream(PROMPT):
        break  # and nothing is left behind
    assert swarm.generate(PROMPT).text == brain.generate(PROMPT).text


@pytest.mark.usefixtures("taught")
def test_a_column_is_looked_at(swarm: Swarm) -> None:
    found = swarm.column("bee", words=2, leads=1)
    assert found.size == 4
    assert [word.feature for word in found.words[:1]] == [None]
    assert found.words[0].occurrences == 2
    assert swarm.column("zorp").words == []


def test_progress_is_told(swarm: Swarm) -> None:
    seen = list[tuple[int, float]]()

    def watch(report: TrainReport, standing: TrainProgress) -> None:
        seen.append((report.sentences, standing.share))

    swarm.train(
        "Wasps eat the fruit that falls from the trees of the garden in autumn.", progress=watch
    )
    assert seen
    assert all(0 <= share <= 1 for _, share in seen)


def test_what_is_wrong_is_told(swarm: Swarm) -> None:
    for wrong in (
        lambda: swarm.generate(""),
        lambda: swarm.generate(" "),
    ):
        with pytest.raises(PromptError):
            wrong()
    with pytest.raises(TypeError, match="a prompt is a str, not NoneType"):
        swarm.generate(None)  # type: ignore[arg-type]
    for wrong in (
        lambda: swarm.generate("Bees", timing="soon"),
        lambda: swarm.train(TEXT, epochs=0),
        lambda: Swarm.join("giaann://nowhere"),
    ):
        with pytest.raises(UsageError):
            wrong()


@pytest.mark.usefixtures("taught")
def test_within_a_loop_many_ask_at_once(link: str, brain: Brain) -> None:
    async def story() -> list[str]:
        async with AsyncSwarm.join(link) as swarm:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(swarm.generate(PROMPT)) for _ in range(8)]
            return [task.result().text for task in tasks]

    assert asyncio.run(story()) == [brain.generate(PROMPT).text] * 8


@pytest.mark.usefixtures("taught")
def test_it_computes_by_itself_if_it_is_to(link: str, brain: Brain) -> None:
    with Swarm.join(link, local=True) as swarm:
        assert swarm.generate(PROMPT) == brain.generate(PROMPT)


def test_left_it_says_so(link: str) -> None:
    swarm = Swarm.join(link)
    swarm.close()
    swarm.close()
    with pytest.raises(UsageError, match="is closed; join"):
        swarm.generate("Bees")
