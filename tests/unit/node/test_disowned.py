"""Storage peers hear of one who is disowned, tell what it taught, and let go of what is withdrawn:
each of them, alive."""

import asyncio

import pytest

from giaann_p2p.client.withdrawing import asked
from giaann_p2p.errors import MessageError
from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.swarm.members.standing import DAY, Standing
from giaann_p2p.swarm.training.orphan_quorum import Agreed
from giaann_p2p.swarm.wire.actions import Apply
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.messages import Piece
from giaann_p2p.swarm.wire.revoked import Revoked
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.voucher import sealing
from giaann_p2p.swarm.wire.withdrawal_filter import WithdrawalFilter
from giaann_p2p.swarm.wire.withdrawn import Chunk
from tests.unit.node.helpers import ALL, JOB, LAYOUT, LESSONS, MANIFEST, Client, House, Town, play

FOUNDER = Identity.from_seed(b"f" * 32)
HONEST, LIAR, ASKER = 200, 201, 202
HEARD = 1
"""The edition by which somebody is disowned; the next one says which chunks are withdrawn."""


def disowned(client: Client, *chunks: int) -> Revoked:
    """Return a list that disowns somebody; with chunks, the one after it, which withdraws these."""
    first = Revoked(MANIFEST.swarm_id).next(FOUNDER, {client.me}, [client.me])
    if not chunks:
        return first
    return first.next(FOUNDER, {client.me}, [client.me], roots(*chunks))


def roots(*chunks: int) -> dict[Chunk, bytes]:
    return {(JOB, chunk): LESSONS.tree(chunk).root for chunk in chunks}


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


async def forgotten(town: Town) -> None:
    """Wait until nobody remembers anything: these stores keep nothing that was released."""
    await town.until(lambda: not any(house.store.kept() for house in town.alive))


def heard(town: Town, number: int) -> bool:
    return all(house.node.gate.admission.revoked.number == number for house in town.alive)


async def told(town: Town) -> Agreed:
    asker = Client(town, ASKER)
    return await asked(asker.transport, [house.node.me for house in town.houses], HEARD, 30.0)


def test_what_a_liar_taught_is_told_withdrawn_and_gone_from_all() -> None:
    async def story(town: Town) -> None:
        _, liar = await taught(town)
        town.houses[0].node.gate.learn(disowned(liar).to_bytes())
        await town.until(lambda: heard(town, HEARD))
        assert town.holds_what([1, 2])  # what is to go, the next list says
        found = await told(town)
        assert found == Agreed(roots(2), set(), 0, 3)
        town.houses[1].node.gate.learn(disowned(liar, 2).to_bytes())
        await town.until(lambda: town.holds_what([1]))
        assert all(house.node.store_writer.withdrawn for house in town.houses)
        assert (await asked_again(town)).roots == {}

    play(story)


async def asked_again(town: Town) -> Agreed:
    return await asked(
        town.clients[-1].transport, [house.node.me for house in town.houses], HEARD + 1, 30.0
    )


@pytest.mark.parametrize("by", ["author", "time"])
def test_what_the_founder_looks_for_is_told_and_withdrawn(by: str) -> None:
    """Nobody is named, or no more than an author: so it does for a flood under ever new names."""

    async def story(town: Town) -> None:
        honest, liar = await taught(town)
        for house in town.houses:
            around = house.node.lookout.view
            around.standing = Standing(house.me, seen={house.me: 9 * DAY, honest.me: 2 * DAY})
        await town.until(
            lambda: all((JOB, 2) in house.node.core.arrival_log.since(0) for house in town.houses)
        )
        sought = (
            WithdrawalFilter(authors=(liar.me,)) if by == "author" else WithdrawalFilter(since=1)
        )
        first = Revoked(MANIFEST.swarm_id).next(FOUNDER, set(), sought=sought)
        town.houses[0].node.gate.learn(first.to_bytes())
        await town.until(lambda: heard(town, HEARD))
        assert await told(town) == Agreed(roots(2), set(), 0, 3)
        second = first.next(FOUNDER, set(), withdrawn=roots(2))
        town.houses[1].node.gate.learn(second.to_bytes())
        await town.until(lambda: town.holds_what([1]))

    play(story)


