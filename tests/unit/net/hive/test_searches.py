"""Searches for the nodes near the places of a role, over nodes that are made up."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import nullcontext
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
from hivemind.dht.routing import DHTID

from giaann_p2p.net.hive.looks import REPLICAS
from giaann_p2p.net.hive.searches import Searches
from giaann_p2p.net.hive.shelf import Shelf, news_key
from giaann_p2p.net.hive.short_look import Search
from tests.unit.net.hive.helpers_board import RULES

ME, SWARM = bytes(32), bytes(32)
_NAMED = 20
"""The most nodes that an answer names."""


class Nodes:
    """A DHT whose searches find what is nearest."""

    def __init__(self, count: int, silent: Sequence[int] = ()) -> None:
        chance = random.Random(count)
        self.ids = {DHTID(chance.getrandbits(160)): f"node {number}" for number in range(count)}
        self.blacklist = {f"node {number}" for number in silent}
        self.protocol = SimpleNamespace(
            routing_table=SimpleNamespace(peer_id_to_uid=dict.fromkeys(self.ids.values()))
        )
        self.searched = list[int]()

    async def find_nearest_nodes(
        self, queries: Sequence[DHTID], k_nearest: int, beam_size: int, *, exclude_self: bool
    ) -> dict[DHTID, dict[DHTID, str]]:
        assert (k_nearest, exclude_self) == (beam_size, True)
        self.searched.append(len(queries))
        return {query: self.nearest(query, k_nearest) for query in queries}

    def nearest(self, key: DHTID, count: int) -> dict[DHTID, str]:
        order = sorted(self.ids, key=key.xor_distance)[:_NAMED]
        heard = [node for node in order if self.ids[node] not in self.blacklist]
        return {node: self.ids[node] for node in heard[:count]}


def found(nodes: Nodes, *, near: bool) -> dict[bytes, Sequence[Any]]:
    """Search for the storage peers' places; check that the nodes nearest to each are found."""

    async def story() -> dict[bytes, Sequence[Any]]:
        shelf = Shelf(ME, SWARM, lambda: RULES, near=near)
        searches = Searches(nodes, SimpleNamespace(), shelf.keys)  # type: ignore[arg-type]
        await asyncio.wait({searches.begin("storage")})
        last = searches.last["storage"]
        assert last is not None
        assert last.nodes == len(nodes.ids)
        assert {*last.near} == {*shelf.keys("storage")}
        assert all(searches.near("storage", key) == nodes for key, nodes in last.near.items())
        return dict(last.near)

    return asyncio.run(story())


def wanted(nodes: Nodes, key: bytes) -> list[str]:
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


@pytest.mark.parametrize("rests", [False, True])
def test_silent_nodes_are_asked_again_until_a_search_may_begin(rests: bool) -> None:
    nodes, asked = Nodes(5), list[str]()
    failed = list[str]()
    nodes.blacklist = SimpleNamespace(register_failure=failed.append)  # type: ignore[assignment]

    async def call_find(node: str, keys: Sequence[DHTID]) -> None:
        asked.append(node)

    nodes.protocol.call_find = call_find

    async def story() -> None:
        shelf = Shelf(ME, SWARM, lambda: RULES)
        guard = SimpleNamespace(records_only=nullcontext)
        searches = Searches(nodes, guard, shelf.keys)  # type: ignore[arg-type]
        whole = {key: list(nodes.ids.values()) for key in shelf.keys("storage")}
        searches.last["storage"] = searches._found["storage"] = Search(whole, 5, 0.0, inf)
        searches._rests["storage"] = inf if rests else -inf
        key = shelf.keys("storage")[0]
        assert not await searches.ask("storage", {key: 2})
        assert (sorted(asked), sorted(failed)) == (sorted(nodes.ids.values()),) * 2
        last = searches.last["storage"]
        assert (last is not None) == rests
        assert last is None or all(len(near) >= 3 for near in last.near.values())

    asyncio.run(story())


def test_nodes_that_did_not_answer_are_left_out() -> None:
    nodes = Nodes(9, silent=range(6))
    assert {node for near in found(nodes, near=True).values() for node in near} == {
        "node 6",
        "node 7",
        "node 8",
    }
