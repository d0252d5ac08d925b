"""A board that real hosts keep together."""

import asyncio
import os
import signal
from functools import partial
from typing import Any

import pytest
from hivemind.dht.routing import DHTID
from hivemind.p2p import PeerID
from hivemind.p2p.p2p_daemon_bindings.utils import P2PHandlerError
from hivemind.proto import dht_pb2

from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.hive.board import _WITHIN, HiveBoard
from giaann_p2p.net.hive.peer_id import libp2p_id, libp2p_name
from giaann_p2p.net.hive.shelf import node_key
from giaann_p2p.node.options import Options
from giaann_p2p.swarm.wire.identity import Identity
from tests.unit.net.hive.helpers import Place, echo, hosts, random_bytes, stop, until
from tests.unit.net.hive.helpers_board import (
    CLOCK,
    SWARM,
    all_closed,
    all_of,
    board,
    flat,
    record,
    settled,
)

pytestmark = pytest.mark.usefixtures("patient")


def test_what_one_leaves_all_find() -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(3)]
        await until(lambda: all(one.nodes == 2 for one in boards))
        left = []
        for one, host in zip(boards, place.hosts, strict=True):
            left.append(record(host.identity, CLOCK()))
            await one.post("storage", left[-1], 300)
        for one in boards:
            assert flat(await one.look("storage")) == sorted(left)
            assert await one.look("compute") == []
            assert sorted(one.held("storage")) == sorted(left)
            assert one.held("compute") == []
        newer = record(place.hosts[0].identity, CLOCK(), later=10)
        await boards[0].post("storage", newer, 300)
        assert all(newer in one.held("storage") for one in boards)
        assert flat(await boards[1].look("storage")) == sorted([newer, *left[1:]])
        assert "2 nodes known" in repr(boards[2])
        await all_closed(*boards)

    hosts(story)


def test_nodes_that_know_the_first_one_alone_dial_each_other() -> None:
    """p2pd has no DHT to find the others' addresses in: the first one tells them."""

    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(3)]
        await until(lambda: all(one.nodes == 2 for one in boards))
        second, third = place.hosts[1:]
        assert third.me in await second.control.peers()
        assert boards[1]._ways.of(third.me) == [third.addresses[0].partition("/p2p/")[0]]
        await all_closed(*boards)

    hosts(story)


def test_joining_is_tried_again_whatever_went_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    join, failed = HiveBoard._join, set[int]()

    async def failing(one: HiveBoard, alone: int) -> None:
        if id(one) not in failed:
            failed.add(id(one))
            raise ValueError("no node")
        await join(one, alone)

    async def story(place: Place) -> None:
        monkeypatch.setattr(HiveBoard, "_join", failing)
        boards = [await board(place) for _ in range(2)]
        await until(lambda: all(one.nodes == 1 for one in boards))
        assert len(failed) == 2
        await all_closed(*boards)

    hosts(story)


def test_who_is_alone_is_told_and_a_first_node_finds_nothing() -> None:
    async def story(place: Place) -> None:
        first = await board(place)
        mine = record(place.hosts[0].identity, CLOCK())
        for _ in range(2):
            with pytest.raises(Unreachable, match="no other peer is known yet; peers that join"):
                await first.look("storage")
            with pytest.raises(Unreachable, match="no other node took the record"):
                await first.post("storage", mine, 300)
        second = await board(place)
        await until(lambda: second.nodes > 0)
        assert await second.look("compute") == []
        assert flat(await second.look("storage")) == [mine]  # it has kept its own
        with pytest.raises(Unreachable, match="no node would take this record"):
            await second.post("storage", mine, 300)
        await all_closed(first, second)

    hosts(story)


def test_seeds_that_come_later_are_found() -> None:
    async def story(place: Place) -> None:
        ghost = Identity.from_seed(bytes(32)).peer
        addresses = [f"/ip4/127.0.0.1/tcp/9/p2p/{libp2p_name(ghost)}", "nonsense"]
        late = await board(place, seeds=lambda: tuple(addresses))
        with pytest.raises(Unreachable):
            await late.look("storage")
        first = await board(place)
        addresses += place.hosts[1].addresses
        await until(lambda: late.nodes == 1)
        assert await late.look("storage") == []
        await all_closed(first, late)

    hosts(story)


