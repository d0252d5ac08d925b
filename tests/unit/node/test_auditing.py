"""A storage peer holds something wrong: the others find it, and one of them takes its place."""

import asyncio
import logging
from dataclasses import replace

import pytest

from giaann_p2p.store.content import Content
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.wire.replica import ReplicaState
from tests.unit.node.helpers import LAYOUT, Client, House, Town, play, taught

CHUNKS = [1, 2, 3]
OFTEN = Settings(audit_every=5.0)


def spoil(store: Store, shard: int) -> None:
    """Let a shard hold something that was never learned, as a failing machine may."""
    held = store.content(shard)
    store.drop([shard])
    store.hold([shard])
    wrong = replace(held.delta, strength=held.delta.strength + 1)
    store.adopt(Content(held.shards, held.applied, wrong))


def fullest(house: House) -> int:
    shards = house.node.core.replicas.all(ReplicaState.READY).tolist()
    return max(shards, key=lambda shard: house.store.content(shard).delta.connections)


def owners(town: Town, shard: int) -> list[House]:
    return [
        house
        for house in town.alive
        if house.node.core.replicas.state(shard) is ReplicaState.READY
        and house.node.core.replicas.wanted(shard)
    ]


def right(town: Town, shard: int) -> list[House]:
    """Return who owns a shard, serves it, and holds what was taught."""
    wanted = taught(CHUNKS)[shard]
    return [one for one in owners(town, shard) if dict(one.store.digests())[shard] == wanted]


@pytest.mark.slow
def test_what_is_wrong_is_found_and_another_peer_takes_its_place(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(town: Town) -> None:
        town.settings = OFTEN
        for _ in range(4):
            town.add()
        client = Client(town)
        await town.until(town.settled)
        await client.push_all(CHUNKS)
        await town.until(lambda: town.holds_what(CHUNKS))
        bad = town.houses[0]
        shard = fullest(bad)
        spoil(bad.store, shard)
        caplog.clear()
        await town.until(lambda: bad not in owners(town, shard))
        await town.until(lambda: len(right(town, shard)) == 3)
        assert bad.node.core.replicas.disputed == [shard]
        (told,) = [one for one in caplog.records if one.levelno == logging.ERROR]
        assert told.name == "giaann.storage.1"
        assert f"--renew {shard}" in told.getMessage()
        named = [one.getMessage() for one in caplog.records if "does not hold" in one.getMessage()]
        assert len(named) == 2  # by both other owners, once each
        assert client.lookout.view.placement(client.clock()).excluded(shard) == {bad.me}

        await bad.end()
        bad.begin()  # with what its disk has: that is wrong as well
        await asyncio.sleep(60)
        assert bad not in owners(town, shard)
        assert len(right(town, shard)) == 3

        await bad.end()
        with Store.open(bad.disk, bad.store.spec, LAYOUT, retain=True) as store:
            store.drop([shard])  # as its owner has it do
        bad.begin()
        await town.until(lambda: len(right(town, shard)) == 3, within=1200)
        await town.until(lambda: not any(h.node.core.auditing.wrong() for h in town.houses), 1200)
        await town.until(town.settled, within=600)
        assert town.holds_what(CHUNKS)

    play(story)


@pytest.mark.slow
def test_a_memory_that_was_spoiled_is_right_again_after_a_restart() -> None:
    async def story(town: Town) -> None:
        town.settings = OFTEN
        for _ in range(4):
            town.add()
        client = Client(town)
        await town.until(town.settled)
        await client.push_all(CHUNKS)
        await town.until(lambda: town.holds_what(CHUNKS))
        bad = town.houses[0]
        shard = fullest(bad)
        disk = bad.disk.crash(town.chance)  # as it is now
        spoil(bad.store, shard)
        await town.until(lambda: bad not in owners(town, shard))
        await bad.end()
        bad.disk = disk
        bad.begin()
        await town.until(lambda: bad in owners(town, shard) and town.settled(), within=1200)
        assert not any(house.node.core.auditing.wrong() for house in town.houses)
        assert town.holds_what(CHUNKS)

    play(story)
