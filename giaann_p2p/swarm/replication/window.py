"""How much to ask of a peer at once: no more than it takes on, as far as that is known.

A peer that turns something away is asked for as much at once as it has just taken on, and for one
more each time that something came of it. If it takes on nothing it is asked for one thing after a
pause.
"""

from giaann_p2p.swarm.identity import Peer


class Windows:
    """Of peers that have turned something away lately; anybody else may be asked for `most`."""

    def __init__(self, most: int, pause: float) -> None:
        self._most, self._pause = most, pause
        self._of: dict[Peer, tuple[int, float]] = {}  # how much, and since when

    def __repr__(self) -> str:
        return f"<Windows: {len(self._of)} peers take on less than {self._most}>"

    def of(self, peer: Peer, now: float) -> int:
        """Return how much may be under way with a peer."""
        many, since = self._of.get(peer, (self._most, now))
        return max(many, 1) if now - since >= self._pause else many

    def turned_away(self, peer: Peer, left: int, now: float) -> None:
        """Note that a peer did not take something on; so much else is under way with it."""
        self._of[peer] = min(left, self.of(peer, now)), now

    def came(self, peer: Peer, now: float) -> None:
        """Note that something came of what a peer was asked for."""
        if peer in self._of:
            many = self.of(peer, now) + 1
            if many < self._most:
                self._of[peer] = many, now
            else:
                del self._of[peer]
