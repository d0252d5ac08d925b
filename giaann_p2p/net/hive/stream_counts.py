"""A rate limit on opening streams: a peer that never stops opening them delays all others."""

import msgspec

from giaann_p2p.swarm.wire.identity import Peer

MOST, WITHIN = 128, 10.0
"""The most streams that one peer may open, and the seconds within which they count. An honest peer
opens one stream, and another one if the first is lost."""
_MOST_PEERS = 4096
"""The most peers whose streams are counted; above it, the oldest count is forgotten."""


class _Opened(msgspec.Struct):
    since: float
    count: int = 0


class StreamCounts:
    """Counts the streams that each peer has opened recently."""

    def __init__(self, most: int = MOST, within: float = WITHIN, peers: int = _MOST_PEERS) -> None:
        self._most, self._within, self._peers = most, within, peers
        self._opened: dict[Peer, _Opened] = {}  # the latest window last

    def __repr__(self) -> str:
        return f"<StreamCounts of {len(self._opened)} peers>"

    def too_many(self, peer: Peer, now: float) -> bool:
        """Count a stream that a peer has opened; return whether the peer now exceeds the limit."""
        opened = self._opened.get(peer)
        if opened is None or now - opened.since >= self._within:
            self._opened.pop(peer, None)
            opened = self._opened[peer] = _Opened(now)
            if len(self._opened) > self._peers:
                del self._opened[next(iter(self._opened))]
        opened.count += 1
        return opened.count > self._most
