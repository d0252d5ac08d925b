"""Exponential backoff for liars: peers whose rows a majority of a shard's owners contradicted.

After its first lie a peer is avoided for FIRST_SHUN seconds, and after each further one for twice
as long as the last time, up to MOST_SHUN. Unlike the backoff for silence (`silent_backoff`), no
answer ends it early, and the count is kept: a liar is trusted again, but the next lie costs more.
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
        self._shuns: dict[Peer, Backoff] = {}

    def __len__(self) -> int:
        return len(self._shuns)

    def lied(self, peer: Peer, now: float) -> float:
        """Note that a peer returned wrong rows; return for how many seconds it is avoided."""
        old = self._shuns.pop(peer, Backoff(FIRST_BACKOFF, LONGEST_BACKOFF))
        if len(self._shuns) == _MOST_PEERS:
            del self._shuns[next(iter(self._shuns))]
        self._shuns[peer] = old.failed(now)
        return self._shuns[peer].pause

    def holds(self, peer: Peer, now: float) -> bool:
        """Return whether a peer is avoided now, because it returned wrong rows."""
        return peer in self._shuns and self._shuns[peer].holds(now)
