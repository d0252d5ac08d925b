"""What p2pd can be told and asked, over its socket, one question a connection.

Every question has a deadline, for a p2pd that was stopped answers none. All that goes wrong is an
OSError, in p2pd's words if it has said any.
"""

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hivemind.proto import p2pd_pb2
from hivemind.utils.multiaddr import Multiaddr

from giaann_p2p.errors import UsageError
from giaann_p2p.net.hive.peer_id import libp2p_id, libp2p_name, peer_of_id
from giaann_p2p.net.hive.pipe import Pipe, framed
from giaann_p2p.swarm.identity import Peer

MOST_MESSAGE = 1 << 20
_ASK_WITHIN = 5.0


class Control:
    """One p2pd's socket."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._asking: set[Pipe] = set()
        self.streams: set[Pipe] = set()
        """All streams that are open, those that others opened as well."""

    async def me(self, within: float = _ASK_WITHIN) -> Peer:
        """Ask who p2pd is."""
        answer = await self._ask(p2pd_pb2.Request(type=p2pd_pb2.Request.IDENTIFY), within)
        return peer_of_id(answer.identify.id)

    async def addresses(self, within: float = _ASK_WITHIN) -> tuple[str, ...]:
        """Ask where this peer can be reached, as far as p2pd knows."""
        answer = await self._ask(p2pd_pb2.Request(type=p2pd_pb2.Request.IDENTIFY), within)
        name = libp2p_name(peer_of_id(answer.identify.id))
        return tuple(f"{way}/p2p/{name}" for way in _unpacked(answer.identify.addrs))

    async def connect(self, peer: Peer, ways: Sequence[str], within: float) -> None:
        """Connect to a peer, at once if p2pd is connected; ways are addresses without the peer."""
        request = p2pd_pb2.ConnectRequest(
            peer=libp2p_id(peer), addrs=_packed(ways), timeout=math.ceil(within)
        )
        await self._ask(p2pd_pb2.Request(type=p2pd_pb2.Request.CONNECT, connect=request), within)

    async def peers(self) -> list[Peer]:
        """Ask who is connected; those who can be no peers of ours are left out."""
        answer = await self._ask(p2pd_pb2.Request(type=p2pd_pb2.Request.LIST_PEERS), _ASK_WITHIN)
        found = []
        for info in answer.peers:
            try:
                found.append(peer_of_id(info.id))
            except UsageError:
                continue
        return found

    async def open_stream(self, peer: Peer, protocol: str, within: float) -> Pipe:
        """Open a stream to a peer; if that fails or is cancelled, none is left."""
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
        """Have the streams that others open brought to another socket."""
        request = p2pd_pb2.StreamHandlerRequest(
            addr=Multiaddr(f"/unix{socket}").to_bytes(), proto=[protocol], balanced=False
        )
        message = p2pd_pb2.Request(type=p2pd_pb2.Request.STREAM_HANDLER, streamHandler=request)
        await self._ask(message, _ASK_WITHIN)

    def close(self, why: str) -> None:
        """Break everything off."""
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
    """Return who has opened a stream that p2pd brings, and for which protocol."""
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
    """Return addresses as p2pd wants them, without those that it could not read."""
    found = []
    for way in ways:
        try:
            found.append(Multiaddr(way).to_bytes())
        except ValueError:  # what multiaddr raises, all of it; a stranger may have written them
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
