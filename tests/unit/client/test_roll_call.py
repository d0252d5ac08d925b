"""Asking peers whether they are there."""

import asyncio

import pytest

from giaann_p2p.client import roll_call
from giaann_p2p.client.roll_call import silent
from giaann_p2p.net.errors import DialPaused, Reason, Refused
from giaann_p2p.swarm.wire.identity import Peer
from tests.unit.node.helpers import Client, Town, identity, play


def test_who_is_there_answers_and_who_hangs_or_is_gone_does_not() -> None:
    async def story(town: Town) -> None:
        houses = [town.add() for _ in range(3)]
        await town.until(town.settled)
        client, ghost = Client(town), identity(77).peer
        peers = [ghost, *[house.me for house in houses]]
        assert await silent(client.transport, peers) == {ghost}
        assert await silent(client.transport, []) == frozenset()
        town.freeze(houses[0])
        await houses[1].die()
        assert await silent(client.transport, peers) == {ghost, houses[0].me, houses[1].me}
        town.freeze(houses[0], frozen=False)
        houses[1].come_back()
        await town.until(town.settled)
        assert await silent(client.transport, peers) == {ghost}

    play(story)


def test_a_peer_that_was_silent_for_a_moment_is_there() -> None:
    async def story(town: Town) -> None:
        house, client = town.add(), Client(town)
        town.freeze(house)
        asyncio.get_running_loop().call_later(3, town.freeze, house, False)
        assert await silent(client.transport, [house.me], 2) == frozenset()

    play(story)


def test_a_refusal_is_an_answer() -> None:
    async def story(town: Town) -> None:
        full, asker = Client(town, 1), Client(town, 2)

        async def refuse(peer: Peer, body: bytes) -> bytes:
            raise Refused(Reason.BUSY, "too many ask")

        full.transport.serve(refuse)
        assert await silent(asker.transport, [full.me]) == frozenset()

    play(story)


def test_only_some_are_asked_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roll_call, "_AT_ONCE", 2)

    async def story(town: Town) -> None:
        asked, most = 0, 0

        async def answer(peer: Peer, body: bytes) -> bytes:
            nonlocal asked, most
            asked += 1
            most = max(most, asked)
            await asyncio.sleep(0.1)
            asked -= 1
            return b"here"

        others = [Client(town, number) for number in range(1, 7)]
        for one in others:
            one.transport.serve(answer)
        asker = Client(town, 9)
        assert await silent(asker.transport, [one.me for one in others]) == frozenset()
        assert most == 2

    play(story)


def test_who_is_not_dialled_again_yet_is_silent_soon_for_who_looks_again() -> None:
    async def story(town: Town) -> None:
        house, client = town.add(), Client(town)
        await town.until(town.settled)
        loop, calls = asyncio.get_running_loop(), 0

        async def paused(peer: Peer, payload: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109
            nonlocal calls
            calls += 1
            raise DialPaused("dial backoff")

        client.transport.call = paused  # type: ignore[method-assign]
        for soon, tries in ((False, 3), (True, 1)):
            began, calls = loop.time(), 0
            assert await silent(client.transport, [house.me], 0.7, soon=soon) == {house.me}
            assert calls == tries
            assert loop.time() - began == pytest.approx((tries - 1) * 0.7)

    play(story)
