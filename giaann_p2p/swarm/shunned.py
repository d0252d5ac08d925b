"""Whom to read from no longer, and for how long: peers whose rows a majority said are not so.

The first time costs a peer FIRST_SHUN seconds, and each further one twice as many as the last, up
to MOST_SHUN. Unlike silence (`doubts`), nothing that it answers ends that sooner, and it is not
forgotten: who lied once is believed again, but not for long if it lies again.
"""

import msgspec

from giaann_p2p.swarm.identity import Peer

FIRST_SHUN = 60.0
MOST_SHUN = 3600.0
_DOUBLINGS = 6
"""More would not be longer."""
_MOST_PEERS = 4096
"""Beyond these, the one that was found out first is forgotten."""


class Shun(msgspec.Struct, frozen=True):
    """What a peer is blamed for."""

    lies: int
    until: float


class Shunned:
    """The peers that were found to say wrong rows."""

    def __init__(self) -> None:
        self._shuns: dict[Peer, Shun] = {}

    def __len__(self) -> int:
        return len(self._shuns)

    def lied(self, peer: Peer, now: float) -> float:
        """Note a lie; return for how many seconds nothing is read from its peer."""
        old = self._shuns.pop(peer, None)
        if len(self._shuns) == _MOST_PEERS:
            del self._shuns[next(iter(self._shuns))]
        lies = old.lies + 1 if old else 1
        seconds = shun_for(lies)
        self._shuns[peer] = Shun(lies, now + seconds)
        return seconds

    def holds(self, peer: Peer, now: float) -> bool:
        """Tell whether nothing is to be read from a peer now."""
        shun = self._shuns.get(peer)
        return shun is not None and now < shun.until


def shun_for(lies: int) -> float:
    """Return for how many seconds a peer is shunned that was found out so often."""
    return min(FIRST_SHUN * 2.0 ** min(lies - 1, _DOUBLINGS), MOST_SHUN)
