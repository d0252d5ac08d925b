"""The founder raises the numbers of replicas and shards twice in a history, amid all faults.

The size of chunks is raised, too, so pushes have larger limits. At the moment of an edition, new
storage peers join and fetch whole shards while these are divided, and clients push more chunks.
Some storage peers crash while they divide their shards: before the division is written, during the
write, or after it but before the peer knows of it.

An edition of the rules reaches one peer, from which it spreads by gossip; the founder sends it
again and again, each time to a random peer. Earlier editions are replayed all the time. No peer may
ever fall back to an earlier edition, not even after a restart. In the end all peers must know the
newest edition, and each shard must have as many ready replicas as that edition demands.
"""

import random

from giaann_p2p.sim.holder import Holder
from giaann_p2p.sim.machine import Machine
from giaann_p2p.sim.storage import Storage
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.swarm.wire.shardset import children, unpacked

_FIRST, _SECOND = (0.1, 0.4), (0.5, 0.9)
"""The times of the editions, as shares of the time of the faults."""
_AGAIN = 20.0
"""The mean seconds between two tries of the founder to send the newest edition."""
_LOOK_EVERY = 1.0
_MOST_JOIN = 2
"""The most storage peers that join at the moment of an edition that doubles the shards."""
PUSHED = 15
"""The chunks that each client pushes in addition, from the moment of an edition."""
_CRASHES = 0.4
"""The probability that a peer crashes while it divides its shards."""
_DEAD = 0.5, 40.0
"""The shortest and the longest time until a crashed peer starts again, in seconds."""


class Resharding:
    """The editions of one history."""

    def __init__(self, swarm: Swarm, end: float) -> None:
        self._swarm, self._end = swarm, end
        self._rng = random.Random(f"{swarm.seed} editions")
        self._editions: list[bytes] = []
        self._known: dict[Machine, int] = {}
        for part in (_FIRST, _SECOND):
            swarm.clock.at(end * self._rng.uniform(*part), self._publish)
        swarm.clock.after(_LOOK_EVERY, self._look)
        swarm.on_division = self._divides

    def _publish(self) -> None:
        swarm = self._swarm
        rules = swarm.editions.rules
        edition = swarm.editions.next(
            swarm.founder, rules.replicas + 1, 2 * rules.chunk, 2 * rules.shards
        )
        for _ in range(self._rng.randrange(_MOST_JOIN + 1)):
            swarm.add_storage()
        for client in swarm.clients:
            first = max(client.chunks, default=-1) + 1
            client.push([*range(first, first + PUSHED)])
        self._editions.append(edition.to_bytes())
        swarm.publish_edition(edition)
        swarm.trace.note(swarm.clock.now, "founder", f"signs {swarm.editions!r}")
        self._send(len(self._editions) - 1)

    def _send(self, index: int) -> None:
        """Send an edition to a random peer, then again and again to others, even once outdated."""
        there = [one for one in self._machines() if one.alive and not one.stopped]
        if there:
            self._rng.choice(there).learn_edition(self._editions[index])
        self._swarm.clock.after(_AGAIN * (0.5 + self._rng.random()), lambda: self._send(index))

    def _divides(self, peer: Holder) -> None:
        """Sometimes crash a peer that is about to divide its shards."""
        if not isinstance(peer, Storage) or peer.lost or self._rng.random() >= _CRASHES:
            return  # a hostile peer counts as lost
        peer.say("divides its shards")
        moment = self._rng.randrange(3)
        peer.crash(in_the_middle=moment == 1, after_a_write=moment == 2)
        self._swarm.clock.after(self._rng.uniform(*_DEAD), lambda: self._restart(peer))

    def _restart(self, peer: Storage) -> None:
        if not (peer.alive or peer.left or peer.lost):
            peer.restart()

    def _look(self) -> None:
        """Check what each peer knows: no earlier edition than before, and no false records."""
        for machine in self._machines():
            if machine.alive:
                number = machine.gate.editions.number
                if number < self._known.get(machine, 0):
                    self._swarm.promises.broken(
                        f"{machine.name} knew edition {self._known[machine]}, and now {number}"
                    )
                self._known[machine] = number
                self._look_into(machine)
        self._swarm.clock.after(_LOOK_EVERY, self._look)

    def _look_into(self, machine: Machine) -> None:
        """Check that a shard counts as served only by peers that serve all of its children."""
        directory, rules = machine.around.directory, machine.around.rules
        for said in directory.live(machine.now):
            count = said.counted_by(rules)
            if count > rules.shards:
                there = {*unpacked(said.ready, count).tolist()}
                whole = directory.sets_of(said).ready.tolist()
                if not there.issuperset(children(whole, rules.shards, count)):
                    self._swarm.promises.broken(
                        f"{machine.name} counts a shard as served by a peer that serves half of it"
                    )

    def _machines(self) -> list[Machine]:
        return [*self._swarm.storages, *self._swarm.computes]
