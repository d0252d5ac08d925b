"""Pushing and reading: enough owners, the quickest answer, and nothing left behind."""

import asyncio
from typing import Any

import pytest

from giaann_p2p.model.rows import DeltaRows, Question, Row
from giaann_p2p.net.clock import VirtualLoop
from giaann_p2p.net.errors import Unreachable
from tests.unit.node.helpers import LESSONS, Client, Town, play, taught


def same(one: Row | None, other: Row | None) -> bool:
    """Tell whether two rows say the same, in whatever order."""
    if one is None or other is None:
        return one is other
    return (one.neuron, one.name, one.count, len(one.target)) == (
        other.neuron,
        other.name,
        other.count,
        len(other.target),
    )


async def settled(town: Town, houses: int = 4) -> Client:
    for _ in range(houses):
        town.add()
    client = Client(town)
    await town.until(town.settled)
    await asyncio.sleep(15)  # until the client knows, too
    return client


def test_what_was_pushed_is_read() -> None:
    async def story(town: Town) -> None:
        client = await settled(town)
        await client.push(5)
        neurons = LESSONS.neurons(5)
        rows = await client.reading.rows(neurons)
        wanted = DeltaRows(LESSONS.delta(5)).read(Question(neurons))
        assert all(map(same, rows, wanted))
        assert await client.reading.rows([]) == []
        assert client.reading._timer is None

    play(story)


def test_a_push_is_over_with_the_quorum_and_the_others_get_theirs_yet() -> None:
    async def story(town: Town) -> None:
        client = await settled(town, 3)
        slow = town.houses[0]
        town.network.way(client.me, slow.me).latency = (1.0, 1.0)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await client.push(1)
        assert loop.time() - begun < 0.5
        assert dict(slow.store.digests()) != taught([1])
        await asyncio.sleep(2)
        assert slow.node.counters.pushed == 1

    play(story)


def test_an_owner_that_is_cut_off_holds_nothing_up_for_more_than_a_moment() -> None:
    async def story(town: Town) -> None:
        client = await settled(town)
        await client.push_all(range(10))
        for chunk in range(10):
            await client.reading.rows(LESSONS.neurons(chunk))
        loop = asyncio.get_running_loop()
        town.freeze(town.houses[0])
        begun = loop.time()
        await client.push(10)
        assert all(await client.reading.rows(LESSONS.neurons(10)))
        assert loop.time() - begun < 1
        town.freeze(town.houses[0], frozen=False)

    play(story)


def test_closing_ends_who_waits() -> None:
    async def story(town: Town) -> None:
        client = await settled(town)
        await client.push(1)
        for house in town.houses:
            town.freeze(house)
        rows = asyncio.ensure_future(client.reading.rows(LESSONS.neurons(1)))
        await asyncio.sleep(0.5)
        await client.reading.close()
        await asyncio.wait({rows}, timeout=1)
        assert rows.cancelled()
        assert len(client.reading.calls) == 0
        for house in town.houses:
            town.freeze(house, frozen=False)

    play(story)


class Bare:
    """A timer that cannot tell when it rings, as uvloop's that are due at once."""

    def __init__(self, timer: asyncio.TimerHandle) -> None:
        self._timer = timer

    def __getattr__(self, name: str) -> object:
        if name == "when":
            raise AttributeError(name)
        return getattr(self._timer, name)


class TerseLoop(VirtualLoop):
    """A loop with such timers."""

    def call_at(self, *arguments: Any, **more: Any) -> Any:  # noqa: ANN401
        return Bare(super().call_at(*arguments, **more))


def test_nobody_asks_a_timer_when_it_rings() -> None:
    async def story(town: Town) -> None:
        client = await settled(town)
        await client.push(1)
        await asyncio.gather(*[client.reading.rows(LESSONS.neurons(1)) for _ in range(3)])

    play(story, loop=TerseLoop)


def test_a_reader_that_stops_waiting_leaves_nothing_that_goes_on_for_ever() -> None:
    async def story(town: Town) -> None:
        client = await settled(town)
        await client.push(1)
        for house in town.houses:
            town.freeze(house)
        rows = asyncio.ensure_future(client.reading.rows(LESSONS.neurons(1)))
        await asyncio.sleep(0.1)
        rows.cancel()
        await asyncio.sleep(60)
        assert len(client.reading) == len(client.reading.calls) == 0
        assert client.reading._timer is None
        for house in town.houses:
            town.freeze(house, frozen=False)

    play(story)


def test_a_reader_that_stops_waiting_asks_nobody_further() -> None:
    async def story(town: Town) -> None:
        client = await settled(town)
        await client.push(1)
        await asyncio.sleep(1)  # until all owners have it
        for house in town.houses:
            town.freeze(house)
        other = asyncio.ensure_future(client.reading.rows(LESSONS.neurons(1)))
        rows = asyncio.ensure_future(client.reading.rows(LESSONS.neurons(1)))
        await asyncio.sleep(0.01)
        assert len(client.reading._reader) == 2
        rows.cancel()
        await asyncio.sleep(0.01)
        assert len(client.reading._reader) == 1  # somebody else waits for the same
        for house in town.houses:
            town.freeze(house, frozen=False)
        assert all(await other)
        assert len(client.reading._reader) == 0

    play(story)


def test_what_nobody_tells_in_time_is_said_to_be_out_of_reach() -> None:
    async def story(town: Town) -> None:
        client = await settled(town)
        await client.push(1)
        for house in town.houses:
            town.freeze(house)
        with pytest.raises(Unreachable, match=r"rows of \d+ shards .* within 15 s"):
            await client.reading.rows(LESSONS.neurons(1))
        for house in town.houses:
            town.freeze(house, frozen=False)

    play(story)


def test_shards_that_moved_are_found_again() -> None:
    async def story(town: Town) -> None:
        client = await settled(town, 3)
        await client.push_all(range(20))
        reads = 0
        for _ in range(2):
            town.add()
            for _ in range(100):
                assert all(await client.reading.rows(LESSONS.neurons(reads % 20)))
                reads += 1
                await asyncio.sleep(0.7)
        town.houses[0].node.leave()
        while not town.houses[0].task.done():
            assert all(await client.reading.rows(LESSONS.neurons(reads % 20)))
            reads += 1
            await asyncio.sleep(0.2)
        await town.houses[0].gone()
        await town.until(lambda: town.settled() and town.holds_what(range(20)))

    play(story)
