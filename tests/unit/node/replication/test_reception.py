"""Updates that come in: who waits for them, and for how long."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import cast

import pytest

from giaann_p2p.net.clock import VirtualLoop
from giaann_p2p.net.errors import Refused
from giaann_p2p.node.counters import Counters
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.replication.answering import Answering
from giaann_p2p.node.replication.reception import Reception
from giaann_p2p.swarm.wire.actions import Reply
from giaann_p2p.swarm.wire.edition import Editions
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.member_messages import EditionIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    Carried,
    Carry,
    Compare,
    Compared,
    Push,
    Pushed,
    decode,
    encode,
)
from giaann_p2p.swarm.wire.messages import Refusal as Refused_
from giaann_p2p.swarm.wire.row_messages import Read
from tests.unit.node.helpers import FOUNDER, LAYOUT, MANIFEST

PEER = bytes(32)
PATIENCE = 2.0
BODY = encode(Push(bytes(16), 1, b"", b""))


class Desk:
    """A reception, and the tickets that it gave."""

    def __init__(self) -> None:
        self.tickets: list[int] = []
        self.asked, self.at_once, self.carried = list[int | None](), list[int](), 0
        self.fullness, self.differed, self.divides = 0.0, 0, False
        self.compared = Compared(b"", [], [])
        self.alike: Compared | None = None
        self.editions = Editions(MANIFEST)
        self.gate = SimpleNamespace(
            check=lambda *asked: None,
            answer=lambda question: None,
            rules=lambda: self.editions.rules,
            counts_otherwise=lambda peer: EditionIs(b"for " + peer),
        )
        answering = SimpleNamespace(
            at_once=lambda question, doublings: self.at_once.append(doublings),
            alike=lambda question: self.alike,
            to=self._answer,
        )
        self.reception = Reception(
            cast("Gate", self.gate),
            cast("Answering", answering),
            Counters(),
            lambda ticket, sender, question: self.tickets.append(ticket),
            self._carry,
            self._differs,
            lambda: self.fullness,
            lambda: self.divides,
            PATIENCE,
        )
        self.reception.open = True

    async def _answer(
        self, question: Message, peer: bytes, doublings: int | None = None
    ) -> Message:
        self.asked.append(doublings)
        return self.compared

    def _carry(self, sender: Peer, question: Carry) -> Message:
        self.carried += 1
        return Carried()

    def _differs(self, peer: Peer) -> None:
        assert peer == PEER
        self.differed += 1

    async def push(self, peer: bytes = PEER) -> asyncio.Task[bytes]:
        answer = self.reception.answer(peer, BODY)
        assert not isinstance(answer, bytes)
        task = asyncio.ensure_future(answer)
        await asyncio.sleep(0)
        return task


def play(story: Callable[[Desk], Awaitable[None]]) -> None:
    async def main() -> None:
        await story(Desk())

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


def test_an_update_is_wanted_until_it_is_answered() -> None:
    async def story(desk: Desk) -> None:
        one = await desk.push()
        two = await desk.push()
        first, second = desk.tickets
        assert desk.reception.wants(first)
        desk.reception.reply(Reply(first, Pushed(b"")))
        assert not desk.reception.wants(first)
        assert desk.reception.wants(second)
        assert decode(await one) == Pushed(b"")
        assert not desk.reception.wants(first)
        desk.reception.reply(Reply(second, Pushed(b"")))
        await two
        assert repr(desk.reception) == "<Reception: 0 updates wait>"

    play(story)


@pytest.mark.parametrize(
    ("which", "job", "is_told"),
    [
        ([-1, -1], None, False),
        ([-1, 0], None, True),
        ([-2, -1], None, True),
        ([0, 0], bytes(16), False),  # a client that takes a census has no chunks
    ],
)
def test_it_is_told_when_another_holder_has_other_chunks(
    which: list[int], job: bytes | None, is_told: bool
) -> None:
    async def story(desk: Desk) -> None:
        desk.compared = Compared(b"", which, [])
        asked = desk.reception.answer(PEER, encode(Compare(b"", [], job=job)))
        assert not isinstance(asked, bytes)
        assert decode(await asked) == desk.compared
        assert desk.differed == is_told

    play(story)


@pytest.mark.parametrize("divides", [False, True])
def test_a_comparison_without_a_difference_is_answered_at_once(divides: bool) -> None:
    async def story(desk: Desk) -> None:
        desk.alike, desk.divides = Compared(b"r", [-1], []), divides
        answer = desk.reception.answer(PEER, encode(Compare(b"\0", [b""])))
        if divides:
            assert not isinstance(answer, bytes)
            assert decode(await answer) == EditionIs(b"for " + PEER)
        else:
            assert isinstance(answer, bytes)
            assert decode(answer) == desk.alike

    play(story)


def test_nobody_wants_what_has_waited_for_too_long() -> None:
    async def story(desk: Desk) -> None:
        task = await desk.push()
        await asyncio.sleep(3 * PATIENCE)  # its rows are being fetched
        assert desk.reception.wants(*desk.tickets)
        desk.reception.queued(*desk.tickets)
        await asyncio.sleep(PATIENCE - 0.01)
        assert desk.reception.wants(*desk.tickets)
        await asyncio.sleep(0.02)
        assert not desk.reception.wants(*desk.tickets)
        desk.reception.reply(Reply(*desk.tickets, Pushed(b"")))  # it was begun already
        assert decode(await task) == Pushed(b"")
        desk.reception.queued(*desk.tickets)  # and by now it is over
        assert not desk.reception.wants(*desk.tickets)

    play(story)


def test_nobody_wants_what_its_sender_has_given_up() -> None:
    async def story(desk: Desk) -> None:
        task = await desk.push()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert not desk.reception.wants(*desk.tickets)

    play(story)


@pytest.mark.parametrize(
    ("again", "held", "left"), [(0.0, 0.0, 0.0), (0.4, 0.2, 0.2), (9.0, 1.0, 8.0)]
)
def test_a_refusal_is_held_back_for_part_of_the_time_it_names(
    again: float, held: float, left: float
) -> None:
    async def story(desk: Desk) -> None:
        loop = asyncio.get_running_loop()
        task = await desk.push()
        began = loop.time()
        desk.reception.reply(Reply(*desk.tickets, Refused_("too much", again)))
        assert decode(await task) == Refused_("too much", left)
        assert loop.time() - began == pytest.approx(held)

    play(story)


def test_at_the_end_nothing_is_wanted_and_who_waits_is_told() -> None:
    async def story(desk: Desk) -> None:
        task = await desk.push()
        desk.reception.close()
        assert not desk.reception.wants(*desk.tickets)
        with pytest.raises(Refused, match="ended"):
            await task

    play(story)


def test_who_fills_all_the_room_leaves_some_for_others_and_has_less_while_they_wait() -> None:
    async def story(desk: Desk) -> None:
        greedy, modest = bytes(32), b"m" * 32
        desk.fullness = 0.9
        tasks = [await desk.push(greedy) for _ in range(20)]
        desk.fullness = 1.0
        assert isinstance(decode(await (await desk.push(greedy))), Refused_)
        other = await desk.push(modest)  # there is room still
        assert len(desk.tickets) == 21
        desk.fullness = 0.5
        assert isinstance(decode(await (await desk.push(greedy))), Refused_)
        desk.reception.reply(Reply(desk.tickets[-1], Pushed(b"")))
        await other
        tasks.append(await desk.push(greedy))  # alone again
        assert len(desk.tickets) == 22
        for ticket in desk.tickets:
            desk.reception.reply(Reply(ticket, Pushed(b"")))
        await asyncio.gather(*tasks)

    play(story)


@pytest.mark.parametrize("doublings", [0, 2])
@pytest.mark.parametrize(
    "question", [decode(BODY), Carry(bytes(16), 1, b"", b""), Compare(b"", [])], ids=repr
)
def test_who_counts_other_shards_is_told_the_edition(question: Message, doublings: int) -> None:
    async def story(desk: Desk) -> None:
        edition = desk.editions.next(FOUNDER, shards=2 * LAYOUT.shards).to_bytes()
        desk.editions.learn(edition)
        answer = desk.reception.answer(PEER, encode(question, doublings))
        assert not isinstance(answer, bytes)
        assert decode(await answer) == EditionIs(b"for " + PEER)
        assert (desk.tickets, desk.asked, desk.carried) == ([], [], 0)

    play(story)


@pytest.mark.parametrize(
    "question", [decode(BODY), Carry(bytes(16), 1, b"", b""), Compare(b"", [])], ids=repr
)
def test_while_shards_are_divided_only_reads_are_answered(question: Message) -> None:
    async def story(desk: Desk) -> None:
        desk.divides = True
        answer = desk.reception.answer(PEER, encode(question))
        assert not isinstance(answer, bytes)
        assert decode(await answer) == EditionIs(b"for " + PEER)
        assert (desk.tickets, desk.asked, desk.carried) == ([], [], 0)
        read = desk.reception.answer(PEER, encode(Read(b"", b"")))
        assert not isinstance(read, bytes)
        await read
        assert desk.asked == [0]

    play(story)


@pytest.mark.parametrize(
    ("question", "doublings"), [(Compare(b"", []), 1), (Read(b"", b""), 0), (Read(b"", b""), 2)]
)
def test_who_counts_alike_or_reads_is_answered(question: Message, doublings: int) -> None:
    async def story(desk: Desk) -> None:
        desk.editions.learn(desk.editions.next(FOUNDER, shards=2 * LAYOUT.shards).to_bytes())
        answer = desk.reception.answer(PEER, encode(question, doublings))
        assert not isinstance(answer, bytes)
        assert decode(await answer) == desk.compared
        assert desk.at_once == [doublings]
        assert desk.asked == [doublings if isinstance(question, Read) else None]

    play(story)


@pytest.mark.parametrize("is_open", [False, True])
def test_nothing_is_carried_before_the_other_peers_are_known(is_open: bool) -> None:
    async def story(desk: Desk) -> None:
        desk.reception.open = is_open
        answer = desk.reception.answer(PEER, encode(Carry(bytes(16), 1, b"", b"")))
        assert not isinstance(answer, bytes)
        assert isinstance(decode(await answer), Carried if is_open else Refused_)

    play(story)
