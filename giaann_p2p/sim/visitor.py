"""The base of simulated clients, each of which keeps the newest edition that it knows.

A client learns a newer edition from the records of peers, or from a peer that counts another number
of shards; it sends its own to a peer with an older one. A client that restarts knows only the
manifest.
"""

import random

from giaann_p2p.errors import EditionError
from giaann_p2p.sim.node import Node
from giaann_p2p.sim.world import World
from giaann_p2p.swarm.wire.division import COUNTS_OTHERWISE
from giaann_p2p.swarm.wire.edition import Editions
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.member_messages import EditionIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.token import Rights

_TIMEOUT = 4.0


class Visitor(Node):
    """A client of the swarm, with a token that grants it `rights`."""

    def __init__(self, world: World, name: str, rights: Rights, skew: float) -> None:
        self.identity = Identity.from_seed(random.Random(f"{world.seed} {name}").randbytes(32))
        peer = self.identity.peer
        world.admit(peer, rights)
        self.editions = Editions(world.manifest)
        around = world.view_of(peer, self.editions)
        super().__init__(name, peer, world.clock, world.network, world.trace, around, skew)
        self.world = world

    def begin(self) -> None:
        """Start the client, or restart it after a crash, with the manifest's rules."""
        self.editions = Editions(self.world.manifest)
        self.around = self.world.view_of(self.peer, self.editions)

    def tick(self) -> None:
        """Learn the newest edition that any peer announces, as if the peer had sent it."""
        live = self.around.directory.live(self.now)
        newest = max((said.edition for said in live), default=0)
        if newest > self.editions.number:
            self.editions.learn(self.world.signed_editions[newest])

    def counts_otherwise(self, peer: Peer, edition: bytes) -> Message | None:
        """Agree with a peer on the newer edition; return the answer that the question then gets."""
        try:
            is_newer = bool(edition) and self.editions.learn(edition)
        except EditionError:
            return None
        ours = self.editions.to_bytes()
        if not is_newer and ours != edition:
            self.ask(peer, EditionIs(ours), _TIMEOUT, lambda answer: None)
        return COUNTS_OTHERWISE
