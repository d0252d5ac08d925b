"""Checks, with a view of the whole simulation, that hostile peers achieve nothing.

In addition to all promises:

1. No honest peer's directory has a record that a hostile peer made up, or an older record in the
   place of a newer one.
2. Strangers get no answers.
3. The memory of honest peers is bounded.
4. No honest peer is reported as wrong by an honest peer, or excluded from a shard by reports.

When a client regards a chunk as committed, acknowledgements of hostile peers count like any
owner's. So a shard must have fewer hostile owners than a quorum.
"""

from collections import Counter

from giaann_p2p.model.rows import Answer, Neuron
from giaann_p2p.sim.node import Node
from giaann_p2p.sim.promises import Promises
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.sim.world import World
from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.record import Key

MADE_UP = 0x0BAD_0BAD_0BAD
"""The incarnation in every record that a hostile peer makes up."""
_EVERY = 5.0
_MOST_JOBS = 64


class Watch(Promises):
    """The promises of a swarm with hostile peers; a swarm gets them before any peer joins."""

    def __init__(self, swarm: Swarm) -> None:
        rules = swarm.rules
        super().__init__(swarm.lessons, rules.replicas, rules.quorum, swarm.storages)
        self._swarm = swarm
        self._newest: dict[tuple[Directory, Key], int] = {}
        self.counts: Counter[str] = Counter()
        """Counts of events, by the event's description."""
        swarm.clock.after(_EVERY, self._look)

    def happened(self, what: str) -> None:
        """Count an event."""
        self.counts[what] += 1

    def harmed(self, what: str) -> None:
        """Count an event that must never happen; the first one of a kind fails the history."""
        super().harmed(what)
        self.counts[what] += 1

    def accepted(self, client: Node, neurons: list[Neuron], rows: Answer, asked: float) -> None:
        """Count the rows that a client accepts; their check is a promise of every swarm."""
        super().accepted(client, neurons, rows, asked)
        self.counts["rows believed"] += len(rows)

    def complete(self, client: Node, neurons: list[Neuron], rows: Answer) -> None:
        """Check the rows of the end only without hostile peers, whose chunks are in them, too."""
        if not self._swarm.hostiles:
            super().complete(client, neurons, rows)

    def avoided(self, peer: Peer) -> None:
        """Count a peer that a client avoids because its rows were wrong."""
        honest = any(peer == one.peer for one in self._swarm.storages)
        self.happened("honest peers shunned" if honest else "liars shunned")

    def named(self, by: Node, peer: Peer) -> None:
        """Count an accusation, by an honest peer, that another peer holds wrong content."""
        super().named(by, peer)
        self.happened("peers named")

    def found_out(self, peer: Peer) -> None:
        """Count a compute peer whose result differed; a fault if it is honest."""
        if any(peer == one.peer for one in self._swarm.computes):
            super().found_out(peer)
        self.happened("compute peers found out")

    def brought_nothing(self, peer: Peer) -> None:
        """Count a compute peer whose results no owner has; a fault if it is honest."""
        if any(peer == one.peer for one in self._swarm.computes):
            super().brought_nothing(peer)
        self.happened("compute peers that brought nothing")

    def _look(self) -> None:
        """Check all honest peers' directories, every five seconds."""
        swarm = self._swarm
        for node in swarm.nodes:
            if node.alive and node not in swarm.hostiles:
                self._look_into(node)
        swarm.clock.after(_EVERY, self._look)

    def _look_into(self, node: Node) -> None:
        directory = node.around.directory
        if len(directory) > 2 * len(self._swarm.nodes):
            self.harmed("a directory holds more than there is")
        for said in directory.live(node.now):
            if said.incarnation == MADE_UP:
                self.harmed("a record that was made up is believed")
            key = directory, said.key
            if said.sequence < self._newest.get(key, 0):
                self.harmed("an old record took the place of a newer one")
            self._newest[key] = said.sequence
        self._look_for_barred(node)

    def _look_for_barred(self, node: Node) -> None:
        """Check that no honest peer is excluded from a shard."""
        placement = node.around.placement(node.now)
        honest = {peer.peer for peer in self._peers}
        for shard in range(len(placement.owner_matrix)):
            if placement.excluded(shard) & honest:
                self.harmed("an honest peer is barred")

    def check(self) -> list[str]:
        """Return the violations that remain after all faults have ended."""
        found = super().check()
        for peer in self._peers:
            if peer.alive and any(
                held.jobs > _MOST_JOBS for held in peer.store.sets(peer.store.shards).values()
            ):
                found.append(f"{peer.name} holds chunks of more jobs than there are")
        return found


def watch_of(world: World) -> Watch:
    """Return the watch of a swarm that has hostile peers."""
    if not isinstance(world.promises, Watch):
        raise TypeError("a swarm with hostile peers is founded by sim.hostile.cast")
    return world.promises
