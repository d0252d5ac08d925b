"""The same with a real loop, real threads and a real disk: seldom twice in the same order."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from giaann_p2p.node.options import Options
from giaann_p2p.swarm.replication.settings import Settings
from tests.unit.node.helpers import LESSONS, Client, Town

QUICK = Settings(
    compare_every=0.3,
    hurry_every=0.1,
    word_counts=1.0,
    linger=1.5,
    patience=0.5,
    release_every=1.0,
)
SOON = Options(look_every=0.1, tick=0.1, post_every=0.1, inline_neurons=2)


def play(story: Callable[[Town], Awaitable[None]], directory: Path) -> None:
    async def main() -> None:
        town = Town(0, directory)
        town.settings, town.options = QUICK, SOON
        await story(town)
        await town.close()

    asyncio.run(main())
    assert not [one.name for one in threading.enumerate() if one.name.startswith("giaann")]


@pytest.mark.slow
def test_peers_join_leave_and_end_while_chunks_are_learned_and_read(tmp_path: Path) -> None:
    async def story(town: Town) -> None:
        for _ in range(4):
            town.add()
        await town.until(town.settled)
        client = Client(town)
        pushing = asyncio.create_task(client.push_all(range(80), at_once=8))
        await town.until(lambda: len(client.committed) > 10)
        town.add()
        town.houses[0].node.leave()
        await pushing
        await town.houses[0].gone()
        assert town.houses[0].error is None
        await town.until(lambda: town.settled() and town.holds_what(range(80)))
        await asyncio.sleep(0.5)
        for chunk in range(0, 80, 8):
            assert all(await client.reading.rows(LESSONS.neurons(chunk)))
        await town.houses[1].end()
        town.houses[1].begin()
        await client.push_all(range(80, 100))
        await town.until(lambda: town.settled() and town.holds_what(range(100)))
        assert sum(house.node.counters.repairs for house in town.alive)

    play(story, tmp_path)
