"""Streams between peers over libp2p, for calls (see net/streams.py).

After a failed dial libp2p backs off from that peer for 5 s, and longer each time, unless the peer
dials first. So after a restart of p2pd this peer connects to all peers that it recently had streams
with, so that they need not wait.
"""

import asyncio
from collections.abc import Callable, Sequence

from giaann_p2p.errors import UsageError
from giaann_p2p.net.hive.host import Host
from giaann_p2p.net.hive.life import Life
from giaann_p2p.net.hive.peer_id import peer_of_address, way_to
from giaann_p2p.net.hive.pipe import Pipe
from giaann_p2p.net.transport import ByteStream
from giaann_p2p.swarm.wire.identity import Peer

_DIAL_WITHIN = 30.0
"""The seconds after which p2pd gives a dial up. The caller's timeout is shorter, and ends p2pd's
dial at once."""
_AGAIN_WITHIN = 2.0
_MOST_MET = 512


class HiveStreams:
    """The streams of one host."""

    def __init__(self, host: Host, addresses_of: Callable[[Peer], Sequence[str]]) -> None:
        """Take a host, and a function that returns a peer's addresses, such as the directory's.

        Addresses that are not that peer's are ignored. A peer without any address is reached only
        while it is connected.
        """
        self._host = host
        self._addresses_of = addresses_of
        self._met: dict[Peer, None] = {}  # the most recent peers, the latest last
        host.next_lives(self._connect_again)

    def __repr__(self) -> str:
        return f"<HiveStreams of {self._host!r}>"

    @property
    def me(self) -> Peer:
        """This peer."""
        return self._host.me

    async def dial(self, peer: Peer) -> ByteStream:
        """Open a stream; OSError if that fails; if cancelled, none is left open."""
        ways = _ways(peer, self._addresses_of(peer))
        stream = await self._host.open_stream(peer, ways, _DIAL_WITHIN)
        self._note(peer)
        return stream

    def listen(self, accept: Callable[[Peer, ByteStream], None]) -> None:
        """Deliver each stream that a peer opens to a callback."""

        def taken(peer: Peer, stream: Pipe) -> None:
            self._note(peer)
            accept(peer, stream)

        self._host.accept(taken)

    def stop(self) -> None:
        """Take no more streams."""
        self._host.accept(None)

    def _note(self, peer: Peer) -> None:
        self._met.pop(peer, None)
        self._met[peer] = None
        if len(self._met) > _MOST_MET:
            del self._met[next(iter(self._met))]

    async def _connect_again(self, life: Life) -> None:
        ways = {peer: _ways(peer, self._addresses_of(peer)) for peer in self._met}
        tries = [life.control.connect(peer, ways[peer], _AGAIN_WITHIN) for peer in ways]
        await asyncio.gather(*tries, return_exceptions=True)


def _ways(peer: Peer, addresses: Sequence[str]) -> list[str]:
    found = []
    for address in addresses:
        try:
            if peer_of_address(address) == peer:
                found.append(way_to(address))
        except UsageError:  # a stranger wrote it
            continue
    return found
