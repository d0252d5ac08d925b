"""Peers that are asked again soon because shards are being divided, there or here."""

from giaann_p2p.swarm.wire.division import COUNTS_OTHERWISE, DIVIDING
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message

_LONGEST = 30.0
"""Seconds for which a peer may say so. A division takes some; a liar's would never end."""


class DividingPeers:
    """Since when each of some peers has answered that shards are being divided."""

    def __init__(self) -> None:
        self._since: dict[Peer, float] = {}

    def is_waited_for(self, peer: Peer, answer: Message | None, now: float) -> bool:
        """Return whether a peer's answer says only that, and not for too long already."""
        if answer in (DIVIDING, COUNTS_OTHERWISE):
            return now - self._since.setdefault(peer, now) < _LONGEST
        self._since.pop(peer, None)
        return False
