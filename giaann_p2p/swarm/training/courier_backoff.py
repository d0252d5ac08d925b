"""Backoff of pairs of peers: one failed to fetch rows from the other, so the two are kept apart.

It is unknown which of the two is at fault: the courier may not send the rows, or the holder may not
take them. So only the pair is avoided, and a hostile peer cannot spoil a pair of honest ones. A
peer that is paired with itself did not carry the rows at all, or failed so many holders that it was
clearly at fault.
"""

from giaann_p2p.backoff import Backoff
from giaann_p2p.swarm.wire.identity import Peer

_BACKOFF = Backoff(first=15.0, longest=900.0)
_MOST = 4096
"""Maximum number of pairs that are remembered; the oldest one is forgotten first."""


class CourierBackoff:
    """The pairs of a courier and a holder that recently failed to fetch rows from it."""

    def __init__(self) -> None:
        self._of: dict[tuple[Peer, Peer], Backoff] = {}

    def __repr__(self) -> str:
        return f"<CourierBackoff: {len(self._of)} pairs>"

    def holds(self, courier: Peer, peer: Peer, now: float) -> bool:
        """Return whether a peer should not be told now to fetch rows from a courier."""
        backoff = self._of.get((courier, peer))
        return backoff is not None and backoff.holds(now)

    def failed(self, courier: Peer, peer: Peer, now: float) -> None:
        """Record that a peer did not get rows from a courier."""
        self._of[courier, peer] = self._of.pop((courier, peer), _BACKOFF).failed(now)
        if len(self._of) > _MOST:
            del self._of[next(iter(self._of))]

    def worked(self, courier: Peer, peer: Peer) -> None:
        """Record that a peer got rows from a courier."""
        self._of.pop((courier, peer), None)
