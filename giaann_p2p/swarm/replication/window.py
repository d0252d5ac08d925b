"""Windows for the requests in flight to each peer: as many as the peer is known to accept.

After a busy refusal, a peer's window is the number of requests that it still has in flight, plus
one for each that succeeds (additive increase). A window of 0 becomes 1 after a pause.
"""

from giaann_p2p.swarm.wire.identity import Peer


class Windows:
    """Windows of the peers that refused recently; any other peer has a window of `most`."""

    def __init__(self, most: int, pause: float) -> None:
        self._most, self._pause = most, pause
        self._of: dict[Peer, tuple[int, float]] = {}  # the window, and the time of its last change

    def __repr__(self) -> str:
        return f"<Windows: {len(self._of)} peers take on less than {self._most}>"

    def of(self, peer: Peer, now: float) -> int:
        """Return how many requests may be in flight to a peer."""
        many, since = self._of.get(peer, (self._most, now))
        return max(many, 1) if now - since >= self._pause else many

    def turned_away(self, peer: Peer, left: int, now: float) -> None:
        """Record a busy refusal; `left` requests to the peer are still in flight."""
        self._of[peer] = min(left, self.of(peer, now)), now

    def came(self, peer: Peer, now: float) -> None:
        """Record that a request to a peer succeeded."""
        if peer in self._of:
            many = self.of(peer, now) + 1
            if many < self._most:
                self._of[peer] = many, now
            else:
                del self._of[peer]
