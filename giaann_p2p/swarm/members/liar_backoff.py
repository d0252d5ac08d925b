"""Exponential backoff for liars: peers whose rows a majority of a shard's owners contradicted.

After its first lie a peer is avoided for FIRST_BACKOFF seconds, and after each further one for
twice as long as the last time, up to LONGEST_BACKOFF. Unlike the backoff for silence
(`silent_backoff`), it is not ended early by an answer, and the count of lies is kept: a liar is
trusted again, but the next lie costs more.
"""

from giaann_p2p.backoff import Backoff
from giaann_p2p.swarm.wire.identity import Peer

FIRST_BACKOFF = 60.0
"""Duration of a liar's first backoff, in seconds."""
LONGEST_BACKOFF = 3600.0
"""Longest backoff of a liar, in seconds."""
_MOST_PEERS = 4096
"""Maximum number of liars remembered; beyond it, the one whose last lie is the oldest is
forgotten."""


class LiarBackoff:
    """The peers that returned wrong rows, each with its backoff."""

    def __init__(self) -> None:
        self._backoffs: dict[Peer, Backoff] = {}

    def __len__(self) -> int:
        return len(self._backoffs)

    def lied(self, peer: Peer, now: float) -> float:
        """Note that a peer returned wrong rows; return for how many seconds it is avoided."""
        old = self._backoffs.pop(peer, Backoff(FIRST_BACKOFF, LONGEST_BACKOFF))
        if len(self._backoffs) == _MOST_PEERS:
            del self._backoffs[next(iter(self._backoffs))]
        self._backoffs[peer] = old.failed(now)
        return self._backoffs[peer].pause

    def holds(self, peer: Peer, now: float) -> bool:
        """Return whether a peer is avoided now, because it returned wrong rows."""
        return peer in self._backoffs and self._backoffs[peer].holds(now)
