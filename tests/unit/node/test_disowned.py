"""Storage peers hear of one who is disowned, and let go of what it taught: each of them, alive."""

import asyncio

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.update import Packed
from giaann_p2p.swarm.actions import Apply
from giaann_p2p.swarm.identity import Identity
from giaann_p2p.swarm.revoked import Revoked
from giaann_p2p.swarm.voucher import sealing
from tests.unit.node.helpers import ALL, JOB, LAYOUT, LESSONS, MANIFEST, Client, House, Town, play

FOUNDER = Identity.from_seed(b"f" * 32)
HONEST, LIAR = 200, 201


def disowned(client: Client) -> bytes:
    return Revoked(MANIFEST.swarm_id).next(FOUNDER, {client.me}, [client.me]).to_bytes()


async def taught(town: Town) -> tuple[Client, Client]:
    """Have a town learn chunk 1 of somebody honest, and chunk 2 of a liar."""
    for _ in range(3):
        town.add()
    honest, liar = Client(town, HONEST), Client(town, LIAR)
    await town.until(town.settled)
    await honest.push(1)
    await liar.push(2)
    await town.until(lambda: town.holds_what([1, 2]))
    return honest, liar


def test_all_hear_of_it_and_what_the_liar_taught_is_gone() -> None:
    async def story(town: Town) -> None:
        _, liar = await taught(town)
        town.houses[0].node.gate.learn(disowned(liar))
        await town.until(lambda: town.holds_what([1]))
        assert all(house.node.keeper.withdrawn for house in town.houses)

    play(story)


def test_who_begins_with_such_a_list_withdraws_what_its_disk_has() -> None:
    async def story(town: Town) -> None:
        _, liar = await taught(town)
        house = town.houses[0]
        await house.die()
        house.begin()
        house.node.gate.recall(disowned(liar))  # before it runs
        await town.until(lambda: dict(house.store.digests()) != {})
        await town.until(lambda: house.node.keeper.withdrawn > 0)
        town.freeze(house, frozen=False)
        for other in town.peers:
            town.network.reset(house.me, other)
        await town.until(lambda: town.holds_what([1]))

    play(story)


def test_nobody_withdraws_by_a_liars_word_what_others_taught() -> None:
    async def story(town: Town) -> None:
        _, liar = await taught(town)
        for house in town.houses:
            house.node.gate.learn(disowned(liar))
        await town.until(lambda: town.holds_what([1]))
        with pytest.raises(UsageError, match="taught by others than those disowned"):
            town.houses[0].node.keeper._vetted(withdrawal(town.houses[0], liar, 1))
        await asyncio.sleep(1)
        assert town.holds_what([1])

    play(story)


def withdrawal(house: House, liar: Client, chunk: int) -> Apply:
    """Return what an owner would bring that helps a liar."""
    tree = LESSONS.tree(chunk)
    seal = sealing([liar.vouched(JOB, chunk, tree.root)], tree)(ALL)
    parcel, limits = LESSONS.parcel(chunk, ALL), house.store.limits
    here = house.store.shards
    return Apply(0, [Packed(JOB, chunk | WITHDRAWN, here, parcel, limits, LAYOUT, ALL, seal)])
