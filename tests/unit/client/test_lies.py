"""Somebody who looks at columns of a town in which one of three storage peers lies."""

import asyncio
from collections.abc import Awaitable, Callable
from unittest.mock import patch

import numpy as np
import pytest
from msgspec.structs import replace

from giaann_p2p.client.column import Column, column
from giaann_p2p.client.lies import ToldRow
from giaann_p2p.client.session import visit
from giaann_p2p.errors import UsageError
from giaann_p2p.model.delta import total
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.rows import DeltaRows, Question, Row
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.swarm.reading.row_vote import USUAL
from giaann_p2p.swarm.wire.identity import name_of
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.messages import Column as Words
from giaann_p2p.swarm.wire.messages import decode, encode
from giaann_p2p.swarm.wire.row_messages import AskColumn
from peers.compute.options import ComputeOptions
from tests.unit.node.helpers import LAYOUT, LESSONS, Client, House, Town, play
from tests.unit.node.reading.test_reader_lies import lie
from tests.unit.node.training.helpers_compute import Visitor

CHUNKS = range(4)
TRUE = DeltaRows(total([LESSONS.delta(chunk) for chunk in CHUNKS]))
NEURONS = sorted({neuron for chunk in CHUNKS for neuron in LESSONS.neurons(chunk)})
NOUN = next(
    row
    for row in TRUE.read(Question([one for one in NEURONS if one.feature == PRIME]))
    if row and row.count > 1
)
WORDS = sorted(
    (row for row in TRUE.read(Question(NEURONS)) if row and row.neuron.concept == NOUN.neuron[0]),
    key=lambda row: -row.count,
)
SHARD = LAYOUT.shard_of(*NOUN.neuron)


def more(row: Row) -> Row | None:
    return replace(row, count=row.count + 7)


