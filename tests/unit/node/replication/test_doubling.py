"""Storage peers divide their shards while chunks are pushed and rows are read."""

import asyncio
import logging
from collections.abc import Callable

import numpy as np
import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.replication.retract import Withdraw
from giaann_p2p.swarm.replication.shard_fingerprint import ShardFingerprints
from giaann_p2p.swarm.wire.actions import Call, Drop, Hold, TakeFingerprints
from giaann_p2p.swarm.wire.division import DIVIDING
from giaann_p2p.swarm.wire.edition import Editions
from giaann_p2p.swarm.wire.member_messages import EditionIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    AskDigests,
    Carried,
    Carry,
    FetchCarried,
    Pushed,
    PushFrom,
    Refusal,
    decode,
    encode,
)
from giaann_p2p.swarm.wire.orphans import Orphans
from giaann_p2p.swarm.wire.replica import ReplicaState, Turn
from giaann_p2p.swarm.wire.shardset import packed
from tests.unit.node.helpers import (
    ALL,
    FOUNDER,
    JOB,
    LAYOUT,
    LESSONS,
    MANIFEST,
    SHARDS_OF_ALL,
    Client,
    House,
    SlowLoop,
    Town,
    lesson,
    play,
    taught,
)

FIRST = LAYOUT.shards
SOON = 1.0
"""Seconds within which each read is answered."""


class Founder:
    """Signs editions with more shards."""

    def __init__(self) -> None:
        self.editions = Editions(MANIFEST)

    def double(self, shards: int = 2 * FIRST) -> bytes:
        edition = self.editions.next(FOUNDER, shards=shards).to_bytes()
        self.editions.learn(edition)
        return edition


def counts(house: House) -> int:
    """Return how many shards a peer's decisions count."""
    return house.node.core.replicas.shards


async def read_on(client: Client, chunks: range, until: asyncio.Event) -> int:
    """Read rows that were learned, again and again, each time soon; return how often."""
    loop, times = asyncio.get_running_loop(), 0
    neurons = sorted({neuron for chunk in chunks for neuron in LESSONS.neurons(chunk)})
    while not until.is_set():
        begun = loop.time()
        rows = await client.reading.rows(neurons[times % 7 :: 7])
        assert all(row is not None and row.count for row in rows)
        assert loop.time() - begun < SOON
        times += 1
        await asyncio.sleep(0.01)
    return times


async def push_on(client: Client, first: int, until: asyncio.Event) -> range:
    """Push chunks, some in every moment; return which were pushed, and all before the first."""
    chunk = first
    async with asyncio.TaskGroup() as group:
        while not until.is_set():
            group.create_task(client.push(chunk))
            chunk += 1
            await asyncio.sleep(0.05)
    return range(chunk)


async def agreed(town: Town, chunks: range, shards: int) -> None:
    """Return when all peers count so many shards, and have exactly what some chunks come to."""

    def holds() -> bool:
        alike = all(counts(house) == shards for house in town.alive)
        return alike and town.settled() and town.holds_what(chunks)

    await town.until(holds, every=4.0)
    assert all(house.error is None for house in town.houses)
    assert all(house.store.layout.shards == shards for house in town.alive)


async def formed(town: Town, *chunks: int) -> Client:
    """Return a client of three peers that have learned some chunks."""
    for _ in range(3):
        town.add()
    await town.until(town.settled)
    client = Client(town)
    await client.push_all(chunks)
    return client


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_shards_are_divided_while_chunks_are_pushed_and_rows_are_read(seed: int) -> None:
    async def story(town: Town) -> None:
        client, founder, over = await formed(town, *range(10)), Founder(), asyncio.Event()
        reading = asyncio.create_task(read_on(client, range(10), over))
        pushing = asyncio.create_task(push_on(client, 10, over))
        for shards in (2 * FIRST, 8 * FIRST):
            await asyncio.sleep(1.5)
            edition = founder.double(shards)
            learn = [town.houses[seed % 3].node.gate.learn_edition, client.editions.learn]
            for one in learn[:: -1 if seed % 2 else 1]:  # a client may be the first
                one(edition)
                await asyncio.sleep(town.chance.random())
            await town.until(lambda n=shards: all(counts(house) == n for house in town.houses))
        over.set()
        pushed = await pushing
        assert len(pushed) > 50
        assert await reading > 50
        await agreed(town, pushed, 8 * FIRST)

    play(story, seed=seed, loop=SlowLoop)


