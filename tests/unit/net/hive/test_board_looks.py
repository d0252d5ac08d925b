"""Looks at a board that real hosts keep together: whom they ask, and whom they believe."""

import asyncio
import os
import signal
from functools import partial
from math import inf
from typing import Any

import pytest
from hivemind.dht.routing import DHTID
from hivemind.p2p import PeerID

from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.hive import answer_times, guard, looks
from giaann_p2p.net.hive import board as module
from giaann_p2p.net.hive.board import HiveBoard
from giaann_p2p.net.hive.guard import Guard
from giaann_p2p.net.hive.peer_id import libp2p_id
from giaann_p2p.net.hive.searches import Searches
from giaann_p2p.net.hive.shelf import ALL, MOST_PLACE, NOTHING
from giaann_p2p.net.hive.short_look import Search
from giaann_p2p.swarm.wire.identity import SIGNATURE_BYTES, Identity
from giaann_p2p.swarm.wire.patch import made
from giaann_p2p.swarm.wire.pulse import PULSE_BYTES, apart, bare, batch
from giaann_p2p.swarm.wire.record import FRONT_BYTES, bucket_of
from tests.unit.net.hive.helpers import Place, hosts, until
from tests.unit.net.hive.helpers_board import (
    CLOCK,
    all_closed,
    all_of,
    board,
    flat,
    record,
    settled,
)
from tests.unit.swarm.helpers_pulses import beat

Nearest = dict[bytes, dict[DHTID, PeerID]]

pytestmark = pytest.mark.usefixtures("patient")


def test_the_answers_of_liars_are_told_as_theirs() -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(2)]
        await until(lambda: all(one.nodes for one in boards))
        liar = boards[0]
        good = record(place.hosts[1].identity, CLOCK())
        key = liar._shelf.key("storage", place.hosts[1].me)
        ghost = Identity.from_seed(bytes(32)).peer
        wrong = [b"rubbish", record(place.hosts[1].identity, CLOCK(), swarm_id=bytes(32))]
        shelf, node = liar._shelf, liar._node
        honest = shelf.get
        shelf.get = lambda asked, now: [*wrong, good] if asked == key else []  # type: ignore[method-assign]
        table = node.protocol.routing_table
        table.add_or_update_node(DHTID.from_bytes(bytes(20)), PeerID(libp2p_id(ghost)))
        table.add_or_update_node(DHTID.from_bytes(b"\1" * 20), PeerID(b"\x12\x20" + bytes(32)))
        assert await boards[1].look("storage") == [[*wrong, good]]
        assert boards[1].nodes == 1
        assert not boards[1]._node.blacklist.banned_peers  # nobody was asked who is not there
        shelf.get = honest  # type: ignore[method-assign]
        await all_closed(*boards)

    hosts(story)


def test_a_node_that_answers_with_a_flood_hides_nobodys_records() -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(3)]
        await until(lambda: all(one.nodes == 2 for one in boards))
        honest = [record(host.identity, CLOCK()) for host in place.hosts[1:]]
        for one, mine in zip(boards[1:], honest, strict=True):
            await one.post("storage", mine, 300)
        front, body = honest[0][:PULSE_BYTES], honest[0][FRONT_BYTES:]
        flood = [front + n.to_bytes(SIGNATURE_BYTES, "big") + body for n in range(17_000)]
        shelf = boards[0]._shelf
        first = shelf.keys("storage")[0]
        shelf.get = lambda key, now: flood[:9000] if key == first else []  # type: ignore[method-assign]
        brought = await boards[1].look("storage")
        for mine in honest:
            assert any(mine in records and len(records) <= 2 for records in brought)
        assert max(map(len, brought)) < 4000
        boards[1].forget()
        shelf.get = lambda key, now: [b""] * 500_000 if key == first else []  # type: ignore[method-assign]
        assert max(map(len, await boards[1].look("storage"))) <= (MOST_PLACE >> 7) + 256
        await all_closed(*boards)

    hosts(story)


def test_who_had_more_and_stalls_then_holds_up_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(place: Place) -> None:
        one = await board(place)
        await settled(one)
        asked: list[str] = []

        async def nearest(keys: list[bytes], beam: int) -> Nearest:
            (finding,) = one._guard.findings  # type: ignore[union-attr]
            finding.answers = 1
            every = one._shelf.keys("storage", NOTHING)
            finding.cut.update({"liar": every, "honest": every})
            return {keys[0]: {}}

        async def call_find(node: PeerID, keys: list[DHTID]) -> None:
            asked.append(node)
            await asyncio.sleep(1000 if node == "liar" else 0)

        monkeypatch.setattr(module, "_WITHIN", 0.5)
        monkeypatch.setattr(one._searches, "nearest", nearest)
        monkeypatch.setattr(one._node.protocol, "call_find", call_find)
        assert await one.look("storage") == []
        assert sorted(asked) == ["honest"] * 16 + ["liar"]
        await all_closed(one)

    hosts(story)