def lie_of_columns(house: House, change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> None:
    """Have a house tell other words of columns than it has."""

    def answer(peer: bytes, request: bytes) -> bytes | Awaitable[bytes]:
        if not isinstance(decode(request), AskColumn):
            return house.node.reception.answer(peer, request)
        known = tuple(row.neuron.feature for row in WORDS)
        return encode(Words(np.array(change(known), "<u8").tobytes()))

    house.transport.serve(answer)


async def settled(town: Town, verify: float) -> Visitor:
    """Return a visitor of a town that has learned something; its first house is the quickest."""
    for _ in range(3):
        town.add()
    client = Client(town)
    await town.until(town.settled)
    visitor = Visitor(town, verify=verify)
    await asyncio.sleep(15)  # until both know, too
    await client.push_all(CHUNKS)
    await town.until(lambda: town.holds_what(CHUNKS))
    for number, house in enumerate(town.houses):
        for way in ((visitor.me, house.me), (house.me, visitor.me)):
            town.network.way(*way).latency = (0.001 + 0.004 * number,) * 2
        visitor.visit.reading._reader.latencies.took(
            house.me, 0.002 + 0.008 * number, visitor.visit.clock()
        )
    return visitor


async def looked_at(visitor: Visitor) -> Column:
    return await column(visitor.visit, NOUN.name.concept, words=len(WORDS))


def is_true(found: Column) -> bool:
    counts = sorted(word.occurrences for word in found.words)
    return found.size == len(WORDS) and counts == sorted(row.count for row in WORDS)


def test_a_visitor_compares_as_much_as_compute_peers_do_unless_told_otherwise() -> None:
    async def story(town: Town) -> None:
        visitor = await settled(town, USUAL)
        assert visitor.visit.verify.share == USUAL == ComputeOptions(join="x").verify
        assert len(visitor.visit.verify.salt) == 16
        other = Visitor(town, 221)
        assert other.visit.verify.share == USUAL
        assert other.visit.verify.salt != visitor.visit.verify.salt
        await other.close()
        await visitor.close()

    play(story)


@pytest.mark.parametrize("change", [more, lambda row: None], ids=["other rows", "none"])
def test_put_to_the_vote_a_column_is_true_and_the_liar_is_named(
    change: Callable[[Row], Row | None],
) -> None:
    async def story(town: Town) -> None:
        visitor = await settled(town, 1.0)
        liar = town.houses[0]
        lie(liar, change)
        assert is_true(await looked_at(visitor))
        assert visitor.visit.lies == []
        assert not await visitor.visit.reading.settled(1.0)
        assert visitor.visit.reading.in_dispute > 0
        assert await visitor.visit.reading.settled(70.0)
        assert visitor.visit.reading.in_dispute == 0
        lies = visitor.visit.lies
        assert {one.peer for one in lies} == {name_of(liar.me)}
        assert {one.concept for one in lies if one.feature} <= {row.name.concept for row in WORDS}
        for one in lies:
            assert one.true is not None
            if change is more:
                assert one.told == ToldRow(one.true.occurrences + 7, one.true.connections)
            else:
                assert one.told is None
            assert one.behind == (change is not more)
        await visitor.close()

    play(story)


def test_a_sample_names_the_liar_but_what_was_read_may_be_wrong() -> None:
    async def story(town: Town) -> None:
        visitor = await settled(town, 0.5)
        lie(town.houses[0], more)
        assert not is_true(await looked_at(visitor))
        assert await visitor.visit.reading.settled(20.0)
        assert {one.peer for one in visitor.visit.lies} == {name_of(town.houses[0].me)}
        assert is_true(await looked_at(visitor))
        await visitor.close()

    play(story)


def test_unverified_nobody_is_found_out() -> None:
    async def story(town: Town) -> None:
        visitor = await settled(town, 0.0)
        lie(town.houses[0], more)
        assert not is_true(await looked_at(visitor))
        assert await visitor.visit.reading.settled(0.1)
        await asyncio.sleep(100)
        assert visitor.visit.lies == []
        await visitor.close()

    play(story)


def test_among_honest_peers_all_is_settled_at_once() -> None:
    async def story(town: Town) -> None:
        visitor = await settled(town, 0.5)
        assert is_true(await looked_at(visitor))
        assert await visitor.visit.reading.settled(0.5)
        assert visitor.visit.reading.compared > 0
        assert visitor.visit.lies == []
        await visitor.close()

    play(story)


CHANGES: dict[str, Callable[[tuple[int, ...]], tuple[int, ...]]] = {
    "none": lambda known: (),
    "some": lambda known: known[:-1],
    "made up": lambda known: (*range(5000, 5100), *known),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("verify", [USUAL, 1.0])
def test_which_words_a_column_has_is_put_to_the_vote_as_well(change: str, verify: float) -> None:
    async def story(town: Town) -> None:
        visitor = await settled(town, verify)
        for house in town.houses:
            if house.me == visitor.visit.around.ready(SHARD, visitor.visit.lookout.time())[0]:
                lie_of_columns(house, CHANGES[change])
        assert is_true(await looked_at(visitor)) == (verify == 1)
        await visitor.close()

    play(story)


def test_too_few_who_answer_are_no_majority() -> None:
    async def story(town: Town) -> None:
        visitor = await settled(town, 1.0)
        for house in town.houses[1:]:
            town.freeze(house)
        with pytest.raises(
            Unreachable, match=r"only 1 of the 3 replicas of shard .* but 2 must agree"
        ):
            await looked_at(visitor)
        for house in town.houses[1:]:
            town.freeze(house, frozen=False)
        assert is_true(await looked_at(visitor))
        await visitor.close()

    play(story)


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_a_share_that_cannot_be_is_told_before_anything_is_begun(share: float) -> None:
    async def story() -> None:
        async with visit(Link(b"x" * 32, ("/ip4/127.0.0.1/tcp/1/p2p/x",)), verify=share):
            pass

    with (
        patch("giaann_p2p.client.session.launched") as launched,
        pytest.raises(UsageError, match="0 to 1"),
    ):
        asyncio.run(story())
    launched.assert_not_called()
