"""Peers say of which release they are, and since when they run; some of them refuse, or lie."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec.structs import replace

from giaann_p2p import __version__
from giaann_p2p.client.session import Session
from giaann_p2p.gateway import releases
from giaann_p2p.gateway.releases import Origin, Releases
from giaann_p2p.gateway.shown_peers import Since, peers_now
from giaann_p2p.net.clock import VirtualLoop
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.swarm.members.overview import Overview
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.member_messages import AskRelease, ReleaseIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Refusal, decode, encode
from tests.unit.cli.test_status_shown import STORING
from tests.unit.swarm.members.test_peers_view import NOW, TWO, Seeing, record

KEY = TWO.peer, "storage"


class Asked:
    """A session with one storage peer that gives an answer, and counts the questions."""

    def __init__(self, answer: Message | None) -> None:
        self.answer, self.times = answer, 0
        self.around, self.now = Seeing(), NOW
        self.around.tell(record(TWO))
        self.place = SimpleNamespace(transport=self)

    async def call(self, peer: Peer, body: bytes, **_: float) -> bytes:
        assert (peer, decode(body)) == (TWO.peer, AskRelease())
        self.times += 1
        if self.answer is None:
            raise Unreachable("it is silent")
        return encode(self.answer)


def looked(asked: Asked, *pauses: float) -> list[dict[tuple[Peer, str], Origin]]:
    """Return what is known at a first look, and after each of the pauses."""

    async def main() -> list[dict[tuple[Peer, str], Origin]]:
        known, session = Releases(), cast(Session, asked)
        found = [dict(known.look(session))]
        for pause in pauses:
            await asyncio.sleep(pause)
            found.append(dict(known.look(session)))
        await known.close()
        return found

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())


def test_each_run_of_a_peer_is_asked_once() -> None:
    asked = Asked(ReleaseIs("1.2.3", 60))
    found = looked(asked, 1.0, 100.0, 100.0)
    assert found == [{}, *[{KEY: Origin("1.2.3", int(NOW) - 60)}] * 3]
    assert asked.times == 1


@pytest.mark.parametrize(
    "answer", [None, Refusal("no such message"), ReleaseIs("\x1b[2J", 1)], ids=repr
)
def test_who_does_not_say_is_asked_again_after_a_while(answer: Message | None) -> None:
    asked = Asked(answer)
    assert looked(asked, 1.0, 1.0, releases._AGAIN, 1.0) == [{}] * 5
    assert asked.times == 2


def test_a_peer_that_restarts_is_asked_again() -> None:
    asked = Asked(ReleaseIs("1", 5))

    async def main() -> None:
        known, session = Releases(), cast(Session, asked)
        for incarnation in (1, 2):
            asked.around.tell(record(TWO, incarnation + 1, incarnation=incarnation))
            assert known.look(session) == {}
            await asyncio.sleep(1.0)
            assert list(known.look(session)) == [KEY]
        await known.close()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    assert asked.times == 2


def test_every_peer_tells_members_its_release_and_for_how_long_it_runs() -> None:
    now = NOW
    transport = SimpleNamespace(me=TWO.peer)
    gate = Gate(Manifest.founded(TWO, "town"), cast(Transport, transport), clock=lambda: now)
    now += 61.5
    assert gate.answer(AskRelease()) == ReleaseIs(__version__, 61)


def test_what_a_peer_says_is_shown_and_else_when_it_was_first_seen() -> None:
    around = Seeing()
    around.tell(record(TWO))
    seen = SimpleNamespace(peers=[replace(STORING, peer=TWO.peer)], silent=(), now=NOW)
    found = cast(Overview, seen)
    for origins, told in (({}, (None, int(NOW))), ({KEY: Origin("1.2.3", 7)}, ("1.2.3", 7))):
        (peer,) = peers_now(found, around.directory, Since(), origins).peers
        assert (peer.version, peer.since) == told
