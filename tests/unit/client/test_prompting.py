"""An answer from compute peers that may not be there: who is asked again, and what is told."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from giaann_p2p.client.prompting import ComputePeers, SwarmAnswer, ask
from giaann_p2p.client.session import Session
from giaann_p2p.errors import MessageError, NobodyComputes, PeerError, UsageError
from giaann_p2p.model.manner import MOST_BEAM, MOST_PROMPT, Beam, Manner
from giaann_p2p.model.rows import Name
from giaann_p2p.model.said import Token
from giaann_p2p.model.tier import Tier
from giaann_p2p.net.clock import VirtualLoop
from giaann_p2p.net.errors import Broken, Reason, Refused, TimedOut, Unreachable
from giaann_p2p.net.transport import Transport
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.swarm.members.commands import GENERAL
from giaann_p2p.swarm.wire import messages
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import decode, encode
from giaann_p2p.swarm.wire.prompt_messages import Ask, Continued, Cost
from tests.unit.swarm.members.test_peers_view import NOW, ONE, TWO, Seeing, record

A, B = (Peer(letter * 32) for letter in (b"A", b"B"))
ANSWER = Continued("", [], [], "end", [], Cost())
NOT_YET = Refused(Reason.FAILED, "this peer answers no calls yet")


class Oracles:
    """Compute peers that fail for a while: `ComputeLoads`, and the transport to them."""

    answer = ANSWER

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
            return encode(self.answer)
        if isinstance(self._fails, PeerError):
            raise self._fails
        return encode(self._fails)


def play(story: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await story()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


def answer(
    oracles: Oracles,
    search: Callable[[], Awaitable[None]] | None = None,
    has_rows: Callable[[], bool] = lambda: True,
) -> SwarmAnswer:
    clock = asyncio.get_running_loop().time
    transport = cast(Transport, oracles)
    return SwarmAnswer(
        transport, oracles, clock, "Bees", Manner(), search=search, has_rows=has_rows
    )


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


def test_without_storage_peers_nobody_is_asked_and_the_error_says_what_to_start() -> None:
    async def story() -> None:
        oracles, searches = Oracles(NOT_YET, 0.0, A), list[None]()

        async def search() -> None:
            searches.append(None)

        with pytest.raises(Unreachable) as told:
            await answer(oracles, search, lambda: False).all()
        assert str(told.value) == (
            "no storage peer is in this swarm now, so what it has learned cannot be read; restart"
            " the former ones, each with its original command and data folder, or start one,"
            " here or on any machine, with `giaann storage --join LINK`"
        )
        assert (oracles.asked, len(searches)) == (0, 1)
        assert asyncio.get_running_loop().time() < 1

    play(story)


@pytest.mark.parametrize("comes", [False, True])
def test_storage_peers_are_looked_for_before_a_prompt_is_given_up(comes: bool) -> None:
    async def story() -> None:
        oracles, found = Oracles(NOT_YET, 0.0, A), list[None]()

        async def search() -> None:
            if comes:
                found.append(None)

        answering = answer(oracles, search, lambda: bool(found))
        if comes:
            assert (await answering.all()).stopped == "end"
        else:
            with pytest.raises(Unreachable, match="no storage peer"):
                await answering.all()

    play(story)


def test_there_are_rows_to_read_while_the_directory_has_a_storage_peer() -> None:
    around = Seeing()
    around.tell(record(TWO, role="compute", capacity=0, slots=1))
    peers = ComputePeers(around, lambda: NOW)
    assert list(peers.loads(0.0)) == [TWO.peer]
    assert not peers.has_rows()
    around.tell(record(ONE))
    assert peers.has_rows()
    around.tell(record(ONE, 2, state="left"))
    assert not peers.has_rows()


def test_a_prompt_of_a_session_is_given_up_at_once_without_storage_peers() -> None:
    async def story() -> None:
        around, loop = Seeing(), asyncio.get_running_loop()
        around.tell(record(TWO, role="compute", capacity=0, slots=1))
        found = SimpleNamespace(
            manifest=SimpleNamespace(spec=SPEC),
            lookout=SimpleNamespace(time=lambda: NOW),
            around=around,
            place=SimpleNamespace(transport=Oracles(NOT_YET, 0.0)),
            clock=loop.time,
            commands=GENERAL,
            join_dht=_nothing,
        )
        with pytest.raises(Unreachable, match="no storage peer"):
            await ask(cast(Session, found), "Bees", Manner()).all()

    play(story)


async def _nothing() -> None:
    pass


def test_storage_peers_that_go_meanwhile_are_named_when_the_patience_ends() -> None:
    async def story() -> None:
        oracles, loop = Oracles(Unreachable("nobody"), 100.0, A), asyncio.get_running_loop()
        answering = answer(oracles, has_rows=lambda: loop.time() < 20)
        with pytest.raises(Unreachable, match="no storage peer is in this swarm now"):
            await answering.all()
        assert 45 < loop.time() < 48

    play(story)


@pytest.mark.parametrize(
    "refusal",
    [
        Refused(Reason.TOO_LONG, "9 GB are too long"),
        messages.Refusal("9 GB are too long"),
        Refused(Reason.FAILED, "a message cannot be read: 9 GB are too long"),
    ],
    ids=["by the connection", "in an answer", "by the decoder"],
)
def test_a_prompt_that_all_refuse_is_given_up_soon(refusal: PeerError | Message) -> None:
    async def story() -> None:
        with pytest.raises(Unreachable, match=r"the last error: .*9 GB are too long;"):
            await answer(Oracles(refusal, 99.0, A, B)).all()
        assert asyncio.get_running_loop().time() < 5

    play(story)


def test_the_decoder_says_of_a_prompt_that_is_too_long_that_it_cannot_be_read() -> None:
    question = encode(Ask(bytes(16), "a" * (1 << 17), Manner(), b""))
    with pytest.raises(MessageError, match=f"^{messages.UNREADABLE}: "):
        decode(question)


@pytest.mark.parametrize(
    ("prompt", "manner"),
    [
        ("a" * (MOST_PROMPT + 1), Manner()),
        ("Bees", Manner(beam=Beam(width=MOST_BEAM + 1, depth=1))),
    ],
    ids=["prompt", "beam"],
)
def test_a_prompt_or_beam_that_no_compute_peer_takes_is_refused_at_once(
    prompt: str, manner: Manner
) -> None:
    session = cast(Session, SimpleNamespace(manifest=SimpleNamespace(spec=SPEC)))
    with pytest.raises(
        UsageError, match=r"a compute peer takes at most .*: make it (shorter|smal)"
    ):
        ask(session, prompt, manner)


def test_tokens_that_come_in_one_answer_are_ahead_of_who_reads_them() -> None:
    async def story() -> None:
        oracles = Oracles(NOT_YET, 0.0, A)
        said = [Token(f" {n}", n, Name("bee", n), Tier.EXACT, 1.0, 1, 1.0) for n in "12"]
        oracles.answer = Continued("", [], said, "end", [Cost(), Cost()], Cost())
        found = answer(oracles)
        ahead = [found.is_ahead, *[found.is_ahead async for _ in found]]
        assert ahead == [False, True, True]  # the end has come with the last token
        assert oracles.asked == 1

    play(story)
