"""Whom to bypass, and for how long: peers that failed to answer.

The first failure costs a peer FIRST_BYPASS seconds, and each further one, after it was tried again
in vain, twice as many as the last, up to MOST_BYPASS. Any answer ends that.
"""

import msgspec

from giaann_p2p.swarm.identity import Peer

FIRST_BYPASS = 1.0
MOST_BYPASS = 60.0
_DOUBLINGS = 6
"""More would not be longer."""


class Doubt(msgspec.Struct, frozen=True):
    """What a peer failed to do."""

    failures: int
    since: float
    until: float


class Doubts:
    """The peers in doubt."""

    def __init__(self) -> None:
        self._doubts: dict[Peer, Doubt] = {}

    def __len__(self) -> int:
        return len(self._doubts)

    def suspect(self, peer: Peer, now: float) -> None:
        """Note a failure; those while the peer is bypassed, of calls on their way, count as one."""
        if not self.suspected(peer, now):
            old = self._doubts.get(peer)
            failures = old.failures + 1 if old else 1
            self._doubts[peer] = Doubt(failures, now, now + bypass_for(failures))

    def suspected(self, peer: Peer, now: float) -> bool:
        """Tell whether a peer is to be bypassed now."""
        doubt = self._doubts.get(peer)
        return doubt is not None and now < doubt.until

    def since(self, peer: Peer) -> float | None:
        """Return when a peer in doubt failed last."""
        doubt = self._doubts.get(peer)
        return None if doubt is None else doubt.since

    def end(self, peer: Peer) -> None:
        """Trust a peer again."""
        self._doubts.pop(peer, None)


def bypass_for(failures: int) -> float:
    """Return for how many seconds a peer is bypassed that failed so often."""
    return min(FIRST_BYPASS * 2.0 ** min(failures - 1, _DOUBLINGS), MOST_BYPASS)