@pytest.mark.parametrize("is_divided", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_a_peer_killed_while_it_divides_its_shards_comes_back(seed: int, is_divided: bool) -> None:
    async def story(town: Town) -> None:
        client, founder, victim = await formed(town, *range(8)), Founder(), town.houses[1]
        edition = founder.double()
        victim.node.gate.learn_edition(edition)
        if is_divided:
            await town.until(lambda: victim.store.layout.shards > FIRST, every=0.001)
        assert (counts(victim), victim.edition) == (FIRST, edition)
        await victim.die()
        town.houses[0].node.gate.learn_edition(edition)
        client.editions.learn(edition)
        await client.push_all(range(8, 16))
        victim.come_back()
        assert counts(victim) == victim.store.layout.shards == 2 * FIRST
        await agreed(town, range(16), 2 * FIRST)

    play(story, seed=seed, loop=SlowLoop)


def test_a_peer_that_was_away_during_two_doublings_catches_up() -> None:
    async def story(town: Town) -> None:
        client, founder, absent = await formed(town, *range(8)), Founder(), town.houses[2]
        await absent.die()
        for shards, chunks in ((2 * FIRST, range(8, 16)), (8 * FIRST, range(16, 24))):
            edition = founder.double(shards)
            town.houses[0].node.gate.learn_edition(edition)
            client.editions.learn(edition)
            await client.push_all(chunks)
        absent.come_back()
        assert counts(absent) == FIRST
        await agreed(town, range(24), 8 * FIRST)

    play(story)


def test_a_peer_whose_store_is_ahead_of_its_edition_says_what_to_do() -> None:
    async def story(town: Town) -> None:
        house = (await formed(town)).town.houses[0]
        house.node.gate.learn_edition(Founder().double())
        await town.until(lambda: all(counts(house) == 2 * FIRST for house in town.houses))
        await house.die()
        house.edition = b""
        with pytest.raises(UsageError, match="Copy that file from the data folder of another peer"):
            house.come_back()
        await house.transport.close()
        house.edition = town.houses[1].edition  # that of another peer
        house.come_back()
        await town.until(town.settled)

    play(story)


def test_a_peer_that_begins_after_a_doubling_has_as_many_shards(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def story(town: Town) -> None:
        client, founder = await formed(town, *range(4)), Founder()
        edition = founder.double()
        for house in town.houses:
            house.node.gate.learn_edition(edition)
        client.editions.learn(edition)
        new = town.add()
        assert counts(new) == FIRST  # it has heard of no edition yet
        await agreed(town, range(4), 2 * FIRST)
        assert len(new.store.shards) > 0

    play(story)
    told = [one.message for one in caplog.records if one.name == "giaann.storage.1"]
    assert "dividing the shards: the swarm gets 32 of them" in told
    assert "divided the shards: 32 of 32 are here" in told


# What was decided before the shards were divided.


def test_a_push_that_waits_for_the_disk_is_to_be_pushed_again_in_the_new_shards() -> None:
    async def story(town: Town) -> None:
        client, house = await formed(town), town.houses[0]
        push = encode(client.pushed(1))
        asked = asyncio.ensure_future(client.transport.call(house.me, push, timeout=60))
        await town.until(lambda: len(house.node.store_writer) > 0, every=0.001)
        ahead = asyncio.ensure_future(
            client.transport.call(house.me, encode(client.pushed(2)), timeout=60)
        )
        await town.until(lambda: len(house.node.store_writer) > 1, every=0.001)
        house.node.gate.learn_edition(Founder().double())
        assert isinstance(decode(await asked), Pushed)  # it was being written
        assert decode(await ahead) == DIVIDING
        assert list(house.store.sets([0])[0].of(JOB)) == [1]
        assert len(house.node.store_writer) == 0
        (purse,) = {*house.node.core.budget._authors.values()}
        assert purse.sentences.level(0.0) > purse.sentences.most - 64  # not what was reserved

    play(story, loop=SlowLoop)


@pytest.mark.parametrize("is_carried", [True, False])
def test_a_push_whose_rows_are_being_fetched_is_answered_after_a_doubling(is_carried: bool) -> None:
    async def story(town: Town) -> None:
        client, (house, courier, _) = await formed(town), town.houses
        push, may_go_on = client.pushed(1), asyncio.Event()
        carry = Carry(JOB, 1, SHARDS_OF_ALL, push.parcel, push.seal)
        if is_carried:
            said = await client.transport.call(courier.me, encode(carry), timeout=60)
            assert isinstance(decode(said), Carried)
        answer = courier.node.answering.to

        async def slowly(question: Message, peer: bytes, doublings: int | None = None) -> Message:
            found = await answer(question, peer)
            if isinstance(question, FetchCarried):
                await may_go_on.wait()
            return found

        courier.node.answering.to = slowly  # type: ignore[method-assign]
        vouchers = push.seal.words
        question = encode(PushFrom(JOB, 1, SHARDS_OF_ALL, courier.me, vouchers))
        asked = asyncio.ensure_future(client.transport.call(house.me, question, timeout=60))
        await town.until(lambda: bool(house.node.core._pushes._fetching), every=0.001)
        house.node.gate.learn_edition(Founder().double())
        await town.until(lambda: counts(house) == 2 * FIRST, every=0.001)
        may_go_on.set()
        said = decode(await asked)
        assert isinstance(said, Refusal)
        assert said == DIVIDING if is_carried else said.is_of_source
        assert not house.store.sets([0])[0].of(JOB)

    play(story, loop=SlowLoop)


def test_what_a_past_core_asks_itself_it_is_not_answered() -> None:
    async def story(town: Town) -> None:
        node, answers = town.add().node, list[tuple[object, int, Message | None]]()
        await town.until(lambda: node.ready)
        node._answered = lambda *answer: answers.append(answer)  # type: ignore[method-assign]
        past = node.core
        node.gate.learn_edition(Founder().double())
        await town.until(lambda: node.core is not past)
        await node._ask_itself(past, Call(7, node.me, AskDigests(SHARDS_OF_ALL), 2.0))
        assert answers == [(past, 7, DIVIDING)]

    play(story)


@pytest.mark.parametrize("is_held", [True, False])
def test_a_shard_that_was_to_be_held_or_dropped_is_so_after_a_doubling(
    is_held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(town: Town) -> None:
        house, done = town.add(), list[tuple[str, list[int]]]()
        await town.until(lambda: house.node.ready)
        replicas = house.node.core.replicas
        replicas._turn(3, Turn.UNWANTED, 0.0)
        replicas.covered(3, 0.0)
        if is_held:
            house.store.drop([3])
            replicas.offer(3, 0.0)
        for name, change in (("hold", house.store.hold), ("drop", house.store.drop)):

            def do(shards: list[int], name: str = name, change: Callable = change) -> None:
                done.append((name, shards))
                change(shards)

            monkeypatch.setattr(house.store, name, do)
        house.node._do([Hold(ALL[3:4]) if is_held else Drop(ALL[3:4])])
        house.node.gate.learn_edition(Founder().double())
        await house.node.store_writer.idle()
        assert done == [("hold" if is_held else "drop", [3, 3 + FIRST])]

    play(story, loop=SlowLoop)


@pytest.mark.parametrize("is_waiting", [True, False])
def test_a_search_for_what_is_withdrawn_begins_anew(is_waiting: bool) -> None:
    async def story(town: Town) -> None:
        node, begun = town.add().node, list[int]()
        await town.until(lambda: node.ready)
        node._withdraw = lambda: begun.append(counts(town.houses[0]))  # type: ignore[method-assign]
        node.gate.learn_edition(Founder().double())
        if is_waiting:
            node.store_writer.do(Withdraw(node.gate.admission, 1, Orphans()))
        await town.until(lambda: counts(town.houses[0]) == 2 * FIRST)
        assert begun == ([2 * FIRST] if is_waiting else [])

    play(story, loop=SlowLoop)


def test_fingerprints_of_shards_that_were_divided_meanwhile_are_none() -> None:
    async def story(town: Town) -> None:
        node, told = town.add().node, list[list[int]]()
        await town.until(lambda: node.ready)

        def weighed(number: int, weights: ShardFingerprints, now: float) -> list[object]:
            told.append([*weights])
            return []

        node.core.weighed = weighed  # type: ignore[method-assign,assignment]
        action = TakeFingerprints(1, ALL[:2], bytes(16))
        await node._weigh(node.core, action)
        assert told == [[0, 1]]
        weighing = asyncio.ensure_future(node._weigh(node.core, action))
        await asyncio.sleep(0.01)
        town.houses[0].store.double(2 * FIRST)
        await weighing
        assert told == [[0, 1]]

    play(story, loop=SlowLoop)


def test_between_the_stores_doubling_and_the_decisions_a_peer_announces_what_it_counts() -> None:
    """Also its cold copies, which are those of twice as many shards already."""

    async def story(town: Town) -> None:
        house = (await formed(town, 1)).town.houses[0]
        for shard in range(FIRST):
            house.store.cool(shard, 0.0)
        house.node._holdings.look()
        house.node.gate.learn_edition(Founder().double())
        await town.until(lambda: house.store.layout.shards > FIRST, every=0.001)
        assert counts(house) == FIRST
        assert house.node.core.announcement().cold.tolist() == ALL.tolist()
        assert house.node._record(said_by(house)).counted == 0
        house.node._do(house.node.core.tick(house.node._clock()))
        await town.until(lambda: counts(house) > FIRST, every=0.001)
        every = np.arange(2 * FIRST)
        assert house.node.core.announcement().cold.tolist() == every.tolist()
        assert house.node._record(said_by(house)).counted == 2 * FIRST
        assert house.node.core.replicas.all(ReplicaState.READY).tolist() == every.tolist()

    play(story, loop=SlowLoop)


def said_by(house: House) -> object:
    return house.node.member.presence._draft(0.0)  # type: ignore[union-attr]


def test_what_was_known_of_shards_is_known_of_their_parts_to_who_comes_back() -> None:
    async def story(town: Town) -> None:
        house = town.add()
        await town.until(town.settled)
        house.store.apply([lesson(1, house.store.limits)])
        house.node._holdings.look()
        house.node.core._loss_watch._looked_at = 0.0
        house.node.core.tick(house.node._clock())
        assert [*house.node.core.known.of()] == ALL.tolist()
        house.store.note("known", house.node.core.known.packed())
        house.node.gate.learn_edition(Founder().double())
        await house.die()
        house.come_back()
        assert sorted(house.node.core.known.of()) == list(range(2 * FIRST))
        assert dict(house.store.digests()) == taught([1], 2 * FIRST)

    play(story, loop=SlowLoop)


def test_a_peer_that_is_dividing_its_shards_tells_the_edition_and_measures_no_room() -> None:
    async def story(town: Town) -> None:
        client, founder = await formed(town, *range(3)), Founder()
        node, edition, looks = town.houses[0].node, founder.double(), list[int]()
        node.room.look = lambda used, now: looks.append(used)  # type: ignore[method-assign]
        node.gate.learn_edition(edition)
        await town.until(lambda: node.store_writer.is_dividing, every=0.001)
        looks.clear()
        node._count()
        assert looks == []
        question = encode(AskDigests(packed(np.arange(FIRST, dtype=np.uint16), FIRST)))
        answer = await client.transport.call(node.me, question, timeout=5.0)
        assert decode(answer) == EditionIs(edition)
        await town.until(lambda: not node.store_writer.is_dividing)
        node._count()
        assert looks

    play(story, loop=SlowLoop)
