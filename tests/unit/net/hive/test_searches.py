"""Searches for the nodes near the places of a role, over nodes that are made up."""

import asyncio
import random
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
from hivemind.dht.routing import DHTID
from hivemind.p2p import PeerID

from giaann_p2p.net.hive.answer_times import AnswerTimes
from giaann_p2p.net.hive.looks import REPLICAS
from giaann_p2p.net.hive.peer_id import libp2p_id, peer_of_id
from giaann_p2p.net.hive.searches import Searches
from giaann_p2p.net.hive.shelf import Shelf, news_key
from giaann_p2p.net.hive.short_look import Search
from giaann_p2p.swarm.wire.identity import Identity
from tests.unit.net.hive.helpers_board import RULES

ME, SWARM = bytes(32), bytes(32)
_NAMED = 20
"""The most nodes that an answer names."""


def named(number: int) -> PeerID:
    return PeerID(libp2p_id(Identity.from_seed(number.to_bytes(32, "little")).peer))


def made_guard() -> Any:  # noqa: ANN401
    """Return what searches need of a guard; no node has answered yet."""
    return SimpleNamespace(records_only=nullcontext, answers=AnswerTimes(1.5, 3.5, 4096))


class Nodes:
    """A DHT whose searches find what is nearest."""

    def __init__(self, count: int, silent: Sequence[int] = ()) -> None:
        chance = random.Random(count)
        self.ids = {DHTID(chance.getrandbits(160)): named(number) for number in range(count)}
        self.blacklist = {named(number) for number in silent}
        self.protocol = SimpleNamespace(
            routing_table=SimpleNamespace(peer_id_to_uid=dict.fromkeys(self.ids.values()))
        )
        self.searched = list[int]()
        self.hides = True
        """Whether searches find no silent nodes."""

    async def find_nearest_nodes(
        self, queries: Sequence[DHTID], k_nearest: int, beam_size: int, *, exclude_self: bool
    ) -> dict[DHTID, dict[DHTID, PeerID]]:
        assert (k_nearest, exclude_self) == (beam_size, True)
        self.searched.append(len(queries))
        return {query: self.nearest(query, k_nearest) for query in queries}

    def nearest(self, key: DHTID, count: int) -> dict[DHTID, PeerID]:
        order = sorted(self.ids, key=key.xor_distance)[:_NAMED]
        heard = [node for node in order if not (self.hides and self.ids[node] in self.blacklist)]
        return {node: self.ids[node] for node in heard[:count]}


def found(nodes: Nodes, *, near: bool, guard: object = None) -> dict[bytes, Sequence[Any]]:
    """Search for the storage peers' places; check that the nodes nearest to each are found."""

    async def story() -> dict[bytes, Sequence[Any]]:
        shelf = Shelf(ME, SWARM, lambda: RULES, near=near)
        searches = Searches(nodes, guard or made_guard(), shelf.keys)  # type: ignore[arg-type]
        await asyncio.wait({searches.begin("storage")})
        last = searches.last["storage"]
        assert last is not None
        assert last.nodes == len(nodes.ids)
        assert {*last.near} == {*shelf.keys("storage")}
        assert all(searches.near("storage", key) == nodes for key, nodes in last.near.items())
        return dict(last.near)

    return asyncio.run(story())


def wanted(nodes: Nodes, key: bytes) -> list[PeerID]:
    return list(nodes.nearest(DHTID.from_bytes(news_key(key, 0)), REPLICAS).values())


@pytest.mark.parametrize("count", [1, 4, 15, 16, 40, 100, 300])
def test_in_a_small_swarm_one_place_is_searched_for_and_the_nodes_near_all_are_found(
    count: int,
) -> None:
    nodes = Nodes(count)
    for key, near in found(nodes, near=True).items():
        assert [*near] == wanted(nodes, key)
    assert nodes.searched == [1]


@pytest.mark.parametrize("silent", [0, 2, 5])
@pytest.mark.parametrize(("count", "near"), [(2_000, True), (16, False), (100, False)])
def test_where_places_have_nodes_of_their_own_all_are_searched_for(
    count: int, near: bool, silent: int
) -> None:
    nodes = Nodes(count, silent=[number for number in range(count) if number % 10 < silent])
    for key, nearest in found(nodes, near=near).items():
        assert [*nearest] == wanted(nodes, key)
    assert nodes.searched == ([1, 16] if near else [16])