def test_after_a_search_a_look_asks_two_nodes_and_others_for_those_that_do_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(5)]
        one, asked = boards[0], list[PeerID]()
        await until(lambda: one.nodes == 4)
        call_find = one._node.protocol.call_find

        async def noted(node: PeerID, keys: list[DHTID]) -> object:
            asked.append(node)
            return None if node in deaf else await call_find(node, keys)

        deaf: set[PeerID] = set()
        monkeypatch.setattr(one._node.protocol, "call_find", noted)
        mine = record(boards[1]._host.identity, CLOCK())
        await boards[1].post("storage", mine, 300)
        assert flat(await one.look("storage")) == [mine]  # a search
        asked.clear()
        assert flat(await one.look("storage")) == [mine]
        assert len(asked) == len({*asked}) == 2
        searched, nearest = list[int](), one._searches.nearest

        async def counted(keys: list[bytes], *beam: int) -> Nearest:
            searched.append(len(keys))
            return await nearest(keys, *beam)

        monkeypatch.setattr(one._searches, "nearest", counted)
        monkeypatch.setattr(answer_times, "_SLOW_FOR", -inf)
        deaf.add(asked[0])
        while not deaf & {*asked[2:]}:  # chance decides which two are asked
            assert flat(await one.look("storage")) == [mine]
        assert len({*asked[-3:]}) == 3  # the third one in its place
        asked.clear()
        assert flat(await one.look("storage")) == [mine]
        assert len(asked) == 2
        assert not deaf & {*asked}  # the next one keeps away from it
        assert not searched
        deaf.update(asked)
        while one._searches.last["storage"] is not None:
            assert flat(await one.look("storage")) == [mine]
        assert not searched
        assert flat(await one.look("storage")) == [mine]
        assert searched == [1]  # because too few are left to rely on
        await all_closed(*boards)

    hosts(story)


def test_a_search_that_takes_longer_than_a_look_goes_on_and_serves_the_next_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(3)]
        one, searches = boards[0], list[int]()
        await until(lambda: one.nodes == 2)
        await settled(*boards)
        mine = record(boards[1]._host.identity, CLOCK())
        await boards[1].post("storage", mine, 300)
        nearest, go_on = one._searches.nearest, asyncio.Event()

        async def slow(keys: list[bytes], *beam: int) -> Nearest:
            searches.append(len(keys))
            await go_on.wait()
            return await nearest(keys, *beam)

        monkeypatch.setattr(one._searches, "nearest", slow)
        monkeypatch.setattr(module, "_WITHIN", 0.2)
        for _ in range(2):
            with pytest.raises(Unreachable, match="no node of the peer directory answered"):
                await one.look("storage")
        go_on.set()
        await until(lambda: "storage" in one._searches.last)
        monkeypatch.setattr(module, "_WITHIN", 4.0)
        assert flat(await one.look("storage")) == [mine]
        assert searches == [1]
        go_on.clear()
        last = one._searches.last["storage"]
        assert last is not None
        one._searches.last["storage"] = last._replace(lasts=-inf)
        assert flat(await one.look("storage")) == [mine]
        assert searches == [1]  # because the last one took long, and ended only now
        one._searches._rests.clear()
        assert flat(await one.look("storage")) == [mine]  # by the old one, and without waiting
        assert searches == [1, 1]
        go_on.set()
        await until(lambda: one._searches.last["storage"] not in (last, last._replace(lasts=-inf)))
        await all_closed(*boards)

    hosts(story)


