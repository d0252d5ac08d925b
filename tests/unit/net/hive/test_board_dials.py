"""When a board dials nodes and seeds, and when it need not."""

import asyncio
from math import inf

import pytest
from hivemind.dht.routing import DHTID
from hivemind.p2p import PeerID
from hivemind.p2p.p2p_daemon_bindings.utils import P2PHandlerError

from giaann_p2p.net.hive import guard
from giaann_p2p.net.hive.answer_times import AnswerTimes
from giaann_p2p.net.hive.board import HiveBoard
from giaann_p2p.net.hive.peer_id import libp2p_id
from tests.unit.net.hive.helpers import Place, hosts, until
from tests.unit.net.hive.helpers_board import CLOCK, all_closed, board, record, settled


def noting_dials(one: HiveBoard) -> list[object]:
    """Let a board note whom it dials; return its notes."""
    assert one._guard is not None
    dialled, dial = list[object](), one._guard._dial

    async def noted(peer: object, ways: object) -> None:
        dialled.append(peer)
        await dial(peer, ways)  # type: ignore[arg-type]

    one._guard._dial = noted  # type: ignore[assignment]
    return dialled


@pytest.mark.parametrize(
    ("answered", "reached", "others", "is_alone"),
    [
        (9.0, 29.0, 1, False),
        (11.0, 1.0, 1, True),
        (1.0, 31.0, 1, True),  # answers to other calls do not count for ever
        (1.0, 1.0, 0, True),
    ],
)
def test_seeds_are_not_retried_at_once_while_nodes_answer(
    answered: float, reached: float, others: int, is_alone: bool
) -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(1 + others)]
        one, now = boards[0], asyncio.get_running_loop().time
        await until(lambda: one.nodes == others)
        await settled(*boards)
        assert one._guard is not None
        one._alone.clear()
        one._guard.answered, one._reached = now() - answered, now() - reached
        one._retry()
        assert one._alone.is_set() == is_alone
        await all_closed(*boards)

    hosts(story)


@pytest.mark.parametrize("posts", [False, True])
def test_what_comes_through_and_each_answer_is_noted(posts: bool) -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(2)]
        await until(lambda: all(one.nodes for one in boards))
        await settled(*boards)
        one = boards[0]
        assert one._guard is not None
        one._guard.answered = one._reached = -inf
        if posts:
            await one.post("storage", record(place.hosts[0].identity, CLOCK()), 300)
        else:
            await one.look("storage")
        assert -inf not in (one._guard.answered, one._reached)
        one._retry()
        assert not one._alone.is_set()
        await all_closed(*boards)

    hosts(story)


def test_what_a_node_answers_to_looks_is_noted_but_nothing_else() -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(2)]
        await until(lambda: all(one.nodes for one in boards))
        await settled(*boards)
        one, now = boards[0], asyncio.get_running_loop().time
        other, keys = PeerID(libp2p_id(place.hosts[1].me)), [DHTID.from_bytes(bytes(20))]
        assert one._guard is not None
        answers = one._guard.answers = AnswerTimes(60.0, 60.0, 1)

        async def fails(*_: object) -> None:
            raise P2PHandlerError("gone")

        assert await one._node.protocol.call_ping(other) is not None
        assert not answers.is_slow(place.hosts[1].me, now())
        assert await one._node.protocol.call_find(other, keys) is not None
        assert answers.is_slow(place.hosts[1].me, now())
        call, one._guard._p2p.call_protobuf_handler = one._guard._p2p.call_protobuf_handler, fails
        for _ in range(10):
            assert await one._node.protocol.call_ping(other) is None
        assert answers.is_slow(place.hosts[1].me, now())
        for _ in range(5):
            assert await one._node.protocol.call_find(other, keys) is None
        assert not answers.is_slow(place.hosts[1].me, now())
        one._guard._p2p.call_protobuf_handler = call
        await all_closed(*boards)

    hosts(story)


def test_a_node_that_has_called_lately_is_not_dialled_nor_one_that_is_too_slow() -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(2)]
        await until(lambda: all(one.nodes for one in boards))
        await settled(*boards)
        one, dialled = boards[0], noting_dials(boards[0])
        assert one._guard is not None
        call = one._guard._p2p.call_protobuf_handler

        async def hangs(*_: object) -> None:
            await asyncio.sleep(1000)

        one._guard._met.clear()
        mine, other = (PeerID(libp2p_id(host.me)) for host in place.hosts)
        assert await boards[1]._node.protocol.call_ping(mine) is not None
        assert await one._node.protocol.call_ping(other) is not None
        assert not dialled
        one._guard._met.clear()
        one._guard._p2p.call_protobuf_handler = hangs
        one._node.protocol.wait_timeout = 0.1
        for _ in range(2):
            assert await one._node.protocol.call_ping(other) is None
            assert len(dialled) == 1
        # One that has been silent for long may have another address.
        one._guard._met[place.hosts[1].me] -= guard._SURELY_MET_FOR
        for dials in (1, 2):
            assert await one._node.protocol.call_ping(other) is None
            assert len(dialled) == dials
        one._guard._p2p.call_protobuf_handler = call
        await all_closed(*boards)

    hosts(story)


def test_a_node_that_answered_lately_is_not_dialled_and_one_that_did_not_is() -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(2)]
        await until(lambda: all(one.nodes for one in boards))
        await settled(*boards)
        one, dialled = boards[0], noting_dials(boards[0])
        assert one._guard is not None
        call = one._guard._p2p.call_protobuf_handler

        async def fails(*_: object) -> None:
            raise P2PHandlerError("gone")

        one._guard._met.clear()
        other = PeerID(libp2p_id(place.hosts[1].me))
        for _ in range(2):
            assert await one._node.protocol.call_ping(other) is not None
            assert len(dialled) == 1
        one._guard._p2p.call_protobuf_handler = fails
        assert await one._node.protocol.call_ping(other) is None
        one._guard._p2p.call_protobuf_handler = call
        assert await one._node.protocol.call_ping(other) is not None
        assert len(dialled) == 2
        await all_closed(*boards)

    hosts(story)
