"""A town in which one of three storage peers tells wrong rows, and somebody who reads there."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import numpy as np
import pytest
from msgspec.structs import replace

from giaann_p2p.model.delta import total
from giaann_p2p.model.rows import Answer, DeltaRows, Neuron, Question, Row
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.reading.reader import RowReader
from giaann_p2p.store.codec import plain
from giaann_p2p.swarm.reading.row_match import same
from giaann_p2p.swarm.reading.row_vote import NOTHING, Verify
from giaann_p2p.swarm.wire.identity import name_of
from giaann_p2p.swarm.wire.messages import decode, encode
from giaann_p2p.swarm.wire.row_messages import Read, Rows
from giaann_p2p.swarm.wire.shardset import packed
from tests.unit.node.helpers import LAYOUT, LESSONS, MANIFEST, Client, House, Town, play

CHUNKS = range(4)
NEURONS = sorted({neuron for chunk in CHUNKS for neuron in LESSONS.neurons(chunk)})
TRUE = DeltaRows(total([LESSONS.delta(chunk) for chunk in CHUNKS]))
NONE = packed(np.array([], np.uint16), LAYOUT.shards)
SALT = b"nobody knows it."


def more(row: Row) -> Row | None:
    return replace(row, count=row.count + 1, strength=row.strength + 5)


def nothing(row: Row) -> Row | None:
    return None


def lie(house: House, change: Callable[[Row], Row | None]) -> None:
    """Have a house tell other rows than it has from now on."""

    def answer(peer: bytes, request: bytes) -> bytes | Awaitable[bytes]:
        question = decode(request)
        if not isinstance(question, Read):
            return house.node.reception.answer(peer, request)
        numbers = (
            np.frombuffer(data, "<u8").tolist() for data in (question.concepts, question.features)
        )
        rows = house.store.read(Question(list(map(Neuron, *numbers))))
        told = [change(row) for row in rows if row and row.count]
        return encode(Rows(plain.encode([row for row in told if row]), NONE))

    house.transport.serve(answer)


async def settled(town: Town, verify: Verify) -> tuple[Client, RowReader]:
    """Return somebody who pushes and somebody who reads; the first house is quickest by far."""
    for _ in range(3):
        town.add()
    client = Client(town)
    await town.until(town.settled)
    await asyncio.sleep(15)  # until the client knows, too
    await client.push_all(CHUNKS)
    await town.until(lambda: town.holds_what(CHUNKS))
    for number, house in enumerate(town.houses):
        for way in ((client.me, house.me), (house.me, client.me)):
            town.network.way(*way).latency = (0.001 + 0.01 * number,) * 2
    others, log = client.lookout.view, logging.getLogger("giaann.test")
    return client, RowReader(
        client.transport, MANIFEST, others, client.clock, verify=verify, log=log
    )


def right(rows: Answer) -> bool:
    return all(map(same, rows, TRUE.read(Question(NEURONS))))


@pytest.mark.parametrize("change", [more, nothing])
def test_unchecked_the_wrong_row_comes_through(change: Callable[[Row], Row | None]) -> None:
    async def story(town: Town) -> None:
        _, reading = await settled(town, NOTHING)
        for _ in range(10):
            assert right(await reading.rows(NEURONS))  # now it knows who is quick
        lie(town.houses[0], change)
        assert not right(await reading.rows(NEURONS))
        await asyncio.sleep(100)
        assert (reading.lies, reading.compared, reading.disputed) == (0, 0, 0)
        await reading.close()

    play(story)


@pytest.mark.parametrize("change", [more, nothing])
def test_put_to_the_vote_only_right_rows_are_returned(
    change: Callable[[Row], Row | None], caplog: pytest.LogCaptureFixture
) -> None:
    async def story(town: Town) -> None:
        _, reading = await settled(town, Verify(1.0))
        liar = town.houses[0]
        lie(liar, change)
        for _ in range(40):
            assert right(await reading.rows(NEURONS))
            await asyncio.sleep(2)
        assert reading.compared >= 40 * 2 * len(NEURONS)
        assert reading.disputed > 0
        assert reading.lies > 0
        words = "wrong rows" if change is more else "less than most other owners know"
        (line, *_) = [record.getMessage() for record in caplog.records]
        assert line.startswith(f"{name_of(liar.me)} returned {words} of shard ")
        assert "nothing is read from it for 60 s" in line
        assert all(name_of(liar.me) in record.getMessage() for record in caplog.records)
        before = reading.compared
        await asyncio.sleep(200)
        assert reading._timer is None
        assert len(reading.calls) == 0
        assert before == reading.compared
        await reading.close()

    with caplog.at_level(logging.WARNING, "giaann.test"):
        play(story)


@pytest.mark.parametrize("verify", [Verify(1.0), Verify(0.9, SALT)])
def test_a_dispute_goes_on_when_nobody_reads(verify: Verify) -> None:
    async def story(town: Town) -> None:
        _, reading = await settled(town, verify)
        await reading.rows(NEURONS)
        lie(town.houses[0], more)
        await reading.rows(NEURONS)
        await asyncio.sleep(0.5)
        await reading.rows(NEURONS[:1])
        await asyncio.sleep(20)
        assert reading.lies > 0
        await asyncio.sleep(60)
        assert reading._timer is None
        await reading.close()

    play(story)


def test_a_sample_finds_who_lies_and_reads_are_right_again() -> None:
    async def story(town: Town) -> None:
        _, reading = await settled(town, Verify(0.05, SALT))
        for _ in range(3):
            assert right(await reading.rows(NEURONS))
        lie(town.houses[0], more)
        wrong = 0
        for _ in range(40):
            wrong += not right(await reading.rows(NEURONS))
            await asyncio.sleep(1)
        assert 0 < wrong < 25
        assert reading.lies > 0
        assert right(await reading.rows(NEURONS))
        await reading.close()

    play(story)


def test_while_all_learn_nobody_is_blamed() -> None:
    async def story(town: Town) -> None:
        client, reading = await settled(town, Verify(1.0))
        town.network.way(client.me, town.houses[2].me).latency = (0.3, 1.5)

        async def read() -> None:
            for _ in range(60):
                await reading.rows(NEURONS[:40])
                await asyncio.sleep(0.1)

        async def learn() -> None:
            for chunk in range(4, 40):
                await client.push(chunk)
                await asyncio.sleep(0.13)

        await asyncio.gather(read(), learn())
        assert reading.disputed > 0
        await asyncio.sleep(100)
        assert reading.lies == 0
        await reading.close()

    play(story)


def test_of_two_that_differ_nobody_is_believed() -> None:
    async def story(town: Town) -> None:
        _, reading = await settled(town, Verify(1.0))
        lie(town.houses[0], more)
        town.freeze(town.houses[1])
        with pytest.raises(Unreachable, match="no majority of the replicas returned the same rows"):
            await reading.rows(NEURONS[:3])
        town.freeze(town.houses[1], frozen=False)
        await asyncio.sleep(3)
        assert all(map(same, await reading.rows(NEURONS[:3]), TRUE.read(Question(NEURONS[:3]))))
        await reading.close()

    play(story)


def test_closing_ends_disputes_as_well() -> None:
    async def story(town: Town) -> None:
        _, reading = await settled(town, Verify(1.0))
        lie(town.houses[0], more)
        for _ in range(10):  # until it knows who is quick
            assert right(await reading.rows(NEURONS))
        assert reading.disputed > 0
        await reading.close()
        await asyncio.sleep(100)
        assert reading.lies == 0

    play(story)