def test_a_later_list_does_without_those_before_it() -> None:
    async def story(town: Town) -> None:
        _, liar = await taught(town)
        town.houses[0].node.gate.learn(disowned(liar, 2).to_bytes())
        await town.until(lambda: town.holds_what([1]))

    play(story)


def test_who_begins_with_such_a_list_withdraws_what_its_disk_has() -> None:
    async def story(town: Town) -> None:
        _, liar = await taught(town)
        house = town.houses[0]
        await house.die()
        house.begin()
        house.node.gate.recall(disowned(liar, 2).to_bytes())  # before it runs
        await town.until(lambda: dict(house.store.digests()) != {})
        await town.until(lambda: house.node.store_writer.withdrawn > 0)
        town.freeze(house, frozen=False)
        for other in town.peers:
            town.network.reset(house.me, other)
        await town.until(lambda: town.holds_what([1]))

    play(story)


def test_who_begins_after_a_liar_was_disowned_tells_what_it_taught() -> None:
    async def story(town: Town) -> None:
        _, liar = await taught(town)
        for house in town.houses:
            await house.die()
        for house in town.houses:
            house.come_back()
            house.node.gate.recall(disowned(liar).to_bytes())
        await town.until(town.settled)
        assert (await told(town)).roots == roots(2)

    play(story)


def test_what_nobody_remembers_is_told_by_nobody_and_stays() -> None:
    async def story(town: Town) -> None:
        _, liar = await taught(town)
        await forgotten(town)
        town.houses[0].node.gate.learn(disowned(liar).to_bytes())
        await town.until(lambda: heard(town, HEARD))
        assert await told(town) == Agreed({}, set(), 0, 3)
        assert town.holds_what([1, 2])

    play(story)


def test_nobody_withdraws_by_a_liars_word_what_others_taught_also_when_all_have_forgotten() -> None:
    """An owner helps it: what it signs comes as a withdrawal, as owners give them to each other."""

    async def story(town: Town) -> None:
        _, liar = await taught(town)
        await forgotten(town)
        for number, chunks in enumerate([(), (2,)], HEARD):
            town.houses[0].node.gate.learn(disowned(liar, *chunks).to_bytes())
            await town.until(lambda number=number: heard(town, number))
            with pytest.raises(MessageError, match="chunk 1 is not withdrawn by the founder's"):
                withdrawal(town.houses[0], liar, 1).unpacked()
        with pytest.raises(MessageError, match="chunk 2: the founder's list withdraws another"):
            withdrawal(town.houses[0], liar, 2, delta=1).unpacked()
        for house in town.houses:  # what it did teach, it may give back
            house.store.apply(withdrawal(house, liar, 2).unpacked())
        assert town.holds_what([1])

    play(story)


def withdrawal(house: House, liar: Client, chunk: int, delta: int | None = None) -> Apply:
    """Return what an owner would bring that helps a liar: what another chunk comes to, maybe."""
    lesson = chunk if delta is None else delta
    tree = LESSONS.tree(lesson)
    seal = sealing([liar.pusher.vouched(JOB, chunk, tree.root)], tree)(ALL)
    shards, parcel = packed(ALL, LAYOUT.shards), LESSONS.parcel(lesson, ALL)
    piece = Piece(JOB, chunk | WITHDRAWN, shards, parcel, seal)
    return Apply(0, [house.node.delta_checks.packed(piece, ALL, house.store.shards)])


def test_what_the_disowned_alone_stand_for_is_pushed_no_longer() -> None:
    async def story(town: Town) -> None:
        honest, liar = await taught(town)
        for house in town.houses:
            house.node.gate.learn(disowned(liar).to_bytes())
        honest.pusher.identity = liar.pusher.identity  # it signs in another's name
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10.0):
                await honest.push(3)
        assert town.holds_what([1, 2])

    play(story)
