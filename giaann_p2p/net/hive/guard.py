"""A filter between hivemind's DHT and the network: it checks every message in both directions.

hivemind's DHT finds the nodes near a key; shelf.py keeps the records at those nodes. So nothing
that a stranger wrote reaches hivemind's own store, or its deserialiser. A node's key is derived
from its peer, and a node that claims another key is not believed. Where membership is restricted,
each message carries its sender's token, and strangers are neither asked nor answered.

Each message also carries addresses of nodes (see ways.py), because p2pd cannot look them up.

Most calls want records only: these calls say so, and the answers name no nodes. Otherwise an answer
names up to twenty nodes for each key, which at rest would be most of the bytes, and most of the
work of both sides.

A node's answer is limited to the size that an honest answer can have, and kept apart from those of
other nodes (see finding.py). So the reader, which verifies each record, knows which node lied.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from math import inf
from typing import Any

import msgspec
from hivemind.p2p import P2P, PeerID
from hivemind.proto import dht_pb2

from giaann_p2p.errors import MessageError, RecordError, UsageError
from giaann_p2p.net.hive.answer_times import AnswerTimes
from giaann_p2p.net.hive.finding import Finding
from giaann_p2p.net.hive.peer_id import peer_of_id
from giaann_p2p.net.hive.shelf import KEY_BYTES, Shelf, node_key
from giaann_p2p.net.hive.ways import MOST_KNOWN, Ways
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Peer, to_text

_LOG = logging.getLogger(__name__)
MOST_KEYS = 16
"""The most keys in one request to a node."""
MOST_NEIGHBOURS = 20
"""The most nodes that an answer names for each key."""
_MOST_ANSWER = 1 << 21
"""The most bytes of records in an answer. p2pd drops messages over 4 MiB, and then the node that
asked would get no answer."""
_MET_FOR = 300.0
"""The seconds after a call from or to a node, or a dial, for which it is called without dialling it
first. If its connection has broken since, that call may fail, and the next one dials."""
_SURELY_MET_FOR = 30.0
"""The seconds for which a node that does not answer in time is still taken for connected, but slow.
"""
_RECORDS_ONLY = b"records only"
"""The mark of a request whose answer should name no nodes, in a field that hivemind leaves empty.
Earlier releases ignore it."""
_wants_no_nodes = ContextVar("_wants_no_nodes", default=False)
"""Whether a call wants records only."""
Handler = Callable[[Any, Any], Awaitable[Any]]
Dial = Callable[[Peer, Sequence[str]], Awaitable[None]]
_RECORDS = msgspec.msgpack.Decoder(list[bytes])
"""Decodes the records in an answer: a list of encoded records."""


class Guard:
    """A replacement for hivemind's P2P object, which checks all messages of the DHT."""

    def __init__(
        self,
        p2p: P2P,
        swarm_id: bytes,
        shelf: Shelf,
        clock: Callable[[], float],
        heard: Callable[[PeerID], None],
        dial: Dial,
        mine: Callable[[], Sequence[str]],
        ways: Ways,
        answers: AnswerTimes,
        admission: Admission | None = None,
        token: bytes = b"",
    ) -> None:
        """Create a filter around `p2p`.

        `dial` connects to a node by its addresses, and raises OSError if that fails. `heard` is
        called for each node that sends a valid request. `mine` returns this node's own addresses;
        `ways` keeps those of other nodes, and `answers` how long they take to answer.
        """
        self.peer_id: PeerID = p2p.peer_id
        self.findings: set[Finding] = set()
        """The searches that are in progress."""
        self.answered = -inf
        """When a node last answered a call of this one, by the loop's clock."""
        self.answers = answers
        """How long nodes take to answer what this one wants to know. Other answers do not count, or
        nodes could answer these alone, and still be asked again."""
        self._p2p = p2p
        self._swarm_id = swarm_id
        self._shelf = shelf
        self._clock = clock
        self._heard = heard
        self._dial, self._mine, self._ways = dial, mine, ways
        self._me = peer_of_id(p2p.peer_id.to_bytes())
        self._admission, self._token = admission, token
        self._handlers: dict[str, Handler] = {}
        self._names: list[str] = []
        self._calls: set[asyncio.Task[Any]] = set()
        self._met: dict[Peer, float] = {}  # when each was last known to be connected
        self._closed = False

    def close(self) -> None:
        """Cancel all calls to other nodes, and let later ones fail at once."""
        self._closed = True
        for call in list(self._calls):
            call.cancel()

    async def leave(self) -> None:
        """Stop answering the calls of other nodes."""
        for name in self._names:
            await self._p2p.remove_protobuf_handler(name)

    @contextmanager
    def records_only(self) -> Iterator[None]:
        """Let the searches that begin in the context ask for records, but for no nodes."""
        before = _wants_no_nodes.set(True)
        try:
            yield
        finally:
            _wants_no_nodes.reset(before)

    # Called by hivemind's DHT.

    async def add_protobuf_handler(
        self,
        name: str,
        handler: Handler,
        message: Any,  # noqa: ANN401  (a protobuf type)
        **options: Any,  # noqa: ANN401
    ) -> None:
        """Register one of hivemind's handlers, with this filter's checks in front of it."""
        method = name.rpartition(".")[2]
        ours = {"rpc_ping": self._ping, "rpc_find": self._find, "rpc_store": self._store}
        self._handlers[method] = handler
        self._names.append(self._name(method))
        await self._p2p.add_protobuf_handler(
            self._name(method), self._minded(ours[method]), message
        )

    async def remove_protobuf_handler(self, name: str, **options: Any) -> None:  # noqa: ANN401
        """Do nothing, because `leave` removes the handlers."""

    async def call_protobuf_handler(
        self,
        peer_id: PeerID,
        name: str,
        request: Any,  # noqa: ANN401
        answer: Any,  # noqa: ANN401  (a protobuf type)
    ) -> Any:  # noqa: ANN401
        """Call another node, and return its answer without the parts that cannot be right."""
        peer = peer_of_id(peer_id.to_bytes())
        name = self._name(name.rpartition(".")[2])
        request.auth.client_access_token.signature = self._token
        request.auth.nonce = self._ways.packed(self._me, self._mine())
        if _wants_no_nodes.get():
            request.auth.service_public_key = _RECORDS_ONLY
        clock, is_find = asyncio.get_running_loop().time, answer is dht_pb2.FindResponse
        began = clock()
        try:
            async with asyncio.timeout(self.answers.timeout):
                found = await self._call(self._asked(peer, peer_id, name, request, answer))
            took = clock() - began
            self._check_node(peer, found.peer.node_id)
            self._check_member(peer, found.auth.service_access_token.signature)
            self._ways.learn(peer, found.auth.nonce)
            if is_find:
                self._harvest(peer_id, request, found)
                self.answers.answered(peer, took, clock())
        except Exception:
            if is_find:
                self.answers.silent(peer, clock() - began)
            raise
        self.answered = clock()
        return found

    def _name(self, method: str) -> str:
        """Return the libp2p protocol name of a method, which differs for each swarm."""
        return f"/giaann/{to_text(self._swarm_id)}/{method}/1"

    async def _asked(
        self,
        peer: Peer,
        peer_id: PeerID,
        name: str,
        request: Any,  # noqa: ANN401
        answer: Any,  # noqa: ANN401  (a protobuf type)
    ) -> Any:  # noqa: ANN401
        """Call a node over an existing connection, or dial the node's known addresses first."""
        if not self._is_met(peer, _MET_FOR) and (ways := self._ways.of(peer)):
            with suppress(OSError):  # p2pd may know other addresses; otherwise the call fails
                await self._dial(peer, ways)
                self._meet(peer)
        try:
            found = await self._p2p.call_protobuf_handler(peer_id, name, request, answer)
        except BaseException as error:
            slow = isinstance(error, asyncio.CancelledError) and self._is_met(peer, _SURELY_MET_FOR)
            if not slow:
                self._met.pop(peer, None)
            raise
        self._meet(peer)
        return found

    def _is_met(self, peer: Peer, seconds: float) -> bool:
        return asyncio.get_running_loop().time() < self._met.get(peer, -inf) + seconds

    def _meet(self, peer: Peer) -> None:
        """Note that p2pd is connected to a node now."""
        self._met.pop(peer, None)
        self._met[peer] = asyncio.get_running_loop().time()
        if len(self._met) > MOST_KNOWN:
            del self._met[next(iter(self._met))]

    async def _call(self, call: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401
        if self._closed:
            call.close()
            raise ConnectionAbortedError("this peer is leaving the network")
        task = asyncio.ensure_future(call)
        self._calls.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if self._closed:
                raise ConnectionAbortedError("this peer is leaving the network") from None
            raise
        finally:
            self._calls.discard(task)

    # Calls from others.

    def _minded(self, handler: Handler) -> Handler:
        """Wrap a handler: check each request, and hide error details that strangers could see."""

        async def minded(request: Any, context: Any) -> Any:  # noqa: ANN401
            try:
                peer = peer_of_id(context.remote_id.to_bytes())
                self._check_node(peer, request.peer.node_id)
                self._check_member(peer, request.auth.client_access_token.signature)
                self._ways.learn(peer, request.auth.nonce)
                self._heard(context.remote_id)
                self._meet(peer)
                response = await handler(request, context)
                response.auth.service_access_token.signature = self._token
                response.auth.nonce = self._ways.packed(self._me, self._mine(), _named(response))
                return response
            except (MessageError, UsageError) as error:
                raise MessageError(str(error)) from None
            except Exception:  # noqa: BLE001  (hivemind may raise anything)
                _LOG.debug("a request of another node failed", exc_info=True)
                raise MessageError("this peer failed to answer") from None

        return minded

    async def _ping(self, request: Any, context: Any) -> Any:  # noqa: ANN401
        request.validate = False  # or strangers could make this peer call back and wait
        return await self._handlers["rpc_ping"](request, context)

    async def _find(self, request: Any, context: Any) -> Any:  # noqa: ANN401
        _check_keys(request.keys)
        if request.auth.service_public_key == _RECORDS_ONLY:
            response = dht_pb2.FindResponse(peer=await self._pinged(request, context))
            response.results.extend([dht_pb2.FindResult() for _ in request.keys])
        else:
            response = await self._handlers["rpc_find"](request, context)
        room = _MOST_ANSWER
        for key, result in zip(request.keys, response.results, strict=True):
            records = self._shelf.get(key, self._clock())
            result.expiration_time = len(records)
            value = msgspec.msgpack.encode(records) if records else b""
            if len(value) <= room:
                result.value = value
                room -= len(value)
        return response

    async def _store(self, request: Any, context: Any) -> Any:  # noqa: ANN401
        _check_keys(request.keys)
        count = len(request.keys)
        if len(request.values) != count or len(request.expiration_time) != count:
            raise MessageError("values: their number differs from that of the keys")
        peer = peer_of_id(context.remote_id.to_bytes())
        asked = zip(request.keys, request.values, request.expiration_time, strict=True)
        taken = [self._take(peer, key, value, lifetime) for key, value, lifetime in asked]
        return dht_pb2.StoreResponse(store_ok=taken, peer=await self._pinged(request, context))

    async def _pinged(self, request: Any, context: Any) -> Any:  # noqa: ANN401
        """Have hivemind note the node that sent a request; return this node's own description."""
        ping = dht_pb2.PingRequest(peer=request.peer)
        return (await self._handlers["rpc_ping"](ping, context)).peer

    def _take(self, peer: Peer, key: bytes, value: bytes, lifetime: float) -> bool:
        try:
            self._shelf.put(key, value, peer, lifetime, self._clock())
        except RecordError:
            return False
        return True

    # Answers of others.

    def _harvest(self, peer_id: PeerID, request: Any, response: Any) -> None:  # noqa: ANN401
        if len(response.results) != len(request.keys):
            raise MessageError("results: their number differs from that of the keys")
        most = 0 if _wants_no_nodes.get() else MOST_NEIGHBOURS
        for key, result in zip(request.keys, response.results, strict=True):
            self._keep_honest_neighbours(result, most)
            for finding in self.findings:
                if key in finding.keys:
                    self._gather(finding, peer_id, key, result, alone=len(request.keys) == 1)
            result.ClearField("value")
            result.ClearField("expiration_time")
            result.type = dht_pb2.NOT_FOUND

    def _gather(
        self,
        finding: Finding,
        peer_id: PeerID,
        key: bytes,
        result: Any,  # noqa: ANN401
        *,
        alone: bool,
    ) -> None:
        finding.answers += 1
        if result.value:
            finding.take(peer_id, key, _records_of(result.value))
        elif result.expiration_time > 0 and not alone:
            finding.cut.setdefault(peer_id, []).append(key)

    def _keep_honest_neighbours(self, result: Any, most: int) -> None:  # noqa: ANN401
        pairs = list(zip(result.nearest_node_ids, result.nearest_peer_ids, strict=False))
        del result.nearest_node_ids[:], result.nearest_peer_ids[:]
        for node_id, number in pairs[:most]:
            try:
                self._check_node(peer_of_id(number), node_id)
            except (UsageError, MessageError):
                continue
            result.nearest_node_ids.append(node_id)
            result.nearest_peer_ids.append(number)

    def _check_member(self, peer: Peer, token: bytes) -> None:
        if self._admission is None:
            return
        if why := self._admission.fault(peer, token, self._clock()):
            raise MessageError(why)

    def _check_node(self, peer: Peer, node_id: bytes) -> None:
        if node_id != node_key(self._swarm_id, peer):
            raise MessageError("node: it is of another swarm, or claims a key that is not its own")


def _named(response: Any) -> Iterator[Peer]:  # noqa: ANN401
    """Yield the nodes that an answer names; only an answer to a search names any."""
    for result in response.results if isinstance(response, dht_pb2.FindResponse) else ():
        for number in result.nearest_peer_ids:
            with suppress(UsageError):
                yield peer_of_id(number)


def _records_of(value: bytes) -> list[bytes]:
    if len(value) > _MOST_ANSWER:
        raise MessageError(f"value: {len(value):,} bytes; an answer may have {_MOST_ANSWER:,}")
    try:
        return _RECORDS.decode(value)
    except msgspec.MsgspecError as error:
        raise MessageError(f"value: it is not a list of records: {error}") from None


def _check_keys(keys: Any) -> None:  # noqa: ANN401
    if not 1 <= len(keys) <= MOST_KEYS:
        raise MessageError(f"keys: {len(keys):,} of them; 1 to {MOST_KEYS} are allowed")
    if any(len(key) != KEY_BYTES for key in keys):
        raise MessageError(f"keys: each must have {KEY_BYTES} bytes")
