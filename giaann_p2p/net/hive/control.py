"""The control socket of p2pd: each request has a connection of its own.

Every request has a timeout, because a stopped p2pd answers none. Every failure is an OSError, with
p2pd's own message if p2pd has sent one.
"""

import asyncio
import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from giaann_p2p.errors import UsageError
from giaann_p2p.net.hive.bindings import Multiaddr, p2pd_pb2
from giaann_p2p.net.hive.peer_id import libp2p_id, libp2p_name, peer_of_id
from giaann_p2p.net.hive.pipe import Pipe, framed
from giaann_p2p.swarm.wire.identity import Peer

MOST_MESSAGE = 1 << 20
"""The most bytes of one message from p2pd."""
_ASK_WITHIN = 5.0
"""The seconds that p2pd has to answer a request."""
_MOST_DIALLED = 4096
"""The most peers that are remembered as dialled."""
_AT_ONCE = 64
"""The most connections to p2pd over which peers are disconnected in parallel."""


class Control:
    """A client of the control socket of one p2pd."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._asking: set[Pipe] = set()
        self._holding: set[Pipe] = set()
        self.streams: set[Pipe] = set()
        """All open streams to other peers, including those that other peers opened."""
        self._dialled: dict[Peer, None] = {}  # the latest dial last

    async def hold(self) -> None:
        """Open the connection that keeps p2pd alive until `close`.

        p2pd ends when this connection breaks; before there is one, it ends by its idle timeout.
        """
        kind = p2pd_pb2.Request.PERSISTENT_CONN_UPGRADE
        pipe = await self._dial(self._holding)
        try:
            await _answer(pipe, p2pd_pb2.Request(type=kind), _ASK_WITHIN)
        except BaseException:
            pipe.abort()
            raise

    async def me(self, within: float = _ASK_WITHIN) -> Peer:
        """Ask p2pd for the peer whose key it uses."""
        answer = await self._ask(p2pd_pb2.Request(type=p2pd_pb2.Request.IDENTIFY), within)
        return peer_of_id(answer.identify.id)

    async def addresses(self, within: float = _ASK_WITHIN) -> tuple[str, ...]:
        """Ask p2pd for the addresses at which this peer can be reached, as far as it knows."""
        answer = await self._ask(p2pd_pb2.Request(type=p2pd_pb2.Request.IDENTIFY), within)
        name = libp2p_name(peer_of_id(answer.identify.id))
        return tuple(f"{way}/p2p/{name}" for way in _unpacked(answer.identify.addrs))

    async def connect(self, peer: Peer, ways: Sequence[str], within: float) -> None:
        """Connect to a peer unless p2pd is connected; `ways` are addresses without /p2p/ parts."""
        request = p2pd_pb2.ConnectRequest(
            peer=libp2p_id(peer), addrs=_packed(ways), timeout=math.ceil(within)
        )
        await self._ask(p2pd_pb2.Request(type=p2pd_pb2.Request.CONNECT, connect=request), within)
        self._dialled.pop(peer, None)
        self._dialled[peer] = None
        if len(self._dialled) > _MOST_DIALLED:
            del self._dialled[next(iter(self._dialled))]

    def has_dialled(self, peer: Peer) -> bool:
        """Return whether this peer recently connected to another peer on purpose."""
        return peer in self._dialled

    async def disconnect(self, numbers: Collection[bytes]) -> None:
        """Close all connections to some peers, given by their libp2p ids.

        p2pd answers only after it has said goodbye to the peer, which a slow peer delays. So the
        requests go over several connections to p2pd at once.
        """
        left = list(numbers)
        await asyncio.gather(*[self._disconnect(left[n::_AT_ONCE]) for n in range(_AT_ONCE)])

    async def _disconnect(self, numbers: Sequence[bytes]) -> None:
        if not numbers:
            return
        kind = p2pd_pb2.Request.DISCONNECT
        pipe = await self._dial(self._asking)
        try:
            for number in numbers:
                request = p2pd_pb2.DisconnectRequest(peer=number)
                await _answer(pipe, p2pd_pb2.Request(type=kind, disconnect=request), _ASK_WITHIN)
        finally:
            pipe.abort()

    async def ids(self) -> list[bytes]:
        """Ask p2pd for the connected peers, as libp2p ids."""
        answer = await self._ask(p2pd_pb2.Request(type=p2pd_pb2.Request.LIST_PEERS), _ASK_WITHIN)
        return [info.id for info in answer.peers]

    async def peers(self) -> list[Peer]:
        """Ask p2pd for the connected peers, without ids that no peer of a swarm can have."""
        found = []
        for number in await self.ids():
            try:
                found.append(peer_of_id(number))
            except UsageError:
                continue
        return found

    async def open_stream(self, peer: Peer, protocol: str, within: float) -> Pipe:
        """Open a stream to a peer; if that fails or is cancelled, leave none open."""
        request = p2pd_pb2.StreamOpenRequest(
            peer=libp2p_id(peer), proto=[protocol], timeout=math.ceil(within)
        )
        message = p2pd_pb2.Request(type=p2pd_pb2.Request.STREAM_OPEN, streamOpen=request)
        pipe = await self._dial(self.streams)
        try:
            answer = await _answer(pipe, message, within)
            if answer.streamInfo.peer != libp2p_id(peer):
                raise ConnectionAbortedError("p2pd opened a stream to a wrong peer")
        except BaseException:
            pipe.abort()
            raise
        return pipe

    async def take_streams(self, protocol: str, socket: Path) -> None:
        """Make p2pd deliver the streams that other peers open to another socket."""
        request = p2pd_pb2.StreamHandlerRequest(
            addr=Multiaddr(f"/unix{socket}").to_bytes(), proto=[protocol], balanced=False
        )
        message = p2pd_pb2.Request(type=p2pd_pb2.Request.STREAM_HANDLER, streamHandler=request)
        await self._ask(message, _ASK_WITHIN)

    def close(self, why: str) -> None:
        """Abort all requests and streams; they fail with `why` as the reason."""
        for pipe in [*self._asking, *self._holding, *self.streams]:
            pipe.abort(why)

    async def _ask(self, request: Any, within: float) -> Any:  # noqa: ANN401  (protobuf)
        pipe = await self._dial(self._asking)
        try:
            return await _answer(pipe, request, within)
        finally:
            pipe.abort()

    async def _dial(self, among: set[Pipe]) -> Pipe:
        pipe = Pipe(among)
        loop = asyncio.get_running_loop()
        try:
            await loop.create_unix_connection(lambda: pipe, str(self._socket))
        except OSError as error:
            raise ConnectionRefusedError(f"p2pd cannot be reached: {error.strerror}") from None
        except asyncio.CancelledError:
            pipe.abort()  # the connection may just have opened
            raise
        return pipe


async def opened_by(pipe: Pipe, within: float) -> tuple[Peer, str]:
    """Return the peer that opened a delivered stream, and the stream's protocol name."""
    async with asyncio.timeout(within):
        info = p2pd_pb2.StreamInfo.FromString(await pipe.message(MOST_MESSAGE))
    return peer_of_id(info.peer), info.proto


async def _answer(pipe: Pipe, request: Any, within: float) -> Any:  # noqa: ANN401  (protobuf)
    async with asyncio.timeout(within):
        await pipe.write([framed(request.SerializeToString())])
        answer = p2pd_pb2.Response.FromString(await pipe.message(MOST_MESSAGE))
    if answer.type == p2pd_pb2.Response.ERROR:
        raise ConnectionRefusedError(
            answer.error.msg or "p2pd refused the request without a reason"
        )
    return answer


def _packed(ways: Sequence[str]) -> list[bytes]:
    """Return addresses in p2pd's encoding; skip those that cannot be encoded."""
    found = []
    for way in ways:
        try:
            found.append(Multiaddr(way).to_bytes())
        except ValueError:  # a stranger may have written the address
            continue
    return found


def _unpacked(addresses: Sequence[bytes]) -> list[str]:
    found = []
    for address in addresses:
        try:
            found.append(str(Multiaddr(address)))
        except ValueError:  # its protocol is known to p2pd, but not to hivemind
            continue
    return found