def test_clocks_an_hour_apart_do_no_harm() -> None:
    async def story(place: Place) -> None:
        offsets = (-1700.0, 0.0, 1700.0)
        boards = [await board(place, ahead=ahead) for ahead in offsets]
        await until(lambda: all(one.nodes for one in boards))
        left = []
        for one, host, ahead in zip(boards, place.hosts, offsets, strict=True):
            left.append(record(host.identity, CLOCK() + ahead))
            await one.post("storage", left[-1], 300)
        for one in boards:
            assert flat(await one.look("storage")) == sorted(left)
        await all_closed(*boards)

    hosts(story)


@pytest.mark.parametrize("victim", [0, 1])
def test_the_board_is_joined_again_when_p2pd_was_started_again(victim: int) -> None:
    async def story(place: Place) -> None:
        # The seed has seeds of its own: it would wait to be asked otherwise.
        boards = [await board(place, seeds=partial(all_of, place)) for _ in range(2)]
        await until(lambda: all(one.nodes for one in boards))
        os.kill(place.note(place.hosts[victim]), signal.SIGKILL)
        host, one = place.hosts[victim], boards[victim]
        await until(lambda: host.deaths > 0 and host.is_up and one.nodes > 0)
        mine = record(host.identity, CLOCK())
        await one.post("storage", mine, 300)
        assert mine in flat(await boards[1 - victim].look("storage"))
        await all_closed(*boards)

    hosts(story)


def test_a_node_that_is_stopped_holds_nobody_up_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(3)]
        await until(lambda: all(one.nodes == 2 for one in boards))
        mine = record(place.hosts[1].identity, CLOCK())
        await boards[1].post("storage", mine, 300)
        await stop(place.note(place.hosts[2]))
        protocol, stopped = boards[0]._node.protocol, PeerID(libp2p_id(place.hosts[2].me))
        call_find, patience = protocol.call_find, protocol.wait_timeout

        async def soon_given_up(node: PeerID, keys: list[DHTID]) -> object:
            protocol.wait_timeout = 1.0 if node == stopped else patience
            return await call_find(node, keys)

        monkeypatch.setattr(protocol, "call_find", soon_given_up)
        assert mine in flat(await boards[0].look("storage"))
        assert stopped in boards[0]._node.blacklist
        assert mine in flat(await boards[0].look("storage"))
        os.kill(place.note(place.hosts[2]), signal.SIGCONT)
        await all_closed(*boards)

    hosts(story)


def test_nodes_that_fell_silent_for_a_while_are_soon_found_again() -> None:
    """A machine that is out of breath: with the next refresh, a minute later, is no time."""

    async def story(place: Place) -> None:
        boards = [await board(place, seeds=partial(all_of, place)) for _ in range(3)]
        await until(lambda: all(one.nodes == 2 for one in boards))
        for host in place.hosts[:2]:
            await stop(place.note(host))
        protocol = boards[2]._node.protocol
        patience, protocol.wait_timeout = protocol.wait_timeout, 1.0
        for _ in range(2):
            with pytest.raises(Unreachable, match="no node of the peer directory answered; "):
                await boards[2].look("storage")
        assert boards[2].nodes == 0
        for host in place.hosts[:2]:
            os.kill(place.note(host), signal.SIGCONT)
        protocol.wait_timeout = patience
        await until(lambda: boards[2].nodes > 0)
        assert await boards[2].look("storage") == []
        await all_closed(*boards)

    hosts(story)


