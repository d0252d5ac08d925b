"""A client's directory: other peers are asked for it, or the DHT is joined if none answers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

import pytest

from giaann_p2p.errors import PeerError, UsageError
from giaann_p2p.net.board import Board
from giaann_p2p.net.clock import run
from giaann_p2p.net.errors import Reason, Refused, TimedOut, Unreachable
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.members.asked_board import AskedBoard
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.member_messages import (
    PAGE_BYTES,
    AskManifest,
    AskPulses,
    AskRecords,
    ManifestIs,
    RecordsAre,
)
from giaann_p2p.swarm.wire.messages import Refusal, decode, encode
from giaann_p2p.swarm.wire.pulse import BARE_BYTES
from giaann_p2p.swarm.wire.record import Role

A, B, C = (Peer(letter * 32) for letter in (b"A", b"B", b"C"))
RIGHT = b"right"
BARE = bytes(BARE_BYTES)
Asked = AskRecords | AskPulses
Says = Callable[[Asked], Awaitable[bytes]]


class Peers:
    """Peers that answer as they are told to, and a DHT that is joined when nobody does."""

    def __init__(self, **says: Says) -> None:
        self.says = {Peer(name.encode() * 32): say for name, say in says.items()}
        self.asked: list[Peer] = []
        self.joined = self.left = self.forgotten = 0
        self.hurdle: PeerError | None = None

    async def call(self, peer: Peer, payload: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109
        question = decode(payload)
        assert isinstance(question, Asked)
        self.asked.append(peer)
        return await self.says[peer](question)

    def board(self, *link: Peer) -> AskedBoard:
        return AskedBoard(
            cast(Transport, self),
            link or tuple(self.says),
            lambda record: record.startswith(RIGHT),
            self._joins,
        )

    @asynccontextmanager
    async def _joins(self) -> AsyncIterator[Board]:
        self.joined += 1
        if self.hurdle is not None:
            raise self.hurdle
        yield cast(Board, self)
        self.left += 1

    def forget(self) -> None:
        self.forgotten += 1

    async def look(self, role: Role) -> list[list[bytes]]:
        return [[b"of the DHT: " + role.encode()]]


def saying(*records: bytes, role: Role = "storage") -> Says:
    async def say(question: Asked) -> bytes:
        return encode(RecordsAre(1, [*records] if question.role == role else []))

    return say


async def silent(question: Asked) -> bytes:
    await asyncio.sleep(3)
    raise TimedOut("no answer")


def raising(error: PeerError) -> Says:
    async def say(question: Asked) -> bytes:
        raise error

    return say


def answering(data: bytes) -> Says:
    async def say(question: Asked) -> bytes:
        return data

    return say


async def looks(board: AskedBoard) -> list[list[list[bytes]]]:
    return [await board.look(role) for role in ("storage", "compute")]


def test_the_first_answer_counts_and_serves_the_looks_for_both_roles() -> None:
    async def main() -> None:
        peers = Peers(A=silent, B=saying(RIGHT), C=silent)
        board = peers.board()
        await board.begin()
        assert asyncio.get_running_loop().time() == 0
        asked = len(peers.asked)
        assert await looks(board) == [[[RIGHT]], [[]]]
        assert (len(peers.asked), peers.joined) == (asked, 0)
        await board.close()

    run(main())


def test_later_looks_take_the_answers_of_several_peers() -> None:
    async def main() -> None:
        peers = Peers(A=saying(RIGHT), B=saying(RIGHT + b" B", role="compute"), C=silent)
        board = peers.board(A)
        await board.begin()
        await looks(board)
        board.known = lambda: {B, C}
        stored, computing = await looks(board)
        assert sorted(stored) == [[], [RIGHT]]
        assert sorted(computing) == [[], [RIGHT + b" B"]]
        assert (len({*peers.asked}), peers.joined) == (3, 0)
        await board.close()

    run(main())


def test_looks_soon_after_another_ask_for_pulses() -> None:
    asked: list[type[Asked]] = []

    async def say(question: Asked) -> bytes:
        asked.append(type(question))
        is_brief = isinstance(question, AskPulses)
        return encode(RecordsAre(1, [BARE if is_brief else RIGHT]))

    async def main() -> None:
        board = Peers(A=say).board()
        await board.begin()
        await looks(board)
        for pause in (3, 3, 9.9):
            await asyncio.sleep(pause)
            assert await looks(board) == [[[BARE]], [[BARE]]]
        board.forget()
        assert await looks(board) == [[[RIGHT]], [[RIGHT]]]
        await asyncio.sleep(10)
        assert await looks(board) == [[[RIGHT]], [[RIGHT]]]
        whole, brief = [AskRecords] * 2, [AskPulses] * 2
        assert asked == [*whole, *brief, *brief, *brief, *whole, *whole]
        await board.close()

    run(main())


def test_peers_of_releases_that_know_no_pulses_are_asked_for_records() -> None:
    async def say(question: Asked) -> bytes:
        if isinstance(question, AskPulses):
            raise Refused(Reason.FAILED, "a message cannot be read: invalid value 'pulses?'")
        return encode(RecordsAre(1, [RIGHT]))

    async def main() -> None:
        peers = Peers(A=say)
        board = peers.board()
        await board.begin()
        for _ in range(3):
            assert await looks(board) == [[[RIGHT]], [[RIGHT]]]
        assert not board.in_dht
        await board.close()

    run(main())


@pytest.mark.parametrize("answer", [[], [b"forged"], [b"forged"] * 100 + [BARE]])
def test_an_answer_without_pulses_counts_as_none(answer: list[bytes]) -> None:
    async def main() -> None:
        peers = Peers(A=saying(RIGHT))
        board = peers.board()
        await board.begin()
        await looks(board)
        peers.says[A] = saying(*answer)
        with pytest.raises(Unreachable, match="DHT"):
            await board.look("storage")
        await board.close()

    run(main())


def test_pages_are_asked_for_in_turn() -> None:
    async def say(question: Asked) -> bytes:
        pages = 3 if question.role == "storage" else 1
        return encode(RecordsAre(pages, [RIGHT + bytes([question.page])]))

    async def main() -> None:
        board = Peers(A=say).board()
        await board.begin()
        assert await looks(board) == [
            [[RIGHT + bytes([page]) for page in range(3)]],
            [[RIGHT + b"\0"]],
        ]
        await board.close()

    run(main())


@pytest.mark.parametrize(
    "say",
    [
        silent,
        raising(Unreachable("it is gone")),
        raising(Refused(Reason.FAILED, "a message cannot be read: invalid value 'records?'")),
        answering(encode(Refusal("it does not know the question"))),
        answering(encode(ManifestIs(b"what was not asked for"))),
        answering(encode(AskManifest())),
        answering(b"rubbish"),
        answering(b""),
        answering(encode(RecordsAre(1, [RIGHT + bytes(PAGE_BYTES)]))),
        saying(),
        saying(b"forged"),
        saying(*[b"forged"] * 100, RIGHT),
        saying(BARE),
    ],
)
def test_the_dht_is_joined_if_nobody_answers_what_can_be_used(say: Says) -> None:
    async def main() -> None:
        peers = Peers(A=say, B=say)
        board = peers.board()
        await board.begin()
        assert board.in_dht
        assert await looks(board) == [[[b"of the DHT: storage"]], [[b"of the DHT: compute"]]]
        assert (peers.joined, {*peers.asked}) == (1, {A, B})
        await board.close()
        assert peers.left == 1

    run(main())


def test_the_dht_is_joined_in_the_background_if_later_nobody_answers() -> None:
    async def main() -> None:
        peers = Peers(A=saying(RIGHT))
        board = peers.board()
        await board.begin()
        await looks(board)
        peers.says[A] = raising(Unreachable("it is gone"))
        with pytest.raises(Unreachable, match="DHT"):
            await board.look("storage")
        await board.join_dht()
        assert await board.look("storage") == [[b"of the DHT: storage"]]
        assert peers.joined == 1
        await board.close()
        assert peers.left == 1

    run(main())


def test_it_is_joined_once_and_on_request() -> None:
    async def main() -> None:
        peers = Peers(A=saying(RIGHT))
        board = peers.board()
        await board.begin()
        assert not board.in_dht
        board.forget()
        assert peers.forgotten == 0
        await asyncio.gather(board.join_dht(), board.join_dht())
        await board.join_dht()
        assert (peers.joined, board.in_dht) == (1, True)
        board.forget()
        assert peers.forgotten == 1
        await board.close()

    run(main())


def test_a_dht_that_cannot_be_joined_is_told_and_tried_again() -> None:
    async def main() -> None:
        peers = Peers(A=saying())
        peers.hurdle = Unreachable("p2pd has ended")
        board = peers.board()
        for _ in range(2):
            with pytest.raises(Unreachable, match="p2pd has ended"):
                await board.join_dht()
        peers.hurdle = None
        await board.join_dht()
        assert (peers.joined, board.in_dht) == (3, True)
        await board.close()

    run(main())


def test_a_client_posts_nothing() -> None:
    async def main() -> None:
        with pytest.raises(UsageError, match="client"):
            await Peers(A=silent).board().post("storage", RIGHT, 30.0)

    run(main())


def test_no_answer_can_make_it_ask_for_pages_without_end() -> None:
    asked: list[Asked] = []

    async def say(question: Asked) -> bytes:
        asked.append(question)
        return encode(RecordsAre(8, [RIGHT]))

    async def main() -> None:
        board = Peers(A=say).board()
        await board.begin()
        await board.close()
        assert len(asked) == 16  # eight pages of each role

    run(main())
