"""Peers that are asked again soon because shards are being divided, there or here."""

from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.wire.division import COUNTS_OTHERWISE, DIVIDING
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message

_LONGEST = 30.0
"""Maximum seconds for which a peer is believed to divide its shards: once an edition, whatever the
peer answers in between, so that no liar delays others for longer."""


class DividingPeers:
    """When each peer first answered that shards are being divided, since the present edition."""

    def __init__(self, others: PeersView) -> None:
        self._others, self._edition = others, others.rules.edition
        self._since: dict[Peer, float] = {}

    def is_waited_for(self, peer: Peer, answer: Message | None, now: float) -> bool:
        """Return whether a peer answers that shards are divided, but not for too long yet."""
        if self._edition != self._others.rules.edition:
            self._edition = self._others.rules.edition
            self._since.clear()
        if answer not in (DIVIDING, COUNTS_OTHERWISE):
            return False
        return now - self._since.setdefault(peer, now) < _LONGEST
