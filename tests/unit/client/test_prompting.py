"""An answer from compute peers that may not be there: who is asked again, and what is told."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import cast

import pytest

from giaann_p2p.client.prompting import SwarmAnswer
from giaann_p2p.errors import NobodyComputes, PeerError
from giaann_p2p.model.manner import Manner
from giaann_p2p.net.clock import VirtualLoop
from giaann_p2p.net.errors import Broken, Reason, Refused, TimedOut, Unreachable
from giaann_p2p.net.transport import Transport
from giaann_p2p.swarm.wire import messages
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import decode, encode
from giaann_p2p.swarm.wire.prompt_messages import Ask, Continued, Cost

A, B = (Peer(letter * 32) for letter in (b"A", b"B"))
ANSWER = Continued("", [], [], "end", [], Cost())
NOT_YET = Refused(Reason.FAILED, "this peer answers no calls yet")


class Oracles:
    """Compute peers that fail for a while: `ComputeLoads`, and the transport to them."""

    def __init__(self, fails: PeerError | Message, seconds: float, *peers: Peer) -> None:
        self.asked = 0
        self._fails, self._until = fails, asyncio.get_running_loop().time() + seconds
        self._loads = dict.fromkeys(peers, 0)

    def appear(self, peer: Peer) -> None:
        self._loads[peer] = 0

    def loads(self, now: float) -> Mapping[Peer, int]:
        return self._loads

    async def call(self, peer: Peer, payload: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109
        assert isinstance(decode(payload), Ask)
        self.asked += 1
        if asyncio.get_running_loop().time() >= self._until:
            return encode(ANSWER)
        if isinstance(self._fails, PeerError):
            raise self._fails
        return encode(self._fails)


def play(story: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await story()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


def answer(oracles: Oracles, search: Callable[[], Awaitable[None]] | None = None) -> SwarmAnswer:
    clock = asyncio.get_running_loop().time
    transport = cast(Transport, oracles)
    return SwarmAnswer(transport, oracles, clock, "Bees", Manner(), search=search)


@pytest.mark.parametrize("found", [True, False])
def test_compute_peers_are_looked_for_once_if_none_is_known(found: bool) -> None:
    async def story() -> None:
        oracles, searches = Oracles(NOT_YET, 0.0), []

        async def search() -> None:
            searches.append(None)
            if found:
                oracles.appear(A)

        answering = answer(oracles, search)
        if found:
            assert (await answering.all()).stopped == "end"
        else:
            with pytest.raises(NobodyComputes):
                await answering.all()
        assert len(searches) == 1

    play(story)


def test_nobody_is_looked_for_while_a_compute_peer_is_known() -> None:
    async def story() -> None:
        async def search() -> None:
            raise AssertionError("there was no need")

        assert (await answer(Oracles(NOT_YET, 0.0, A), search).all()).stopped == "end"

    play(story)


@pytest.mark.parametrize("peers", [[A], [A, B]], ids=["one", "two"])
@pytest.mark.parametrize(
    "error",
    [
        NOT_YET,
        Refused(Reason.BUSY, "512 connections are open already"),
        Refused(Reason.LEAVING, "this peer is leaving"),
        Unreachable("the peer cannot be reached"),
        Broken("the stream ended"),
        TimedOut("no answer"),
    ],
    ids=lambda error: f"{type(error).__name__} {getattr(error, 'reason', '')}",
)
def test_peers_that_come_back_in_time_are_asked_again(error: PeerError, peers: list[Peer]) -> None:
    async def story() -> None:
        oracles = Oracles(error, 20.0, *peers)
        answering = answer(oracles)
        assert (await answering.all()).stopped == "end"
        assert asyncio.get_running_loop().time() < 22
        assert oracles.asked < 100

    play(story)


@pytest.mark.parametrize("error", [NOT_YET, Unreachable("nobody")], ids=["refused", "away"])
def test_those_who_stay_away_are_given_up_when_the_patience_ends(error: PeerError) -> None:
    async def story() -> None:
        with pytest.raises(Unreachable, match="no compute peer could continue"):
            await answer(Oracles(error, 100.0, A)).all()
        assert 45 < asyncio.get_running_loop().time() < 48

    play(story)


@pytest.mark.parametrize(
    "refusal",
    [Refused(Reason.TOO_LONG, "9 GB are too long"), messages.Refusal("9 GB are too long")],
    ids=["by the connection", "in an answer"],
)
def test_a_prompt_that_all_refuse_is_given_up_soon(refusal: PeerError | Message) -> None:
    async def story() -> None:
        with pytest.raises(Unreachable, match="the last error: 9 GB are too long;"):
            await answer(Oracles(refusal, 99.0, A, B)).all()
        assert asyncio.get_running_loop().time() < 5

    play(story)
