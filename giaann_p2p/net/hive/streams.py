"""Streams between peers over libp2p, which carry calls (see net/streams.py).

After a failed dial, libp2p does not dial that peer again for 5 s, and for longer after each further
failure, unless the peer dials first. So after a restart of p2pd, this peer connects to all peers
that it recently had streams with, and they need not wait for that backoff.
"""

import asyncio
from collections.abc import Callable, Sequence

from giaann_p2p.errors import UsageError
from giaann_p2p.net.errors import DialPaused, NoConnection
from giaann_p2p.net.hive.host import Host
from giaann_p2p.net.hive.life import Life
from giaann_p2p.net.hive.peer_id import peer_of_address, way_to
from giaann_p2p.net.hive.pipe import Pipe
from giaann_p2p.net.transport import ByteStream
from giaann_p2p.swarm.wire.identity import Peer

_DIAL_WITHIN = 30.0
"""The seconds after which p2pd gives up a dial. The caller's timeout is shorter, and ends the dial
in p2pd at once."""
_AGAIN_WITHIN = 2.0
"""The seconds that connecting to a peer again may take after a restart of p2pd."""
_PAUSED = "dial backoff"
_SILENCE = _PAUSED, "i/o timeout", "deadline exceeded"
"""Parts of libp2p's messages about an address that did not answer, or that it does not dial again
yet. A later dial may succeed, unlike after a refused connection."""
_MOST_MET = 512
"""The most peers to which this peer connects again after a restart of p2pd."""


class HiveStreams:
    """Opens and accepts the streams of one host; implements `Streams` of net/transport.py."""

    def __init__(self, host: Host, addresses_of: Callable[[Peer], Sequence[str]]) -> None:
        """Create a host's streams; `addresses_of` looks up a peer, such as in the directory.

        Addresses of other peers in its result are ignored. A peer without any address can be
        reached only while it is connected.
        """
        self._host = host
        self._addresses_of = addresses_of
        self._met: dict[Peer, None] = {}  # peers with recent streams, the latest last
        host.next_lives(self._connect_again)

    def __repr__(self) -> str:
        return f"<HiveStreams of {self._host!r}>"

    @property
    def me(self) -> Peer:
        """The public key of this peer."""
        return self._host.me

    async def dial(self, peer: Peer) -> ByteStream:
        """Open a stream to a peer; raise OSError if that fails, NoConnection if a retry may help.

        If the caller is cancelled, no stream is left open.
        """
        ways = _ways(peer, self._addresses_of(peer))
        try:
            stream = await self._host.open_stream(peer, ways, _DIAL_WITHIN)
        except ConnectionRefusedError as error:
            if any(words in str(error) for words in _SILENCE):
                kind = DialPaused if _PAUSED in str(error) else NoConnection
                raise kind(f"the peer cannot be reached: {error}") from None
            raise
        self._note(peer)
        return stream

    def listen(self, accept: Callable[[Peer, ByteStream], None]) -> None:
        """Pass each stream that another peer opens to a callback."""

        def taken(peer: Peer, stream: Pipe) -> None:
            self._note(peer)
            accept(peer, stream)

        self._host.accept(taken)

    def stop(self) -> None:
        """Accept no more streams from other peers."""
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
        except UsageError:  # a stranger may have written it
            continue
    return found
