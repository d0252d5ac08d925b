"""Windows: how many requests may be in flight to each peer, given how many it accepts.

When a peer refuses a request as busy, its window shrinks to the number of its requests that are
still in flight. The window grows by one with each request that succeeds (additive increase). A
window of 0 becomes 1 after a pause.
"""

from giaann_p2p.swarm.wire.identity import Peer


class Windows:
    """The request windows of all peers. A peer that has not refused lately has a window of `most`.

    `pause` is the time in seconds after which a window of 0 becomes 1.
    """

    def __init__(self, most: int, pause: float) -> None:
        self._most, self._pause = most, pause
        self._of: dict[Peer, tuple[int, float]] = {}  # the window, and the time of its last change

    def __repr__(self) -> str:
        return f"<Windows: {len(self._of)} peers accept fewer than {self._most} requests>"

    def of(self, peer: Peer, now: float) -> int:
        """Return how many requests may be in flight to a peer."""
        many, since = self._of.get(peer, (self._most, now))
        return max(many, 1) if now - since >= self._pause else many

    def turned_away(self, peer: Peer, left: int, now: float) -> None:
        """Record that a peer refused a request as busy, with `left` other requests in flight."""
        self._of[peer] = min(left, self.of(peer, now)), now

    def came(self, peer: Peer, now: float) -> None:
        """Record that a request to a peer succeeded."""
        if peer in self._of:
            many = self.of(peer, now) + 1
            if many < self._most:
                self._of[peer] = many, now
            else:
                del self._of[peer]
