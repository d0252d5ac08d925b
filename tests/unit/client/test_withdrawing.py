"""Asking owners for orphans: the honest, one who lies, and those who say nothing of use."""

import asyncio
from collections.abc import Callable, Iterator, Mapping

import pytest

from giaann_p2p.client.withdrawing import asked
from giaann_p2p.swarm.training.orphan_quorum import Agreed
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    BUSY,
    AskOrphans,
    OrphansAre,
    Pushed,
    Refusal,
    decode,
    encode,
)
from giaann_p2p.swarm.wire.withdrawn import Chunk, Part, pages_of, parts_of
from tests.unit.node.helpers import JOB, Client, Town, play

Answer = Callable[[AskOrphans], Message]
LIST = 7
ROOT, OTHER_ROOT = b"r" * 16, b"o" * 16
LIE: Mapping[Chunk, bytes] = {(JOB, 2): ROOT}
OLD: Mapping[Chunk, bytes] = {(JOB, 1): ROOT}


class Owner(Client):
    """Somebody who answers as a test says."""

    def __init__(self, town: Town, number: int, answer: Answer) -> None:
        super().__init__(town, number)
        self.asked: list[tuple[int, int]] = []

        async def handler(peer: bytes, body: bytes) -> bytes:
            question = decode(body)
            assert isinstance(question, AskOrphans)
            self.asked.append((question.number, question.page))
            return encode(answer(question))

        self.transport.serve(handler)


def tells(roots: Mapping[Chunk, bytes], size: int = 100, number: int = LIST) -> Answer:
    pages = pages_of(roots, size)
    return lambda question: OrphansAre(number, len(pages), pages[question.page])


async def ask(town: Town, *answers: Answer, patience: float = 20.0) -> tuple[Agreed, list[Owner]]:
    owners = [Owner(town, 210 + at, answer) for at, answer in enumerate(answers)]
    asker = Client(town)
    peers = [owner.me for owner in owners]
    return await asked(asker.transport, peers, LIST, patience), owners


def test_they_are_told_page_by_page() -> None:
    async def story(town: Town) -> None:
        many = {(JOB, number): ROOT for number in range(25)}
        found, (owner,) = await ask(town, tells(many, size=10))
        assert found == Agreed(many, set(), 0, 1)
        assert owner.asked == [(LIST, 0), (LIST, 1), (LIST, 2)]

    play(story)


def test_who_lies_alone_has_no_honest_chunk_withdrawn_and_keeps_no_lie() -> None:
    async def story(town: Town) -> None:
        for lie in (tells(OLD), tells({}), tells({(JOB, 2): OTHER_ROOT})):
            found, _ = await ask(town, tells(LIE), tells(LIE), lie)
            assert found.roots == LIE
            await asyncio.gather(*(client.close() for client in town.clients))
            town.clients.clear()

    play(story)


def test_who_still_looks_is_asked_again_for_a_while() -> None:
    def looks_first(busy: Iterator[int]) -> Answer:
        told = tells(LIE)
        return lambda question: Refusal(f"{BUSY}: not yet") if next(busy, 0) else told(question)

    async def story(town: Town) -> None:
        answers = [looks_first(iter([1] * times)) for times in (0, 5, 1000)]
        found, owners = await ask(town, *answers)
        assert found == Agreed(dict(LIE), set(), 1, 3)
        assert len(owners[1].asked) == 6
        assert 20 < len(owners[2].asked) <= 41

    play(story)


def test_who_goes_by_a_newer_list_is_asked_from_the_beginning() -> None:
    async def story(town: Town) -> None:
        many = {(JOB, number): ROOT for number in range(25)}
        newer = tells(many, size=10, number=LIST + 1)
        older = tells({**LIE, **OLD}, size=1)

        def changes(question: AskOrphans) -> Message:
            if question.number > LIST:
                return newer(question)
            return older(question) if not question.page else newer(question)

        found, _ = await ask(town, changes)
        assert found.roots == many

    play(story)


GOOD = parts_of(LIE)[0]


@pytest.mark.parametrize(
    "answer",
    [
        Pushed(b""),
        Refusal("no"),
        OrphansAre(LIST, 1, (GOOD, GOOD)),
        OrphansAre(LIST, 1, (Part(JOB, GOOD.numbers * 2, ROOT * 2),)),
        OrphansAre(LIST, 1, (Part(JOB, GOOD.numbers, ROOT * 2),)),
        OrphansAre(LIST, 1000, ()),  # it never ends
    ],
)
def test_who_says_nothing_of_use_counts_as_silent(answer: Message) -> None:
    async def story(town: Town) -> None:
        found, _ = await ask(town, tells(LIE), lambda question: answer, patience=3.0)
        assert found == Agreed({}, set(LIE), 1, 2)

    play(story)


def test_nobody_tells_more_than_a_list_has_room_for() -> None:
    async def story(town: Town) -> None:
        many = {(JOB, number): ROOT for number in range(1 << 16)}
        pages = pages_of(many, 1 << 13)

        def never_ends(question: AskOrphans) -> Message:
            return OrphansAre(LIST, 1000, pages[question.page % len(pages)])

        found, (owner, other) = await ask(town, never_ends, tells(many, size=1 << 13))
        assert found.silent == 1
        assert len(owner.asked) == len(other.asked) == 8

    play(story)
