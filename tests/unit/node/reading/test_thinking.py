"""Steps of many minds in one loop: one in each turn, and none that waits for ever."""

import asyncio
import random
from collections.abc import Iterator

import pytest

from giaann_p2p.model.rows import BREATH, Answer, Question, Steps
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.net import clock
from giaann_p2p.node.reading.row_cache import Bill, RowCache
from giaann_p2p.node.reading.thinking import Thinking
from tests.unit.node.helpers_prompts import CPU
from tests.unit.node.reading.test_row_cache import N, Peers


def thinking_of(peers: Peers, spec: ModelSpec) -> Thinking:
    return Thinking(RowCache(peers.read, 1 << 20), spec, CPU)


class Turns:
    """Counts the turns of the loop."""

    def __init__(self) -> None:
        self.count = 0
        self._tick()

    def _tick(self) -> None:
        self.count += 1
        asyncio.get_running_loop().call_soon(self._tick)


def steps(notes: list[int], turns: Turns, count: int) -> Steps[int]:
    for _ in range(count):
        notes.append(turns.count)
        yield BREATH
    return count


def test_one_step_a_turn_and_all_come_to_their_end(spec: ModelSpec) -> None:
    async def main() -> None:
        thinking, turns, notes = thinking_of(Peers(), spec), Turns(), list[int]()
        runs = [thinking.through(steps(notes, turns, n), Bill()) for n in (5, 0, 7, 3)]
        assert await asyncio.gather(*runs) == [5, 0, 7, 3]
        assert len(set(notes)) == len(notes) == 15
        await thinking.close()

    clock.run(main())


@pytest.mark.parametrize("seed", range(20))
def test_who_is_cancelled_leaves_its_turn_to_others(spec: ModelSpec, seed: int) -> None:
    chance = random.Random(seed)

    async def main() -> None:
        thinking, turns, notes = thinking_of(Peers(), spec), Turns(), list[int]()
        loop = asyncio.get_running_loop()
        runs = [
            loop.create_task(thinking.through(steps(notes, turns, 20), Bill())) for _ in range(8)
        ]
        for run in runs[:-2]:
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
            run.cancel()
        assert await asyncio.gather(*runs[-2:]) == [20, 20]
        await asyncio.gather(*runs, return_exceptions=True)
        assert await thinking.through(steps(notes, turns, 2), Bill()) == 2
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
    def wrong() -> Steps[None]:
        yield BREATH
        raise ZeroDivisionError

    async def main() -> None:
        thinking, turns = thinking_of(Peers(), spec), Turns()
        runs = [thinking.through(wrong(), Bill()), thinking.through(steps([], turns, 3), Bill())]
        one, other = await asyncio.gather(*runs, return_exceptions=True)
        assert isinstance(one, ZeroDivisionError)
        assert other == 3
        await thinking.close()

    clock.run(main())
