"""The peer directory over the network: nodes of hivemind's DHT keep the peers' records.

1. Each peer is a node of the DHT. A record is kept by the nodes nearest to the key of its place,
   and by its own peer.
2. Joining runs in the background for ever: while no node is known, and after each restart of p2pd,
   the seeds are retried with backoff. Calls wait only for the first try.
3. A node that does not answer delays a call by `_CALL_WITHIN` once, or longer where all nodes are
   slow (see answer_times.py), and is then asked last for a while. A call that finds no node
   triggers an immediate retry of the seeds, instead of waiting for the next refresh; but not if
   other nodes have answered lately. Then the nodes are slow, not gone, as on an overloaded machine,
   which retries would only keep so.
4. The two sides of a partition exclude each other, and then no known node would ever name a node of
   the other side again. So each refresh also dials some seeds that are not known nodes. This heals
   the partition, and finds peers that came back and know nobody else.
5. A call ends before its caller times out: see `node.options.look_within`.
6. Looks are short (see short_look.py): they ask nodes that a search found (see searches.py).
7. The first look asks for all records, and later ones for what is new since (see looks.py). A peer
   posts a bare pulse, too, and its whole record only to nodes that do not have it.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from math import inf

from hivemind.dht.node import DHTNode
from hivemind.dht.routing import DHTID
from hivemind.p2p import PeerID
from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError

from giaann_p2p.backoff import Backoff
from giaann_p2p.errors import GiaannError, RecordError, UsageError
from giaann_p2p.net.errors import NobodyYet, Unreachable
from giaann_p2p.net.hive.answer_times import AnswerTimes
from giaann_p2p.net.hive.finding import Finding
from giaann_p2p.net.hive.guard import MOST_NEIGHBOURS, Guard
from giaann_p2p.net.hive.host import Host
from giaann_p2p.net.hive.life import Life
from giaann_p2p.net.hive.looks import ASKED, REPLICAS, Looks
from giaann_p2p.net.hive.outside import outside
from giaann_p2p.net.hive.peer_id import libp2p_id, libp2p_name, peer_of_address
from giaann_p2p.net.hive.searches import Searches
from giaann_p2p.net.hive.shelf import ALL, NOTHING, ROLES, Shelf, news_key, node_key
from giaann_p2p.net.hive.ways import MOST_KNOWN, Ways
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.pulse import bare, shown_by
from giaann_p2p.swarm.wire.record import Role

_LOG = logging.getLogger(__name__)
_CALL_WITHIN, _SLOW_CALL_WITHIN = 1.5, 3.5
"""The seconds that one call to a node may take, and the most where all nodes are slow."""
_WITHIN = 4.0
"""The seconds that one `post` or `look` may take."""
_CONNECT_WITHIN = 3.0
"""The seconds that dialling a seed may take."""
_BEGIN_WITHIN, _JOIN_WITHIN = 6.0, 12.0
"""The seconds that creating the DHT node, and one attempt to join, may take: such an attempt dials
seeds, calls them, and searches for nodes near this one."""
_LEFT_OUT = 5.0
"""The seconds for which a node that did not answer is asked last, and is not asked by searches;
doubled after each further failure."""
_ANSWERED_FOR, _REACHED_FOR = 10.0, 30.0
"""The seconds after an answer of another node, and after a look or post that came through, for both
of which a peer does not count as alone. Nodes that answer other calls only cannot keep it longer
from the seeds."""
_BACKOFF = Backoff(first=0.2, longest=10.0)
"""The pauses between attempts to join while no node is known, in seconds."""
_REFRESH = 30.0
"""The seconds between two refreshes, which look for new nodes."""
_STRAYS = 8
"""The number of randomly drawn seeds that are dialled at each refresh."""
_FIRST, _DOUBLINGS = 16, 3
"""How many seeds an isolated peer dials at first, and how often it dials twice as many: half of
them the last ones of the list, and half a random sample of the others. All at once could be more
than a machine can dial, because strangers can contribute any number of addresses. Nor do a hundred
peers that share an overloaded machine then all dial each other."""


class HiveBoard:
    """The peer directory as this peer's node of the DHT sees it; made by `start`."""

    def __init__(
        self,
        host: Host,
        swarm_id: bytes,
        rules: Callable[[], Rules],
        seeds: Callable[[], Iterable[str]],
        clock: Callable[[], float],
        admission: Admission | None,
        token: bytes,
        *,
        near: bool,
    ) -> None:
        self._host = host
        self._admission, self._token = admission, token
        self._swarm_id = swarm_id
        self._seeds = seeds
        self._clock = clock
        self._shelf = Shelf(host.me, swarm_id, rules, admission=admission, near=near)
        self._ways = Ways()
        self._guard: Guard | None = None
        self._node: DHTNode
        self._joining: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()  # a join has been tried since p2pd started
        self._alone = asyncio.Event()  # a call found no node that answers
        self._reached = -inf  # when a look or post last came through, by the loop's clock
        self._searches: Searches
        self._looks: dict[Role, Looks] = {}
        self.forget()

    def __repr__(self) -> str:
        return f"<HiveBoard: {self.nodes} nodes known, {self._shelf!r}>"

    @classmethod
    async def start(
        cls,
        host: Host,
        swarm_id: bytes,
        rules: Callable[[], Rules],
        seeds: Callable[[], Iterable[str]],
        clock: Callable[[], float],
        admission: Admission | None = None,
        token: bytes = b"",
        *,
        near: bool = True,
    ) -> "HiveBoard":
        """Take part in the DHT as a node of this peer.

        `seeds` returns addresses of peers that may be alive, and is called whenever some are
        needed. The configured seeds must come last, because any stranger may have contributed the
        others.

        `clock` must work as swarm/wire/record.py demands: it returns seconds since 1970 and never
        goes back. It must be the peer's own clock, not one that stood still while the machine
        slept: that would make valid records look as if they came from the future.

        With an `admission`, only members take part, and this peer shows them its `token`. `near`
        says whether the places of records lie near each other, as the manifest demands.
        """
        board = cls(host, swarm_id, rules, seeds, clock, admission, token, near=near)
        host.know(board._ways.has_heard)
        await host.each_life(board._live)
        return board

    @property
    def nodes(self) -> int:
        """The number of other nodes of the DHT that this node knows."""
        return self._searches.nodes if self._guard else 0

    @property
    def refused(self) -> int:
        """The number of records that this node refused to keep."""
        return self._shelf.refused

    async def post(self, role: Role, record: bytes, lifetime: float) -> None:
        """Post this peer's record for some seconds; raise Unreachable if no other node took it."""
        me = self._host.me
        key = self._shelf.key(role, me)
        try:
            self._shelf.put(key, record, me, lifetime, self._clock())
        except RecordError as error:
            raise Unreachable(f"no node would take this record: {error}") from None
        taken: list[bool] = []
        with suppress(TimeoutError):  # the nodes that took it by then are enough
            async with asyncio.timeout(_WITHIN):
                await self._tried.wait()
                await self._spread(role, key, record, lifetime, taken)
        if not any(taken):
            self._retry()
            raise Unreachable(
                f"no other node took the record; {self.nodes} are known, {len(taken)} refused it"
            )
        self._reached = asyncio.get_running_loop().time()

    def held(self, role: Role) -> list[bytes]:
        """Return a role's records that this node keeps, its own included."""
        now = self._clock()
        return [record for key in self._shelf.keys(role) for record in self._shelf.get(key, now)]

    def forget(self) -> None:
        """Have the next look of each role ask for all records, even if a look is under way."""
        self._looks = {role: Looks(self._shelf.keys(role)) for role in ROLES}

    def missed(
        self,
        live: int,
        overdue: Callable[[Role, float], Collection[Peer]],
        strange: Collection[int],
    ) -> bool:
        """Note what the last looks left open; return whether the next ones should come soon."""
        looks = self._looks.items()
        soon = [one.missed(live, partial(overdue, role), strange) for role, one in looks]
        return any(soon)

    async def look(self, role: Role) -> list[list[bytes]]:
        """Return a role's news, one list per node; raise Unreachable if no node answered."""
        guard, began = self._guard, self._clock()
        if guard is None:
            raise Unreachable("the peer directory is not ready while p2pd starts; try again")
        searches = self._searches  # p2pd may be restarted meanwhile
        looks, complete = self._looks[role], False  # `forget` may be called meanwhile
        news, further = looks.news(began), looks.further(began)
        finding = Finding([*self._shelf.keys(role, news), *further])
        guard.findings.add(finding)
        try:
            with suppress(TimeoutError):  # what has arrived by then is returned
                async with asyncio.timeout(_WITHIN):
                    await self._tried.wait()
                    of = REPLICAS if news == ALL else ASKED
                    asked = dict.fromkeys(self._shelf.keys(role, news), of)
                    if not await searches.ask(role, asked):
                        await searches.wait(role)
                        await searches.ask(role, asked)
                    if further:
                        await searches.ask(role, further)
                    complete = True
                    await asyncio.gather(
                        *[self._rest_of(peer_id, finding) for peer_id in finding.cut]
                    )
        finally:
            guard.findings.discard(finding)
        if not finding.answers:
            if not searches.is_running(role):  # a search may be slow because all is
                self._retry()
            raise self._nobody()
        self._reached = asyncio.get_running_loop().time()
        looks.looked(began, self._clock(), complete=complete)
        return [found for found in (self.held(role), *finding.brought()) if found]

    async def close(self) -> None:
        """Leave the DHT, and stop all background work."""
        self._host.forget(self._live)
        await self._end(gone=False)

    async def _live(self, life: Life) -> None:
        """Join the DHT as a new node after p2pd has started."""
        await self._end(gone=True)
        self.forget()
        guard = Guard(
            (await life.unary()).p2p,
            self._swarm_id,
            self._shelf,
            self._clock,
            self._heard,
            partial(life.control.connect, within=_CALL_WITHIN),
            lambda: outside(life.addresses),
            self._ways,
            AnswerTimes(_CALL_WITHIN, _SLOW_CALL_WITHIN, MOST_KNOWN),
            self._admission,
            self._token,
        )
        try:
            async with asyncio.timeout(_BEGIN_WITHIN):  # if p2pd ends now, hivemind waits for ever
                self._node = await self._new_node(guard)
        except (P2PDaemonError, asyncio.IncompleteReadError) as error:
            raise ConnectionAbortedError(
                f"the node of the peer directory cannot be started on p2pd: {error}"
            ) from None
        self._searches = Searches(self._node, guard, self._shelf.keys)
        self._guard = guard
        self._tried.clear()
        self._joining = asyncio.create_task(self._join_for_ever())

    async def _new_node(self, guard: Guard) -> DHTNode:
        return await DHTNode.create(
            p2p=guard,
            node_id=DHTID.from_bytes(node_key(self._swarm_id, self._host.me)),
            bucket_size=MOST_NEIGHBOURS,
            num_replicas=REPLICAS,
            wait_timeout=max(_CALL_WITHIN, _SLOW_CALL_WITHIN),  # the guard's is shorter
            blacklist_time=_LEFT_OUT,
            cache_locally=False,
            cache_nearest=0,
            cache_size=1,
            cache_on_store=False,
        )

    def _heard(self, peer_id: PeerID) -> None:
        """End the exclusion of a node, because the node has been heard from."""
        if self._guard is not None:
            self._node.blacklist.register_success(peer_id)

    def _retry(self) -> None:
        """Let the seeds be retried now, unless other nodes have answered lately."""
        now = asyncio.get_running_loop().time()
        is_answered = self._guard is not None and now < self._guard.answered + _ANSWERED_FOR
        if not (is_answered and self.nodes and now < self._reached + _REACHED_FOR):
            self._alone.set()

    async def _end(self, *, gone: bool) -> None:
        guard, self._guard = self._guard, None
        if self._joining is not None:
            self._joining.cancel()
            await asyncio.gather(self._joining, return_exceptions=True)
        if guard is not None:
            guard.close()
            if not gone:
                with suppress(TimeoutError):  # p2pd may have ended before the board
                    async with asyncio.timeout(_CALL_WITHIN):
                        await guard.leave()
            await self._searches.end()

    async def _join_for_ever(self) -> None:
        backoff, alone = _BACKOFF, 0  # the number of tries in a row that began alone
        while True:
            alone = alone + 1 if self._alone.is_set() or not self.nodes else 0
            self._alone.clear()
            try:
                async with asyncio.timeout(_JOIN_WITHIN):
                    await self._join(alone)
            except TimeoutError:
                _LOG.info(
                    "joining the peer directory took more than %g s; trying again", _JOIN_WITHIN
                )
            except (GiaannError, OSError) as error:
                _LOG.info("joining the peer directory failed: %s; trying again", error)
            except Exception:  # noqa: BLE001  (else this node would never join again)
                _LOG.exception("joining the peer directory failed; trying again")
            self._tried.set()
            backoff = (backoff if alone else _BACKOFF).failed()
            await asyncio.sleep(backoff.pause)
            if not self.nodes:
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(_REFRESH):
                    await self._alone.wait()

    async def _join(self, alone: int) -> None:
        """Dial seeds, and find through them the nodes nearest to this one."""
        met = await self._host.connect(self._tried_next(alone), _CONNECT_WITHIN)
        await asyncio.gather(*[self._meet(peer) for peer in met])
        if self.nodes:
            await self._searches.nearest([node_key(self._swarm_id, self._host.me)])

    def _nobody(self) -> Unreachable:
        """Return the error for a call that no node has answered."""
        mine = f"/p2p/{libp2p_name(self._host.me)}"
        if not self.nodes and all(seed.endswith(mine) for seed in self._seeds()):
            return NobodyYet("no other peer is known yet; peers that join will connect to this one")
        return Unreachable(f"no node of the peer directory answered; {self.nodes} are known")

    def _tried_next(self, alone: int) -> list[str]:
        """Return addresses of seeds to dial, only of seeds not known as nodes if `alone` is 0.

        `alone` is the number of tries in a row that began without a node that answers.
        """
        nodes = self._node.protocol.routing_table.peer_id_to_uid
        ways: dict[Peer, list[str]] = {}
        for seed in _good(self._seeds()):
            peer = peer_of_address(seed)
            ways[peer] = [*ways.pop(peer, []), seed]  # in the order of each one's last address
        ways.pop(self._host.me, None)
        peers = list(ways)
        if alone:
            half = (_FIRST << min(alone - 1, _DOUBLINGS)) // 2
            chosen, further = peers[-half:], peers[:-half]
            chosen += random.sample(further, min(half, len(further)))
        else:
            strays = [peer for peer in peers if PeerID(libp2p_id(peer)) not in nodes]
            chosen = random.sample(strays, min(_STRAYS, len(strays)))
        return [way for peer in chosen for way in ways[peer]]

    async def _meet(self, peer: Peer) -> None:
        peer_id = PeerID(libp2p_id(peer))
        if await self._node.protocol.call_ping(peer_id) is not None:
            self._heard(peer_id)

    async def _rest_of(self, peer_id: PeerID, finding: Finding) -> None:
        """Ask a node for the records that its answer lacked; a slow node delays nobody else."""
        for key in finding.cut[peer_id]:
            if self._guard is not None:
                with self._guard.records_only():
                    await self._node.protocol.call_find(peer_id, [DHTID.from_bytes(key)])

    async def _spread(
        self, role: Role, key: bytes, record: bytes, lifetime: float, taken: list[bool]
    ) -> None:
        """Post a record to the nearest nodes that take it; append their verdicts to `taken`."""
        if self._guard is None:
            return
        searches = self._searches
        near = searches.near(role, key)
        await asyncio.gather(*[self._leave(node, key, record, lifetime, taken) for node in near])
        is_enough = 2 * sum(taken) > min(REPLICAS, self.nodes)
        if is_enough or (sum(taken) >= min(2, self.nodes) and searches.rests(role)):
            return  # the others get the next pulse
        search = news_key(key, NOTHING)  # the nodes need not send any records
        found = (await searches.nearest([search]))[search].values()
        left = [node for node in found if node not in near]
        while left and sum(taken) < REPLICAS:
            some = REPLICAS - sum(taken)
            wave, left = left[:some], left[some:]
            await asyncio.gather(
                *[self._leave(peer_id, key, record, lifetime, taken) for peer_id in wave]
            )

    async def _leave(
        self, peer_id: PeerID, key: bytes, record: bytes, lifetime: float, taken: list[bool]
    ) -> None:
        """Post a record to a node: whole if its pulse is the first or the bare pulse is refused."""
        is_first = shown_by(record).number == 0
        for data in (record,) if is_first else (bare(record), record):
            said = await self._node.protocol.call_store(
                peer_id, [DHTID.from_bytes(key)], [data], [float(lifetime)]
            )
            if not said or said[0]:  # a node that did not answer is not asked again
                break
        taken.append(bool(said) and bool(said[0]))


def _good(addresses: Iterable[str]) -> list[str]:
    found = []
    for address in addresses:
        try:
            peer_of_address(address)
        except UsageError as error:
            # A stranger's record may contain an invalid address.
            _LOG.debug("skipping an invalid seed: %s", error)
            continue
        found.append(address)
    return found