def test_who_did_not_answer_is_not_asked_again_even_if_the_look_was_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(place: Place) -> None:
        one, asked = await board(place), list[PeerID]()
        await settled(one)
        nodes = [PeerID(libp2p_id(Identity.from_seed(bytes([n]) * 32).peer)) for n in range(5)]
        near = dict.fromkeys(one._shelf.keys("storage"), nodes)
        one._searches.last["storage"] = Search(near, 40, 0.0, inf)
        monkeypatch.setattr(Searches, "nodes", 40)

        async def call_find(node: PeerID, keys: list[DHTID]) -> None:
            asked.append(node)
            await asyncio.sleep(1000 if len(asked) > 2 else 0)

        monkeypatch.setattr(module, "_WITHIN", 0.3)
        monkeypatch.setattr(one._node.protocol, "call_find", call_find)
        with pytest.raises(Unreachable):
            await one.look("storage")
        assert len({*asked}) == len(asked) == 4
        left = one._searches.last["storage"]
        assert left is not None
        assert all({*some} == {*nodes} - {*asked[:2]} for some in left.near.values())
        await all_closed(one)

    one_look = looks.Looks.news
    monkeypatch.setattr(looks.Looks, "news", lambda self, now: min(one_look(self, now), 12))
    hosts(story)


def test_nothing_is_searched_for_after_the_end() -> None:
    async def story(place: Place) -> None:
        one = await board(place)
        await all_closed(one)
        await asyncio.wait({one._searches.begin("storage")})
        assert not len(one._searches)

    hosts(story)


@pytest.mark.parametrize("restarted", [False, True])
def test_two_looks_may_find_the_same_node_silent_even_while_p2pd_is_restarted(
    restarted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(place: Place) -> None:
        boards = [await board(place, seeds=partial(all_of, place)) for _ in range(3)]
        one, host = boards[0], place.hosts[0]
        await until(lambda: all(each.nodes == 2 for each in boards))
        mine = record(boards[1]._host.identity, CLOCK())
        await boards[1].post("storage", mine, 300)
        await one.look("storage")
        node, asked, answered = one._node, list[PeerID](), asyncio.Event()

        async def silent(peer_id: PeerID, keys: list[DHTID]) -> None:
            asked.append(peer_id)
            await answered.wait()

        monkeypatch.setattr(node.protocol, "call_find", silent)
        tasks = [asyncio.create_task(one.look("storage")) for _ in range(2)]
        await until(lambda: len(asked) == 4)
        if restarted:
            os.kill(place.note(host), signal.SIGKILL)
            await until(lambda: host.deaths == 1 and host.is_up and one.nodes == 2)
        else:
            monkeypatch.undo()
        answered.set()
        for found in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(found, list | Unreachable)
        if restarted:
            assert one._node is not node
            assert not any(peer_id in one._node.blacklist for peer_id in asked)
            assert flat(await one.look("storage")) == [mine]
        await all_closed(*boards)

    hosts(story)


def at_once(boards: list[HiveBoard], later: float) -> None:
    """Let time pass for boards, as if they had slept."""
    for one in boards:
        clock = one._clock
        one._clock = lambda clock=clock: clock() + later  # type: ignore[misc]
        if one._guard is not None:
            one._guard._clock = one._clock


def test_at_rest_bare_pulses_are_posted_and_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(3)]
        one, two, three = boards
        await until(lambda: all(each.nodes == 2 for each in boards))
        await settled(*boards)
        identity = two._host.identity
        data, posted = record(identity, CLOCK(), lifetime=300), list[bytes]()
        await two.post("storage", data, 300)
        assert flat(await one.look("storage")) == [data]
        at_once(boards, 20.0)
        assert len(await one.look("storage")) == 3  # of all that time
        assert await one.look("storage") == [[data]]  # which its own node keeps
        call_store = two._node.protocol.call_store

        async def noted(node: PeerID, keys: object, values: list[bytes], ends: object) -> object:
            posted.extend(values)
            return await call_store(node, keys, values, ends)

        monkeypatch.setattr(two._node.protocol, "call_store", noted)
        held = one.held
        monkeypatch.setattr(one, "held", lambda role: [])
        assert await one.look("storage") == []  # nothing came lately
        for number in (1, 2):
            shown = beat(data, identity, number)
            await two.post("storage", shown, 300)
            assert posted == [bare(shown)] * 2
            posted.clear()
            assert held("storage") == three.held("storage") == [shown]
            assert await one.look("storage") == [[bare(shown)]] * 2
            at_once(boards, 20.0)
            await one.look("storage")
        one.forget()
        assert await one.look("storage") == [[shown]] * 2
        await all_closed(*boards)

    hosts(story)


