"""News of who is revoked, and of the rules: fetched from whoever has them."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from giaann_p2p.net.clock import run
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.members import founder_news
from giaann_p2p.node.members.founder_news import EditionNews, RevokedNews
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.swarm.wire.edition import Edition
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.member_messages import AskEdition, AskRevoked, EditionIs, RevokedIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Refusal, decode, encode
from giaann_p2p.swarm.wire.revoked import Revoked

FOUNDER, ME, A, B = (Identity.from_seed(bytes([number]) * 32) for number in range(1, 5))
CLOSED = Manifest.founded(FOUNDER, "club", admission="token")
FIRST = Revoked(CLOSED.swarm_id).next(FOUNDER, {A.peer})
SECOND = FIRST.next(FOUNDER, {A.peer, B.peer})
EDITION = Edition.signed(FOUNDER, CLOSED.swarm_id, 2, 5).to_bytes()


class Around:
    """What there is: who says that it has which list, and what each answers."""

    def __init__(self, says: dict[Peer, int], answers: dict[Peer, Message]) -> None:
        self.me, self.directory = ME.peer, self
        self.says, self.answers, self.asked = says, answers, list[tuple[Peer, int]]()
        self.view, self.hang = self, 0.0
        self.whole = asyncio.Event()
        self.whole.set()
        self.gate = Gate(CLOSED, self, b"", lambda: 1.8e9)  # type: ignore[arg-type]
        log = logging.getLogger("giaann.test")
        self.revoking = RevokedNews(self.gate, self, self, log)  # type: ignore[arg-type]
        self.editions = EditionNews(self.gate, self, self, log)  # type: ignore[arg-type]

    def time(self) -> float:
        return 1.8e9

    def guard(self, door: object) -> None:
        pass

    def live(self, now: float) -> list[Any]:
        return [SimpleNamespace(peer=peer, revoked=n, edition=n) for peer, n in self.says.items()]

    async def call(self, peer: Peer, body: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109
        question = decode(body)
        assert isinstance(question, AskRevoked | AskEdition)
        self.asked.append((peer, question.number))
        await asyncio.sleep(self.hang)
        if peer not in self.answers:
            raise Unreachable("gone")
        return encode(self.answers[peer])


@pytest.fixture
def second_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let B be asked before all others."""
    monkeypatch.setattr(founder_news, "_turn", lambda me, peer: peer != B.peer)


def test_each_peer_asks_in_an_order_of_its_own() -> None:
    peers = [Peer(bytes([number]) * 32) for number in range(50)]
    first = {min(peers, key=lambda peer, me=me: founder_news._turn(me, peer)) for me in peers}
    assert len(first) > 20


def number_of(around: Around) -> int:
    return around.gate.admission.revoked.number


@pytest.mark.usefixtures("second_first")
def test_the_newest_list_is_fetched_once() -> None:
    async def main() -> None:
        answers = {peer.peer: RevokedIs(SECOND.to_bytes()) for peer in (A, B)}
        around = Around({ME.peer: 9, A.peer: 1, B.peer: 2}, answers)  # type: ignore[arg-type]
        for _ in range(3):
            await around.revoking.look()
        assert (around.asked, number_of(around)) == ([(B.peer, 0)], 2)

    run(main())


@pytest.mark.usefixtures("second_first")
@pytest.mark.parametrize(
    "answer",
    [
        None,
        Refusal("no"),
        RevokedIs(b""),
        RevokedIs(b"rubbish"),
        RevokedIs(Revoked(CLOSED.swarm_id, 7).to_bytes()),
    ],
)
def test_who_has_none_is_left_alone_for_a_while_and_another_is_asked(
    answer: Message | None,
) -> None:
    async def main() -> None:
        answers: dict[Peer, Message] = {A.peer: RevokedIs(FIRST.to_bytes())}
        if answer is not None:
            answers[B.peer] = answer
        around = Around({A.peer: 1, B.peer: 1 << 30}, answers)
        for _ in range(4):
            await around.revoking.look()
        assert around.asked == [(B.peer, 0), (A.peer, 0)]
        assert number_of(around) == 1
        await asyncio.sleep(61)
        await around.revoking.look()
        assert around.asked[2:] == [(B.peer, 1)]

    run(main())


def test_a_new_client_catches_up_among_peers_that_announce_what_they_have_not() -> None:
    async def main() -> None:
        liars = {Peer(bytes([number]) * 32): 1 << 30 for number in range(9)}
        around = Around(liars | {A.peer: 1}, {A.peer: RevokedIs(FIRST.to_bytes())})
        await around.revoking.catch_up()
        assert number_of(around) == 1
        assert {peer for peer, _ in around.asked} == {*liars, A.peer}

    run(main())


def test_a_new_client_does_not_wait_long_for_peers_that_hang() -> None:
    async def main() -> None:
        liars = {Peer(bytes([number]) * 32): 1 << 30 for number in range(9)}
        around = Around(liars, {})
        around.hang = 4.0
        await around.revoking.catch_up()
        assert asyncio.get_running_loop().time() <= 11

    run(main())


def test_it_looks_again_and_again() -> None:
    async def main() -> None:
        around = Around({}, {A.peer: RevokedIs(FIRST.to_bytes())})
        task = asyncio.create_task(around.revoking.run())
        await asyncio.sleep(5)
        assert around.asked == []
        around.says[A.peer] = 1
        await asyncio.sleep(5)
        assert number_of(around) == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


@pytest.mark.usefixtures("second_first")
@pytest.mark.parametrize(
    "answer", [None, Refusal("no"), EditionIs(b""), EditionIs(b"rubbish"), RevokedIs(b"")]
)
def test_a_newer_edition_is_fetched_once_from_who_has_it(answer: Message | None) -> None:
    async def main() -> None:
        answers: dict[Peer, Message] = {A.peer: EditionIs(EDITION)}
        if answer is not None:
            answers[B.peer] = answer
        around = Around({ME.peer: 9, A.peer: 2, B.peer: 1 << 30}, answers)
        for _ in range(4):
            await around.editions.look()
        assert around.asked == [(B.peer, 0), (A.peer, 0)]
        assert around.gate.rules().replicas == 5
        around.says[A.peer] = 1
        await asyncio.sleep(61)
        await around.editions.look()
        assert around.asked[2:] == [(B.peer, 2)]

    run(main())


def test_an_edition_by_which_a_peer_divides_its_shards_is_not_fetched_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def main() -> None:
        shards = 2 * CLOSED.layout.shards
        doubled = Edition.signed(FOUNDER, CLOSED.swarm_id, 2, 5, shards=shards).to_bytes()
        around, done = Around({A.peer: 2}, {A.peer: EditionIs(doubled)}), []
        around.gate.on_division(lambda shards, then: done.append(then))
        for _ in range(3):
            await around.editions.look()
        assert (around.asked, around.gate.rules().edition) == ([(A.peer, 0)], 0)
        done.pop()()
        await around.editions.look()
        assert (len(around.asked), around.gate.rules().edition) == (1, 2)

    run(main())
    assert caplog.messages == ["received edition 2: more shards"]
