"""Storage peers, alive: they find each other, share the shards out, and stay of one mind."""

import asyncio

import pytest

from tests.unit.node.helpers import Client, Town, play


def test_a_swarm_forms_and_every_shard_is_ready_three_times() -> None:
    async def story(town: Town) -> None:
        for _ in range(5):
            town.add()
        await town.until(town.settled)

    play(story)


@pytest.mark.parametrize("seed", range(3))
def test_chunks_are_learned_while_peers_die_join_and_leave(seed: int) -> None:
    async def story(town: Town) -> None:
        for _ in range(5):
            town.add()
        await town.until(town.settled)
        client = Client(town)
        pushing = asyncio.create_task(client.push_all(range(60), at_once=2))
        await town.until(lambda: len(client.committed) > 10)
        await town.houses[0].die()
        await town.until(lambda: len(client.committed) > 20)
        town.add()
        await town.until(lambda: len(client.committed) > 30)
        town.houses[1].node.leave()
        await pushing
        await town.houses[1].gone()
        assert town.houses[1].error is None
        assert len(town.alive) == 4
        await town.until(lambda: town.settled() and town.holds_what(range(60)))

    play(story, seed=seed)
