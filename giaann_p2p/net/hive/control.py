"""The control socket of p2pd: one request per connection.

Every request has a timeout, because a p2pd that was stopped answers none. Every failure is an
OSError, with p2pd's own message if p2pd has sent one.
"""

import asyncio
import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from hivemind.proto import p2pd_pb2
from hivemind.utils.multiaddr import Multiaddr

from giaann_p2p.errors import UsageError
from giaann_p2p.net.hive.peer_id import libp2p_id, libp2p_name, peer_of_id
from giaann_p2p.net.hive.pipe import Pipe, framed
from giaann_p2p.swarm.wire.identity import Peer

MOST_MESSAGE = 1 << 20
_ASK_WITHIN = 5.0
_MOST_DIALLED = 4096
_AT_ONCE = 64


class Control:
    """The control socket of one p2pd."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._asking: set[Pipe] = set()
        self.streams: set[Pipe] = set()
        """All open streams, including those that others opened."""
        self._dialled: dict[Peer, None] = {}  # the latest last

    async def me(self, within: float = _ASK_WITHIN) -> Peer:
        """Ask for p2pd's own peer."""
        answer = await self._ask(p2pd_pb2.Request(type=p2pd_pb2.Request.IDENTIFY), within)
        return peer_of_id(answer.identify.id)

    async def addresses(self, within: float = _ASK_WITHIN) -> tuple[str, ...]:
        """Ask for the addresses at which this peer can be reached, as far as p2pd knows."""
        answer = await self._ask(p2pd_pb2.Request(type=p2pd_pb2.Request.IDENTIFY), within)
        name = libp2p_name(peer_of_id(answer.identify.id))
        return tuple(f"{way}/p2p/{name}" for way in _unpacked(answer.identify.addrs))

    async def connect(self, peer: Peer, ways: Sequence[str], within: float) -> None:
        """Connect to a peer unless p2pd is connected; `ways`: addresses without the peer part."""
        request = p2pd_pb2.ConnectRequest(
            peer=libp2p_id(peer), addrs=_packed(ways), timeout=math.ceil(within)
        )
        await self._ask(p2pd_pb2.Request(type=p2pd_pb2.Request.CONNECT, connect=request), within)
        self._dialled.pop(peer, None)
        self._dialled[peer] = None
        if len(self._dialled) > _MOST_DIALLED:
            del self._dialled[next(iter(self._dialled))]

    def has_dialled(self, peer: Peer) -> bool:
        """Return whether this side recently connected to a peer on purpose."""
        return peer in self._dialled

    async def disconnect(self, numbers: Collection[bytes]) -> None:
        """Close all connections to peers, given by their libp2p ids.

        p2pd answers when it has said goodbye, which a slow reader delays: so it is asked over
        several connections at once.
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
        """Ask for the connected peers, as libp2p ids."""
        answer = await self._ask(p2pd_pb2.Request(type=p2pd_pb2.Request.LIST_PEERS), _ASK_WITHIN)
        return [info.id for info in answer.peers]

    async def peers(self) -> list[Peer]:
        """Ask for the connected peers; ids that cannot be peers of ours are left out."""
        found = []
        for number in await self.ids():
            try:
                found.append(peer_of_id(number))
            except UsageError:
                continue
        return found

    async def open_stream(self, peer: Peer, protocol: str, within: float) -> Pipe:
        """Open a stream to a peer; if that fails or is cancelled, none is left open."""
        request = p2pd_pb2.StreamOpenRequest(
            peer=libp2p_id(peer), proto=[protocol], timeout=math.ceil(within)
        )
        message = p2pd_pb2.Request(type=p2pd_pb2.Request.STREAM_OPEN, streamOpen=request)
        pipe = await self._dial(self.streams)
        try:
            answer = await _answer(pipe, message, within)
            if answer.streamInfo.peer != libp2p_id(peer):
                raise ConnectionAbortedError("p2pd opened a stream to somebody else")
        except BaseException:
            pipe.abort()
            raise
        return pipe

    async def take_streams(self, protocol: str, socket: Path) -> None:
        """Have p2pd deliver the streams that others open to another socket."""
        request = p2pd_pb2.StreamHandlerRequest(
            addr=Multiaddr(f"/unix{socket}").to_bytes(), proto=[protocol], balanced=False
        )
        message = p2pd_pb2.Request(type=p2pd_pb2.Request.STREAM_HANDLER, streamHandler=request)
        await self._ask(message, _ASK_WITHIN)

    def close(self, why: str) -> None:
        """Abort all requests and streams."""
        for pipe in [*self._asking, *self.streams]:
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
            raise ConnectionRefusedError(f"p2pd is not there: {error.strerror}") from None
        except asyncio.CancelledError:
            pipe.abort()  # it may have been made just now
            raise
        return pipe


async def opened_by(pipe: Pipe, within: float) -> tuple[Peer, str]:
    """Return the peer that opened a delivered stream, and the stream's protocol."""
    async with asyncio.timeout(within):
        info = p2pd_pb2.StreamInfo.FromString(await pipe.message(MOST_MESSAGE))
    return peer_of_id(info.peer), info.proto


async def _answer(pipe: Pipe, request: Any, within: float) -> Any:  # noqa: ANN401  (protobuf)
    async with asyncio.timeout(within):
        await pipe.write([framed(request.SerializeToString())])
        answer = p2pd_pb2.Response.FromString(await pipe.message(MOST_MESSAGE))
    if answer.type == p2pd_pb2.Response.ERROR:
        raise ConnectionRefusedError(answer.error.msg or "p2pd refused, and did not say why")
    return answer


def _packed(ways: Sequence[str]) -> list[bytes]:
    """Return addresses in p2pd's encoding, without any that cannot be encoded."""
    found = []
    for way in ways:
        try:
            found.append(Multiaddr(way).to_bytes())
        except ValueError:  # all that multiaddr raises; a stranger may have written the address
            continue
    return found


def _unpacked(addresses: Sequence[bytes]) -> list[str]:
    found = []
    for address in addresses:
        try:
            found.append(str(Multiaddr(address)))
        except ValueError:  # of a protocol that p2pd knows, and hivemind does not
            continue
    return found