def test_no_more_seeds_are_dialled_at_once_than_a_machine_can() -> None:
    async def story(place: Place) -> None:
        one = await board(place)
        peers = [Identity.from_seed(number.to_bytes(32, "big")).peer for number in range(1, 400)]
        seeds = [f"/ip4/127.0.0.1/tcp/9/p2p/{libp2p_name(peer)}" for peer in peers]
        one._seeds = lambda: [*seeds, *place.hosts[0].addresses, "nonsense"]
        for alone, most in ((1, 16), (2, 32), (4, 128), (50, 128)):
            tried = one._tried_next(alone)
            assert len(tried) == len(set(tried)) == most
            assert set(seeds[-most // 2 :]) < set(tried) < set(seeds)
        one._seeds = lambda: [seeds[5], *seeds]
        assert one._tried_next(alone=1)[:8] == seeds[-8:]
        one._seeds = lambda: [*seeds, *place.hosts[0].addresses, seeds[5]]
        assert one._tried_next(alone=1)[:8] == [*seeds[-7:], seeds[5]]
        one._seeds = lambda: [*seeds, *place.hosts[0].addresses, "nonsense"]
        table = one._node.protocol.routing_table
        for peer in peers[4:]:
            table.peer_id_to_uid[PeerID(libp2p_id(peer))] = DHTID.from_bytes(bytes(20))
        assert sorted(one._tried_next(alone=0)) == sorted(seeds[:4])
        table.peer_id_to_uid.clear()
        assert len(set(one._tried_next(alone=0))) == 8
        one._seeds = lambda: seeds[:3]
        assert sorted(one._tried_next(alone=1)) == sorted(seeds[:3])
        await all_closed(one)

    hosts(story)


def test_a_node_that_all_have_left_out_is_found_again() -> None:
    """As one that comes back and knows only who is gone; or half of a board that was cut in two."""

    async def story(place: Place) -> None:
        boards = [await board(place, seeds=partial(all_of, place)) for _ in range(3)]
        await until(lambda: all(one.nodes == 2 for one in boards))
        await settled(*boards)
        lost = boards[2]
        lost._seeds = tuple
        for one in boards:
            table = one._node.protocol.routing_table
            for node in [*table.uid_to_peer_id]:
                if one is lost or node == lost._node.node_id:
                    del table[node]
        assert [one.nodes for one in boards] == [1, 1, 0]
        await boards[0]._join(alone=0)  # as with each refresh
        await until(lambda: boards[0].nodes == 2 and lost.nodes > 0)
        assert await lost.look("storage") == []
        await all_closed(*boards)

    hosts(story)


def test_a_node_that_answers_is_asked_though_it_was_left_out() -> None:
    async def story(place: Place) -> None:
        boards = [await board(place, seeds=partial(all_of, place)) for _ in range(2)]
        await until(lambda: all(one.nodes for one in boards))
        await settled(*boards)
        blacklist = boards[0]._node.blacklist
        blacklist.base_time = 1000.0
        blacklist.register_failure(PeerID(libp2p_id(place.hosts[1].me)))
        with pytest.raises(Unreachable):
            await boards[0].look("storage")
        await boards[0]._join(alone=1)
        assert not blacklist.banned_peers
        assert await boards[0].look("storage") == []
        await all_closed(*boards)

    hosts(story)


def test_the_board_gives_up_before_those_who_ask_it() -> None:
    """Else what has been found by then would be thrown away."""
    assert Options().look_within > _WITHIN


def test_two_swarms_on_one_host_do_not_mix() -> None:
    async def story(place: Place) -> None:
        other = bytes(32)
        first = await board(place)
        others = [await board(place, host=place.hosts[0], swarm=other)]
        others.append(await board(place, swarm=other))
        await until(lambda: others[1].nodes > 0)
        mine = record(place.hosts[1].identity, CLOCK(), swarm_id=other)
        await others[1].post("storage", mine, 300)
        assert flat(await others[0].look("storage")) == [mine]
        assert first.nodes == 0
        await all_closed(first, *others)

    hosts(story)


def test_two_swarms_over_quic_alone() -> None:
    async def story(place: Place) -> None:
        quic = ("/ip4/127.0.0.1/udp/0/quic-v1",)
        for swarm, first in ((SWARM, 0), (bytes(32), 2)):
            near = [await place.host(listen=quic) for _ in range(2)]
            assert all("/quic-v1/p2p/" in host.addresses[0] for host in near)
            seeds = place.hosts[first].addresses
            boards = [
                await board(place, host=host, swarm=swarm, seeds=lambda at=seeds: at)  # type: ignore[misc]
                for host in near
            ]
            await until(lambda of=boards: all(one.nodes == 1 for one in of))  # type: ignore[misc]
            mine = record(near[1].identity, CLOCK(), swarm_id=swarm)
            await boards[1].post("storage", mine, 300)
            assert flat(await boards[0].look("storage")) == [mine]
            one, other = map(place.transport, near)
            other.serve(echo)
            body = random_bytes(3 << 20)
            assert await one.call(near[1].me, body, timeout=60) == body
            await asyncio.gather(one.close(), other.close())
            await all_closed(*boards)

    hosts(story)


def test_what_strangers_send_is_refused() -> None:
    async def story(place: Place) -> None:
        first = await board(place)
        stranger = await place.host()
        await stranger.connect(place.hosts[0].addresses)
        life = stranger._life
        assert life is not None
        p2p = (await life.unary()).p2p
        target = PeerID(libp2p_id(place.hosts[0].me))
        node = dht_pb2.NodeInfo(node_id=node_key(SWARM, stranger.me))
        shelf = first._shelf
        mine = shelf.key("storage", stranger.me)
        now = CLOCK()
        good = record(stranger.identity, now, lifetime=30)

        async def ask(method: str, request: Any, answer: Any) -> Any:  # noqa: ANN401
            name = first._guard._name(method)  # type: ignore[union-attr]
            return await p2p.call_protobuf_handler(target, name, request, answer)

        async def leave(key: bytes, value: bytes, life: float = 30.0, **other: Any) -> list[bool]:  # noqa: ANN401
            request = dht_pb2.StoreRequest(
                keys=[key], values=[value], expiration_time=[life], peer=node, **other
            )
            return list((await ask("rpc_store", request, dht_pb2.StoreResponse)).store_ok)

        ghost = Identity.from_seed(bytes(32))
        for key, value in (
            (bytes(20), b"rubbish"),
            (mine, b"rubbish"),
            (mine, record(ghost, CLOCK())),
            (shelf.key("storage", ghost.peer), record(ghost, CLOCK())),
            (mine, record(stranger.identity, CLOCK() + 9999)),
            (mine, b"\xc7\xff\x50" + bytes(300)),
        ):
            assert await leave(key, value) == [False]
        assert await leave(mine, good, 1e300, in_cache=[True], subkeys=[b"\x50"]) == [True]
        assert shelf.get(mine, now + 29) == [good]
        assert shelf.get(mine, CLOCK() + 31) == []
        with pytest.raises(P2PHandlerError, match="20 bytes"):
            await leave(b"short", good)
        many = dht_pb2.FindRequest(keys=[bytes(20)] * 17, peer=node)
        with pytest.raises(P2PHandlerError, match="1 to 16 are allowed"):
            await ask("rpc_find", many, dht_pb2.FindResponse)
        lame = dht_pb2.StoreRequest(keys=[mine], values=[], peer=node)
        with pytest.raises(P2PHandlerError, match="differs from that of the keys"):
            await ask("rpc_store", lame, dht_pb2.StoreResponse)
        liar = dht_pb2.NodeInfo(node_id=node_key(SWARM, ghost.peer))
        with pytest.raises(P2PHandlerError, match="claims a key that is not its own"):
            await ask("rpc_ping", dht_pb2.PingRequest(peer=liar), dht_pb2.PingResponse)
        assert first.refused == 6
        await all_closed(first)

    hosts(story)


def test_nobody_makes_a_node_call_back() -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(2)]
        await until(lambda: all(one.nodes for one in boards))
        node = dht_pb2.NodeInfo(node_id=node_key(SWARM, place.hosts[1].me))
        ping = dht_pb2.PingRequest(peer=node, validate=True)
        guarded = boards[1]._guard
        assert guarded is not None
        target = PeerID(libp2p_id(place.hosts[0].me))
        answer = await guarded.call_protobuf_handler(
            target, "DHTProtocol.rpc_ping", ping, dht_pb2.PingResponse
        )
        assert not answer.available
        await all_closed(*boards)

    hosts(story)
