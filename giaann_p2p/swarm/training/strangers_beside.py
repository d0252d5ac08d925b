"""Peers without standing that hold shards beside their owners, and hold up commits.

Such a peer may be a keeper of whose standing this peer does not know yet: then a commit should wait
for it. Or it is a stranger that claims shards and takes its time. So each is waited for, but not
for long.
"""

from giaann_p2p.swarm.wire.identity import Peer

_LONGEST = 60.0
"""Seconds for which commits wait for such a peer, from the first one that waits only for it."""
_MOST = 4096
"""Maximum number of peers to remember; the oldest one is forgotten first."""


class StrangersBeside:
    """When each peer without standing first held up a commit."""

    def __init__(self) -> None:
        self._since: dict[Peer, float] = {}

    def is_waited_for(self, peer: Peer, now: float) -> bool:
        """Return whether a commit that lacks only such peers still waits for this one."""
        if peer not in self._since and len(self._since) >= _MOST:
            del self._since[next(iter(self._since))]
        return now - self._since.setdefault(peer, now) < _LONGEST
