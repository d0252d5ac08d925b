"""Steps of many answers in one loop: what they compute in a turn is computed together."""

import asyncio
import random
from collections.abc import Iterator, Sequence

import pytest

from giaann_p2p.model.manner import Manner
from giaann_p2p.model.parse import Parser
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.rows import Answer, DeltaRows, Neuron, Question, Rows, Steps, Work
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.net import clock
from giaann_p2p.node.reading.row_cache import Bill, RowCache
from giaann_p2p.node.reading.thinking import Thinking, Thought
from giaann_p2p.swarm.reading.known_rows import Known
from tests.helpers import no_nouns
from tests.unit.node.helpers_prompts import profile_with, prompts
from tests.unit.node.reading.test_row_cache import N, Peers


def thinking_of(peers: Peers, spec: ModelSpec) -> Thinking:
    return Thinking(RowCache(peers.read, 1 << 20), profile_of(spec), frequent=no_nouns)


class Counted(Work):
    """Work that notes with how much other work it was done."""

    def __init__(self, notes: list[int], connections: int = 1) -> None:
        self.notes, self._connections = notes, connections

    @property
    def connections(self) -> int:
        return self._connections

    def together(self, others: Sequence[Work]) -> None:
        self.notes.append(1 + len(others))


def steps(notes: list[int], count: int, connections: int = 1) -> Steps[int]:
    for _ in range(count):
        yield [Counted(notes, connections)]
    return count


@pytest.mark.parametrize("connections", [1, 1 << 20], ids=["loop", "thread"])
def test_what_is_due_in_a_turn_is_done_together(spec: ModelSpec, connections: int) -> None:
    async def main() -> None:
        thinking, notes = thinking_of(Peers(), spec), list[int]()
        runs = [thinking.through(steps(notes, n, connections), Bill()) for n in (5, 0, 7, 3)]
        assert await asyncio.gather(*runs) == [5, 0, 7, 3]
        assert notes == [3, 3, 3, 2, 2, 1, 1]
        assert await thinking.through(steps(notes, 2), Bill()) == 2
        assert notes[7:] == [1, 1]
        await thinking.close()

    asyncio.run(main())


def test_who_waits_for_rows_misses_a_turn(spec: ModelSpec) -> None:
    def reads(notes: list[int]) -> Steps[None]:
        yield Question([N[1]])
        yield [Counted(notes)]

    async def main() -> None:
        thinking, notes = thinking_of(Peers(), spec), list[int]()
        runs = [thinking.through(reads(notes), Bill()), thinking.through(steps(notes, 1), Bill())]
        await asyncio.gather(*runs)
        assert notes == [1, 1]
        await thinking.close()

    clock.run(main())


@pytest.mark.parametrize("seed", range(20))
def test_who_is_cancelled_leaves_the_others_at_work(spec: ModelSpec, seed: int) -> None:
    chance = random.Random(seed)

    async def main() -> None:
        thinking, notes = thinking_of(Peers(), spec), list[int]()
        loop = asyncio.get_running_loop()
        runs = [loop.create_task(thinking.through(steps(notes, 20), Bill())) for _ in range(8)]
        for run in runs[:-2]:
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
            run.cancel()
        assert await asyncio.gather(*runs[-2:]) == [20, 20]
        await asyncio.gather(*runs, return_exceptions=True)
        assert await thinking.through(steps(notes, 2), Bill()) == 2
        await thinking.close()

    clock.run(main())


def test_questions_are_answered_and_charged(spec: ModelSpec) -> None:
    asked: list[Question] = []

    def work() -> Steps[Answer]:
        first = yield Question([N[1]])
        second = yield Question([N[1], N[2]])
        return first + second

    def foresee(question: Question) -> Iterator[object]:
        asked.append(question)
        return iter(())

    async def main() -> None:
        peers, bill = Peers(), Bill()
        thinking = thinking_of(peers, spec)
        rows = await thinking.through(work(), bill, foresee)  # type: ignore[arg-type]
        assert [row and row.neuron for row in rows] == [N[1], N[1], N[2]]
        assert peers.reads == [[1], [2]]
        assert (bill.rows, bill.kept, bill.trips) == (3, 1, 2)
        assert asked == [Question([N[1]]), Question([N[1], N[2]])]
        await thinking.close()

    clock.run(main())


def test_an_error_in_a_step_is_its_owners_alone(spec: ModelSpec) -> None:
    def wrong(notes: list[int]) -> Steps[None]:
        yield [Counted(notes)]
        raise ZeroDivisionError

    async def main() -> None:
        thinking, notes = thinking_of(Peers(), spec), list[int]()
        runs = [thinking.through(wrong(notes), Bill()), thinking.through(steps(notes, 3), Bill())]
        one, other = await asyncio.gather(*runs, return_exceptions=True)
        assert isinstance(one, ZeroDivisionError)
        assert (other, notes) == (3, [2, 1, 1])
        await thinking.close()

    clock.run(main())


@pytest.mark.parametrize("connections", [1, 1 << 20], ids=["loop", "thread"])
def test_work_that_fails_ends_its_turns_answers_and_no_later_ones(
    spec: ModelSpec, connections: int
) -> None:
    class Failing(Counted):
        def together(self, others: Sequence[Work]) -> None:
            raise MemoryError(len(others))

    def failing(notes: list[int]) -> Steps[None]:
        yield [Failing(notes, connections)]

    async def main() -> None:
        thinking, notes = thinking_of(Peers(), spec), list[int]()
        async with asyncio.timeout(10):
            runs = [thinking.through(failing(notes), Bill())]
            runs += [thinking.through(failing(notes), Bill())]
            found = await asyncio.gather(*runs, return_exceptions=True)
            assert [type(one) for one in found] == [MemoryError] * 2
            assert await thinking.through(steps(notes, 3, connections), Bill()) == 3
        assert notes == [1, 1, 1]
        await thinking.close()

    clock.run(main())


class Distant:
    """Rows that take a while to come."""

    takes = 0.01

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def read(self, neurons: Sequence[Neuron], known: Known) -> Answer:
        await asyncio.sleep(self.takes)
        return self._rows.read(Question(neurons))


def test_what_follows_a_prompt_is_read_before_its_last_words_are_heard(
    wiki_rows: DeltaRows, parser: Parser, spec: ModelSpec
) -> None:
    distant, profile = Distant(wiki_rows), profile_with(parser, spec)

    async def seconds_to_first_token(prompt: str) -> float:
        thinking = Thinking(RowCache(distant.read, 1 << 24), profile, frequent=no_nouns)
        thought, loop = Thought(prompt, Manner(), thinking), asyncio.get_running_loop()
        began = loop.time()
        await thought.begin()
        assert await thought.next() is not None
        took = loop.time() - began
        await thinking.close()
        return took

    async def main() -> None:
        took = [await seconds_to_first_token(prompt) for prompt in prompts(16, 12)]
        # Two reads: of the words that the parse is sure of, and of the following ones.
        assert took == pytest.approx([2 * distant.takes] * 16)

    clock.run(main())