def asking(nodes: Nodes, answers: Collection[PeerID], keys: int) -> tuple[Searches, list[PeerID]]:
    """Return searches that found all nodes near each place, and a list of whom they ask."""
    asked = list[PeerID]()

    async def call_find(node: PeerID, keys: Sequence[DHTID]) -> object:
        asked.append(node)
        return {} if node in answers else None

    nodes.protocol.call_find = call_find
    nodes.blacklist = Banned()
    shelf = Shelf(ME, SWARM, lambda: RULES)
    searches = Searches(nodes, made_guard(), shelf.keys)  # type: ignore[arg-type]
    whole = {key: list(nodes.ids.values()) for key in shelf.keys("storage")}
    searches.last["storage"] = searches._found["storage"] = Search(whole, keys, 0.0, inf)
    return searches, asked


class Banned(set[PeerID]):
    """The nodes that did not answer lately."""

    def register_failure(self, node: PeerID) -> None:
        self.add(node)

    def register_success(self, node: PeerID) -> None:
        self.discard(node)


@pytest.mark.parametrize("rests", [False, True])
def test_silent_nodes_are_asked_again_until_a_search_may_begin(rests: bool) -> None:
    nodes = Nodes(5)

    async def story() -> None:
        searches, asked = asking(nodes, answers=(), keys=5)
        searches._rests["storage"] = inf if rests else -inf
        key = searches._keys("storage", 0)[0]
        assert not await searches.ask("storage", {key: 2})
        assert {*asked} == nodes.blacklist == {*nodes.ids.values()}
        assert len(asked) == 5
        last = searches.last["storage"]
        assert (last is not None) == rests
        assert last is None or all(len(near) >= 3 for near in last.near.values())

    asyncio.run(story())


@pytest.mark.parametrize("seconds", [1.0, 30.0, 61.0])
def test_nodes_that_answered_lately_are_slow_not_gone(seconds: float) -> None:
    nodes = Nodes(5)

    async def story() -> None:
        searches, _ = asking(nodes, answers=(), keys=5)
        then = asyncio.get_running_loop().time() - seconds
        for node in nodes.ids.values():
            searches._guard.answers.answered(peer_of_id(node.to_bytes()), 0.1, then)
        before = searches.last["storage"]
        key = searches._keys("storage", 0)[0]
        assert not await searches.ask("storage", {key: 2})
        assert searches.last["storage"] == (before if seconds < 60 else None)

    asyncio.run(story())


@pytest.mark.parametrize("silent", [2, 3])
def test_nodes_that_were_silent_lately_are_asked_last_if_there_are_enough_others(
    silent: int,
) -> None:
    nodes = Nodes(5)
    others = list(nodes.ids.values())[silent:]

    async def story() -> None:
        everybody = set[PeerID]()
        for _ in range(100):
            searches, asked = asking(nodes, answers=others, keys=5)
            nodes.blacklist |= {*nodes.ids.values()}.difference(others)
            key = searches._keys("storage", 0)[0]
            assert await searches.ask("storage", {key: 2})
            everybody.update(asked)
        assert everybody == ({*others} if silent == 2 else {*nodes.ids.values()})

    asyncio.run(story())


def test_a_node_that_answers_again_is_not_asked_last_any_more() -> None:
    nodes = Nodes(1)

    async def story() -> None:
        searches, _ = asking(nodes, answers=list(nodes.ids.values()), keys=1)
        nodes.blacklist |= {*nodes.ids.values()}
        assert await searches.ask("storage", {searches._keys("storage", 0)[0]: 1})
        assert not nodes.blacklist

    asyncio.run(story())


def test_nodes_that_did_not_answer_are_left_out_of_what_a_search_found() -> None:
    nodes = Nodes(9, silent=range(6))
    left = {node for near in found(nodes, near=True).values() for node in near}
    assert left == {named(6), named(7), named(8)}


def test_a_search_finds_nodes_that_are_slow_since_others_keep_fewer_records() -> None:
    nodes = Nodes(40)
    slow, guard = wanted(nodes, Shelf(ME, SWARM, lambda: RULES).keys("storage")[0]), made_guard()
    nodes.blacklist = {*slow}
    nodes.hides = False

    async def answered() -> None:
        now = asyncio.get_running_loop().time()
        for node in slow:
            guard.answers.answered(peer_of_id(node.to_bytes()), 3.0, now)

    asyncio.run(answered())
    assert all({*near} == {*slow} for near in found(nodes, near=True, guard=guard).values())