def test_in_a_large_swarm_looks_bring_patches_and_now_and_then_pulses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(3)]
        one, two, _ = boards
        await until(lambda: all(each.nodes == 2 for each in boards))
        await settled(*boards)
        time, identity = [CLOCK()], two._host.identity
        for each in boards:
            each._clock = lambda: time[0]
            each._guard._clock = each._clock  # type: ignore[union-attr]
        monkeypatch.setattr(looks, "FEW", -1)
        monkeypatch.setattr(one, "held", lambda role: [])
        data, bucket = record(identity, CLOCK(), lifetime=300), bucket_of(identity.peer)
        await two.post("storage", data, 300)
        assert await one.look("storage") == [[data]] * 2
        shown = beat(data, identity, 1)
        time[0] += 5
        await two.post("storage", shown, 300)
        assert await one.look("storage") == [[shown]] * 2  # the looks overlap
        time[0] += 5
        assert await one.look("storage") == []
        time[0] += 5
        assert await one.look("storage") == [[*apart(batch(bucket, [bare(shown)]))]]
        assert one._looks["storage"].further(time[0] + 1) == {}  # this round counts
        newer = record(identity, CLOCK(), later=9, lifetime=300)
        await two.post("storage", newer, 300)
        time[0] += 5
        assert await one.look("storage") == [[made(bucket, shown, newer)]] * 2
        assert one.missed(1, lambda role, due: [], [bucket]) is False
        assert [newer] in await one.look("storage")  # which was asked for besides
        await all_closed(*boards)

    hosts(story)


def test_what_is_forgotten_during_a_look_is_asked_for_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(2)]
        one, asked = boards[0], list[set[int]]()
        await until(lambda: one.nodes == 1)
        call_find = one._node.protocol.call_find

        async def noted(node: PeerID, keys: list[DHTID]) -> object:
            asked[-1].update(key.to_bytes()[-1] for key in keys)
            if len(asked) == 2:
                one.forget()
            return await call_find(node, keys)

        await settled(*boards)
        await one.look("storage")
        monkeypatch.setattr(one._node.protocol, "call_find", noted)
        for _ in range(4):
            asked.append(set())
            await one.look("storage")
        assert [ALL in some for some in asked] == [False, False, True, False]
        await all_closed(*boards)

    hosts(story)


def test_a_node_without_the_record_gets_it_whole() -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(3)]
        one, two, three = boards
        await until(lambda: all(each.nodes == 2 for each in boards))
        data = record(one._host.identity, CLOCK())
        await one.post("storage", data, 300)
        key = one._shelf.key("storage", one._host.me)
        two._shelf._places[key].clear()
        shown = beat(data, one._host.identity, 1)
        await one.post("storage", shown, 300)
        assert two.held("storage") == three.held("storage") == [shown]
        await all_closed(*boards)

    hosts(story)


def test_no_later_search_asks_for_all_records(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(3)]
        one = boards[0]
        await until(lambda: one.nodes == 2)
        await settled(*boards)
        data = record(boards[1]._host.identity, CLOCK())
        await boards[1].post("storage", data, 300)
        asked, call_find = set[int](), one._node.protocol.call_find

        async def noted(node: PeerID, keys: list[DHTID]) -> object:
            asked.update(key.to_bytes()[-1] for key in keys)
            return await call_find(node, keys)

        monkeypatch.setattr(one._node.protocol, "call_find", noted)
        assert flat(await one.look("storage")) == [data]
        assert asked == {NOTHING, ALL}
        now = CLOCK()
        one._clock = lambda: now  # else the news asked for could be of more seconds
        asked.clear()
        one._searches.last = {}  # it is too old
        assert flat(await one.look("storage")) == [data]
        assert asked == {NOTHING, 12}
        asked.clear()
        one._searches.last = {}
        await one.post("storage", record(one._host.identity, CLOCK()), 300)
        assert asked == {NOTHING}
        await all_closed(*boards)

    hosts(story)


def test_after_a_look_a_record_goes_straight_to_the_nodes_that_it_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(3)]
        one, searched = boards[0], list[PeerID]()
        await until(lambda: one.nodes == 2)
        await settled(*boards)
        await one.look("storage")
        call_find, leave = one._node.protocol.call_find, one._leave
        refusing = set[PeerID]()

        async def noted(node: PeerID, keys: list[DHTID]) -> object:
            searched.append(node)
            return await call_find(node, keys)

        async def left(
            node: PeerID, key: bytes, data: bytes, life: float, took: list[bool]
        ) -> None:
            if node in refusing:
                took.append(False)
            else:
                await leave(node, key, data, life, took)

        monkeypatch.setattr(one._node.protocol, "call_find", noted)
        monkeypatch.setattr(one, "_leave", left)
        mine = record(place.hosts[0].identity, CLOCK())
        await one.post("storage", mine, 300)
        assert searched == []
        for other in boards[1:]:
            key = other._shelf.key("storage", one._host.me)
            assert other._shelf.get(key, CLOCK()) == [mine]
        refusing.add(PeerID(libp2p_id(place.hosts[1].me)))
        await one.post("storage", record(place.hosts[0].identity, CLOCK(), later=1), 300)
        assert searched  # for others, in place of the one that refuses
        await all_closed(*boards)

    hosts(story)


