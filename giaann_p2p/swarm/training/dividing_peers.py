"""Peers that are asked again soon, because they or this peer are dividing their shards."""

from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.wire.division import COUNTS_OTHERWISE, DIVIDING
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message

_LONGEST = 30.0
"""Maximum seconds for which a peer is believed to be dividing its shards. They count from its first
such answer under an edition, whatever it answers later, so a liar delays others no longer."""


class DividingPeers:
    """When each peer first answered that shards are being divided, since the present edition."""

    def __init__(self, others: PeersView) -> None:
        self._others, self._edition = others, others.rules.edition
        self._since: dict[Peer, float] = {}

    def is_waited_for(self, peer: Peer, answer: Message | None, now: float) -> bool:
        """Return whether a peer answers that shards are being divided, and is still believed."""
        if self._edition != self._others.rules.edition:
            self._edition = self._others.rules.edition
            self._since.clear()
        if answer not in (DIVIDING, COUNTS_OTHERWISE):
            return False
        return now - self._since.setdefault(peer, now) < _LONGEST
