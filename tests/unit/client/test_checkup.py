"""Asking all peers for digests: the honest, the slow, and those who say something else."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from giaann_p2p.client.checkup import checked, checked_now
from giaann_p2p.swarm.members.checkup import Report
from giaann_p2p.swarm.members.losses import NONE
from giaann_p2p.swarm.wire.edition import rules_of
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.member_messages import EditionIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    AskDigests,
    Digest,
    Digests,
    Pushed,
    Refusal,
    decode,
    doublings_of,
    encode,
)
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.unit.node.helpers import LAYOUT, MANIFEST, Client, Town, play

COUNT = LAYOUT.shards
SAID = Digest(b"r", bytes(16), bytes(32), 2, 10)
Answer = Callable[[list[int]], Message]


def some(shards: list[int], found: int | None = None, said: Digest = SAID) -> Digests:
    """Return an answer for some shards, with as many digests unless told otherwise."""
    told = packed(np.array(shards, np.uint16), COUNT)
    return Digests(told, [said] * (len(shards) if found is None else found))


class Liar(Client):
    """Somebody who answers questions for digests as a test says."""

    def __init__(self, town: Town, number: int, answer: Answer) -> None:
        super().__init__(town, number)
        self.asked: list[list[int]] = []

        async def handler(peer: Peer, body: bytes) -> bytes:
            question = decode(body)
            assert isinstance(question, AskDigests)
            shards = unpacked(question.shards, COUNT).tolist()
            self.asked.append(shards)
            return encode(answer(shards))

        self.transport.serve(handler)


def honest(town: Town, number: int, at_once: int = COUNT, said: Digest = SAID) -> Liar:
    return Liar(town, number, lambda shards: some(shards[:at_once], said=said))


async def check(town: Town, *peers: Liar) -> Report:
    """Compare what these say, asked by somebody."""
    asker = Client(town)
    return await checked(
        asker.transport, rules_of(MANIFEST, None), [peer.me for peer in peers], 5.0
    )


def test_real_peers_that_learned_the_same_agree() -> None:
    async def story(town: Town) -> None:
        houses = [town.add() for _ in range(3)]
        client = Client(town)
        await town.until(town.settled)
        await client.push_all(range(3))
        await town.until(lambda: town.holds_what(range(3)))
        found = await checked(
            client.transport, rules_of(MANIFEST, None), [house.me for house in houses]
        )
        assert found.agrees
        assert found.under == found.silent == []
        assert found.rows > 0
        assert len(found.digest) == 64
        town.freeze(houses[0])
        found = await checked(
            client.transport, rules_of(MANIFEST, None), [house.me for house in houses], 2.0
        )
        assert found.agrees
        assert found.silent == [houses[0].me]
        assert found.under == list(range(COUNT))
        town.freeze(houses[0], frozen=False)

    play(story)


@pytest.mark.parametrize("at_once", [1, 3, COUNT])
def test_who_tells_of_some_at_a_time_is_asked_for_the_rest(at_once: int) -> None:
    async def story(town: Town) -> None:
        peers = [honest(town, number, at_once) for number in (100, 101, 102)]
        found = await check(town, *peers)
        assert found.agrees
        assert found.rows == 2 * COUNT
        rest = [list(range(first, COUNT)) for first in range(0, COUNT, at_once)]
        assert [peer.asked for peer in peers] == [rest] * 3

    play(story)


@pytest.mark.parametrize(
    "answer",
    [
        lambda shards: Refusal("not now"),
        lambda shards: Pushed(b""),
        lambda shards: some([]),
        lambda shards: some(shards, found=len(shards) - 1),
        lambda shards: some(shards, found=len(shards) + 1),
        lambda shards: some(shards[1:]),
        lambda shards: some(shards[::2]),
        lambda shards: Digests(b"\xff\xff", [SAID]),
        lambda shards: some(shards[:2]) if shards[0] == 0 else Refusal("enough"),
        lambda shards: some(shards[:2]) if shards[0] == 0 else some([0, 1]),
    ],
    ids=[
        "refuses",
        "says something else",
        "says nothing",
        "too few digests",
        "too many digests",
        "not the first",
        "every other",
        "no shards at all",
        "stops half way",
        "says the same again",
    ],
)
def test_liars_count_as_silent_and_for_nothing_else(answer: Answer) -> None:
    async def story(town: Town) -> None:
        liar = Liar(town, 99, answer)
        found = await check(town, honest(town, 100), liar, honest(town, 101))
        assert found.silent == [liar.me]
        assert found.agrees
        assert found.under == list(range(COUNT))
        assert len(liar.asked) <= 2

    play(story)


def test_peers_are_asked_in_the_layout_by_which_they_are_compared() -> None:
    async def story(town: Town) -> None:
        rules, asked = Rules(4 * COUNT, founding_shards=COUNT), list[int]()

        async def handler(peer: Peer, body: bytes) -> bytes:
            question = decode(body)
            assert isinstance(question, AskDigests)
            asked.append(doublings_of(body))
            return encode(Digests(question.shards, [SAID] * 4 * COUNT))

        peer, asker = Client(town, 100), Client(town)
        peer.transport.serve(handler)
        found = await checked(asker.transport, rules, [peer.me], 5.0)
        assert (asked, found.silent, found.rows) == ([2], [], 2 * 4 * COUNT)

    play(story)


def test_peers_are_asked_again_when_they_say_that_shards_have_doubled() -> None:
    async def story(town: Town) -> None:
        doubled, edition = Rules(2 * COUNT, founding_shards=COUNT), EditionIs(b"newer")

        async def handler(peer: Peer, body: bytes) -> bytes:
            question = decode(body)
            assert isinstance(question, AskDigests)
            if not doublings_of(body):
                return encode(edition)
            return encode(Digests(question.shards, [SAID] * 2 * COUNT))

        peer, asker = Client(town, 100), Client(town)
        peer.transport.serve(handler)
        session = SimpleNamespace(
            place=SimpleNamespace(transport=asker.transport),
            around=SimpleNamespace(rules=rules_of(MANIFEST, None)),
            storage_peers=lambda: [peer.me],
            losses=lambda: NONE,
        )

        def heard(answer: object) -> None:
            if answer == edition:
                session.around.rules = doubled

        session.gate = SimpleNamespace(hear=heard)
        found = await checked_now(session)  # type: ignore[arg-type]
        assert (found.silent, found.rows) == ([], 2 * 2 * COUNT)

    play(story)


def test_the_silent_cost_no_more_than_the_time_they_are_given() -> None:
    async def story(town: Town) -> None:
        first, second = honest(town, 100), honest(town, 101)
        for ends in ((first.me, second.me), (second.me, first.me)):
            town.network.way(*ends).blocked = False
        asker = Client(town, 201)
        town.network.freeze(second.me, [asker.me])
        loop = asyncio.get_running_loop()
        begun = loop.time()
        found = await checked(asker.transport, rules_of(MANIFEST, None), [first.me, second.me], 5.0)
        assert 5 <= loop.time() - begun < 10
        assert found.silent == [second.me]
        town.network.freeze(second.me, [asker.me], frozen=False)

    play(story)


def test_one_who_holds_something_else_is_named() -> None:
    async def story(town: Town) -> None:
        other = Digest(b"r", bytes(16), b"\1" * 32, 2, 10)
        odd = honest(town, 102, said=other)
        found = await check(town, honest(town, 100), honest(town, 101), odd)
        assert not found.agrees
        assert [one.peers for one in found.damaged] == [[odd.me]] * COUNT
        assert found.digest == ""

    play(story)


def test_nobody_to_be_asked_is_no_agreement() -> None:
    async def story(town: Town) -> None:
        found = await check(town)
        assert not found.agrees
        assert found.lost == list(range(COUNT))

    play(story)