@pytest.mark.parametrize(
    ("others", "deaf_ones", "rests", "searches"),
    [(3, 1, -inf, []), (4, 2, -inf, [1]), (4, 2, inf, []), (4, 3, inf, [1])],
)
def test_a_record_that_most_of_the_near_nodes_took_is_posted_without_a_search(
    others: int, deaf_ones: int, rests: float, searches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is there one if two took it, and the last search ended only now."""

    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(1 + others)]
        one, searched = boards[0], list[int]()
        await until(lambda: one.nodes == others)
        await settled(*boards)
        await one.look("storage")
        one._searches._rests["storage"] = rests
        leave, nearest = one._leave, one._searches.nearest
        deaf = [PeerID(libp2p_id(host.me)) for host in place.hosts[1 : 1 + deaf_ones]]

        async def left(
            node: PeerID, key: bytes, data: bytes, life: float, took: list[bool]
        ) -> None:
            if node in deaf:
                took.append(False)
            else:
                await leave(node, key, data, life, took)

        async def counted(keys: list[bytes], *beam: int) -> Nearest:
            searched.append(len(keys))
            return await nearest(keys, *beam)

        monkeypatch.setattr(one, "_leave", left)
        monkeypatch.setattr(one._searches, "nearest", counted)
        mine = record(place.hosts[0].identity, CLOCK())
        await one.post("storage", mine, 300)
        assert searched == searches
        held = [mine in other.held("storage") for other in boards[1:]]
        assert held == [number >= deaf_ones for number in range(others)]
        await all_closed(*boards)

    hosts(story)


def test_more_than_fits_into_an_answer_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(2)]
        await until(lambda: all(one.nodes for one in boards))
        shelf, now = boards[0]._shelf, CLOCK()
        want = set()
        for number in range(160):
            one = Identity.from_seed(number.to_bytes(32, "big"))
            data = record(one, now, addresses=(f"/dns4/{'a' * 200}/tcp/{number}/p2p/x",))
            shelf.put(shelf.key("storage", one.peer), data, one.peer, 30, now)
            want.add(data)
        sizes = [sum(map(len, shelf.get(key, now))) for key in shelf.keys("storage")]
        most = max(sizes) + 200
        assert 4 * most < sum(sizes)
        monkeypatch.setattr(guard, "_MOST_ANSWER", most)
        assert flat(await boards[1].look("storage")) == sorted(want)
        await all_closed(*boards)

    hosts(story)


@pytest.mark.parametrize("older", [False, True])
def test_only_a_search_asks_which_nodes_are_near(
    older: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node of an earlier release names some all the same, and then nobody looks at them."""
    keep, find = Guard._keep_honest_neighbours, Guard._find
    named, kept = list[int](), list[int]()

    def keeping(self: Guard, result: Any, most: int) -> None:  # noqa: ANN401
        named.append(len(result.nearest_node_ids))
        keep(self, result, most)
        kept.append(len(result.nearest_node_ids))

    async def unmarked(self: Guard, request: Any, context: Any) -> Any:  # noqa: ANN401
        request.auth.service_public_key = b""
        return await find(self, request, context)

    monkeypatch.setattr(Guard, "_keep_honest_neighbours", keeping)
    if older:
        monkeypatch.setattr(Guard, "_find", unmarked)

    async def story(place: Place) -> None:
        boards = [await board(place) for _ in range(3)]
        one = boards[0]
        await until(lambda: all(each.nodes == 2 for each in boards))
        await settled(*boards)
        data = record(boards[1]._host.identity, CLOCK())
        await boards[1].post("storage", data, 300)
        named.clear()
        kept.clear()
        assert flat(await one.look("storage")) == [data]  # a search, then two nodes asked
        assert sum(kept) == sum(named[:-32]) > 0
        assert sum(kept[-32:]) == 0
        named.clear()
        kept.clear()
        assert flat(await one.look("storage")) == [data]
        assert (sum(named) > 0) == older
        assert len(kept) == 32  # two nodes for each of 16 keys
        assert sum(kept) == 0
        assert all(each.nodes == 2 for each in boards)
        await all_closed(*boards)

    hosts(story)
