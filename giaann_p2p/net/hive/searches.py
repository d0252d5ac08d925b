"""Searches of the DHT for the nodes near the places of a role, and looks that rely on them.

1. A search asks some ten nodes, and so costs far more than a look that asks two. The looks of a
   role share one search at a time, and no look ends it: on a machine out of breath a search takes
   longer than a look, and if each look began another one, none would ever end.
2. While a new search runs, the last one serves. In place of a node that does not answer, another
   one near the same keys is asked. Unless it has answered lately, it is left out from then on. If
   too few are left, a new search begins, but not soon after the last one: then all are slow, and
   those left out are asked again.
3. In a small swarm the nodes near one place are near all others, too: see `_find`.

Each run of p2pd has a node of its own, and so its own `Searches`.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf
from typing import Any

from hivemind.dht.node import DHTNode
from hivemind.dht.routing import DHTID
from hivemind.p2p import PeerID

from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.hive.guard import MOST_KEYS, Guard
from giaann_p2p.net.hive.looks import REPLICAS
from giaann_p2p.net.hive.peer_id import peer_of_id
from giaann_p2p.net.hive.shelf import ALL, KEY_BYTES, NOTHING, news_key
from giaann_p2p.net.hive.short_look import Search, spread
from giaann_p2p.swarm.wire.record import Role

_LOG = logging.getLogger(__name__)
_BEAM = 8
"""The number of nodes near a key that are asked before the nearest of them count as found."""
_REGION = 16
"""The number of nodes to find near the first place of a role. More: one search serves for all
places of a larger swarm; less: it asks fewer nodes."""
_SEARCH_EVERY = 60.0
"""The seconds for which short looks rely on a search at first (see `Search.after`)."""
_REST, _LONGEST_REST = 4.0, 30.0
"""How many times longer than a search took, and the most seconds, for which no other one begins
because nodes are silent, or came."""


class Searches:
    """The searches of one node of the DHT; `keys` returns the keys of a role's places."""

    def __init__(
        self, node: DHTNode, guard: Guard, keys: Callable[[Role, int], list[bytes]]
    ) -> None:
        self.last: dict[Role, Search | None] = {}
        """The last search for each role; None if too many of its nodes did not answer."""
        self._node, self._guard, self._keys = node, guard, keys
        self._running: dict[Role, asyncio.Task[None]] = {}
        self._found: dict[Role, Search] = {}  # the last search, with the nodes that did not answer
        self._rests: dict[Role, float] = {}  # until when silence begins no further search
        self._tasks: set[asyncio.Task[Any]] = set()

    def __repr__(self) -> str:
        return f"<Searches: {len(self._tasks)} under way>"

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def nodes(self) -> int:
        """The number of other nodes that this node knows."""
        return len(self._node.protocol.routing_table.peer_id_to_uid)

    def is_running(self, role: Role) -> bool:
        """Return whether a search for the nodes near a role's places is under way."""
        return role in self._running and not self._running[role].done()

    def rests(self, role: Role) -> bool:
        """Return whether a search ended so lately that silent nodes are no reason for another."""
        return asyncio.get_running_loop().time() < self._rests.get(role, -inf)

    def begin(self, role: Role) -> asyncio.Task[None]:
        """Return the search for the nodes near a role's places; begin one if none runs."""
        if not self.is_running(role):
            self._running[role] = self._kept(asyncio.create_task(self._note(role)))
        return self._running[role]

    async def end(self) -> None:
        """Wait for all searches to end; they do once the guard is closed."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def wait(self, role: Role) -> None:
        """Wait for the search for a role; begin one if none runs. It outlives who waits for it."""
        search = self.begin(role)
        await asyncio.wait({search})
        search.result()

    def near(self, role: Role, key: bytes) -> Sequence[Any]:
        """Return the nodes near a place by the role's last search; begin a new one if it is old."""
        last = self.last.get(role)
        self._renew(role, last)
        return () if last is None else last.near.get(key, ())

    async def ask(self, role: Role, each: Mapping[bytes, int]) -> bool:
        """Ask nodes of the last search; return whether somebody answered for each key.

        `each` says of how many nodes near it each key is asked. In place of a node that does not
        answer, another one near the same keys is asked. If the search is too old, a new one begins,
        on which the next looks rely.
        """
        last = self.last.get(role)
        if last is None:
            return False
        self._renew(role, last)
        near = {key: [*last.near.get(news_key(key, ALL), ())] for key in each}
        left = dict(each)
        while asked := spread(near, left, MOST_KEYS, self._node.blacklist):
            calls = [
                self._node.protocol.call_find(peer_id, [DHTID.from_bytes(key) for key in keys])
                for peer_id, keys in asked.items()
            ]
            with self._guard.records_only():
                answers = await asyncio.gather(*calls)
            silent = set[Any]()
            for (peer_id, keys), said in zip(asked.items(), answers, strict=True):
                if said is None:  # then others are asked first for a while, if they are enough
                    self._node.blacklist.register_failure(peer_id)
                    silent.add(peer_id)
                else:
                    self._node.blacklist.register_success(peer_id)
                for key in keys:
                    near[key].remove(peer_id)
                    left[key] -= said is not None
            near = {key: [one for one in some if one not in silent] for key, some in near.items()}
            # Note it now: the look may end in the next wave.
            gone = {one for one in silent if self._is_gone(one)}
            if gone and last is not None and self.last.get(role) is last:
                self.last[role] = last = self._without(role, last, gone)
        return all(left[key] < some for key, some in each.items())

    async def nearest(
        self, keys: Sequence[bytes], beam: int = _BEAM
    ) -> dict[bytes, dict[DHTID, PeerID]]:
        """Return the nodes nearest to each key, nearest first, after a search through the DHT."""
        queries = [DHTID.from_bytes(key) for key in keys]
        # A cancelled search would leave tasks behind for ever; one that runs on ends by itself.
        search = self._kept(
            asyncio.create_task(
                self._node.find_nearest_nodes(
                    queries, k_nearest=beam, beam_size=beam, exclude_self=True
                )
            )
        )
        await asyncio.wait({search})
        if search.exception() is not None:
            raise Unreachable("the search for nodes of the peer directory failed; try again")
        found = search.result()
        return {query.to_bytes(): found[query] for query in queries}

    async def _note(self, role: Role) -> None:
        """Find the nodes near a role's places, and note them for the next looks and posts."""
        began = asyncio.get_running_loop().time()
        try:
            found = await self._find(self._keys(role, NOTHING))
        except Unreachable as error:  # no caller may be waiting for this search any more
            _LOG.info("%s", error)
            return
        heard = {
            news_key(key, ALL): [node for node in nodes.values() if not self._is_gone(node)]
            for key, nodes in found.items()
        }
        near = {key: nodes[:REPLICAS] for key, nodes in heard.items() if nodes}
        if near:
            now = asyncio.get_running_loop().time()
            self._rests[role] = now + min(_LONGEST_REST, _REST * (now - began))
            search = Search(near, self.nodes, now, _SEARCH_EVERY).after(self.last.get(role))
            self.last[role] = self._found[role] = search

    async def _find(self, keys: Sequence[bytes]) -> Mapping[bytes, Mapping[DHTID, PeerID]]:
        """Return the nodes nearest to each of a role's places, nearest first.

        The keys of all places may begin with the same bits. A node whose key begins so, too, is
        nearer to each place than any other node. If there are few, those nearest to the first place
        include them all, and the nearest of the others, too. The search for the first place finds
        fewer than there are if nodes are silent, so no conclusion is drawn from how many it found.
        """
        first = DHTID.from_bytes(keys[0])
        alike = min(_alike(first, DHTID.from_bytes(key)) for key in keys)
        if not alike:
            return await self.nearest(keys)
        found = (await self.nearest(keys[:1], _REGION))[keys[0]]
        if sum(_alike(first, node) >= alike for node in found) >= _BEAM:
            return await self.nearest(keys)
        return {key: _sorted(found, DHTID.from_bytes(key)) for key in keys}

    def _renew(self, role: Role, last: Search | None) -> None:
        """Begin a new search if there was none yet, or if it is too old, unless searches rest."""
        is_old = last is None or not last.holds(self.nodes, asyncio.get_running_loop().time())
        if is_old and not self.rests(role):
            self.begin(role)

    def _is_gone(self, node: PeerID) -> bool:
        """Return whether a node did not answer, and is not only slow.

        Slow nodes are asked again: others that are further from the keys keep fewer records.
        """
        if node not in self._node.blacklist:
            return False
        now = asyncio.get_running_loop().time()
        return not self._guard.answers.is_slow(peer_of_id(node.to_bytes()), now)

    def _without(self, role: Role, last: Search, gone: Collection[Any]) -> Search | None:
        """Return the last search without nodes that are gone; None if a new one is to begin."""
        return last.without(gone) or (self._found[role] if self.rests(role) else None)

    def _kept(self, task: asyncio.Task[Any]) -> asyncio.Task[Any]:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _alike(one: int, other: int) -> int:
    """Return the number of first bits in which two keys are alike."""
    return 8 * KEY_BYTES - (one ^ other).bit_length()


def _sorted(nodes: Mapping[DHTID, PeerID], key: DHTID) -> dict[DHTID, PeerID]:
    """Return nodes by their distance to a key, nearest first."""
    return {node: nodes[node] for node in sorted(nodes, key=key.xor_distance)}
