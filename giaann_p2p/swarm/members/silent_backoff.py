"""Exponential backoff for silent peers, which failed to answer.

After its first failure a peer is avoided for a second. Each failed retry doubles that, up to a
minute. Any answer ends the backoff.
"""

from giaann_p2p.backoff import Backoff
from giaann_p2p.swarm.wire.identity import Peer

_BACKOFF = Backoff(first=1.0, longest=60.0)


class SilentBackoff:
    """The peers that failed to answer and have not answered since, each with its backoff."""

    def __init__(self) -> None:
        self._silences: dict[Peer, Backoff] = {}

    def __len__(self) -> int:
        return len(self._silences)

    def suspect(self, peer: Peer, now: float) -> None:
        """Note that a peer failed to answer, which starts or doubles its backoff.

        A failure during a backoff does not count, because the failed call began before the backoff.
        """
        if not self.suspected(peer, now):
            self._silences[peer] = self._silences.get(peer, _BACKOFF).failed(now)

    def suspected(self, peer: Peer, now: float) -> bool:
        """Return whether a peer is avoided now, because it failed to answer."""
        return peer in self._silences and self._silences[peer].holds(now)

    def since(self, peer: Peer) -> float | None:
        """Return when a silent peer's last backoff began; None if no failure is on record."""
        return self._silences[peer].since if peer in self._silences else None

    def end(self, peer: Peer) -> None:
        """End a peer's backoff, and forget its failures."""
        self._silences.pop(peer, None)
