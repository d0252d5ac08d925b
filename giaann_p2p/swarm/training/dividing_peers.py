"""Peers that are asked again soon because shards are being divided, there or here."""

from giaann_p2p.swarm.wire.division import COUNTS_OTHERWISE, DIVIDING
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message

_LONGEST = 30.0
"""Maximum seconds for which a peer is believed to divide its shards, so that no liar stalls others
for ever."""


class DividingPeers:
    """When each peer began to answer, without a break, that shards are being divided."""

    def __init__(self) -> None:
        self._since: dict[Peer, float] = {}

    def is_waited_for(self, peer: Peer, answer: Message | None, now: float) -> bool:
        """Return whether a peer answers that shards are divided, but not for too long yet."""
        if answer in (DIVIDING, COUNTS_OTHERWISE):
            return now - self._since.setdefault(peer, now) < _LONGEST
        self._since.pop(peer, None)
        return False
