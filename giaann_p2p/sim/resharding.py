"""The founder raises the number of replicas twice while a history runs, amid all its faults.

Chunks grow along with it, so larger limits count for what is pushed.

An edition of the rules reaches one peer, from which it spreads by gossip; the founder sends it
again, now to this one and now to that. Somebody else sends earlier editions again all the time. No
peer may ever fall back to an earlier edition, over restarts neither; and in the end all must know
the newest one, and each shard must have as many ready replicas as it says.
"""

import random

from giaann_p2p.sim.machine import Machine
from giaann_p2p.sim.swarm import Swarm

_FIRST, _SECOND = (0.1, 0.4), (0.5, 0.9)
"""The times of the editions, as shares of the time of the faults."""
_AGAIN = 20.0
"""The mean seconds between two tries of the founder to send the newest edition."""
_LOOK_EVERY = 1.0


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

    def _publish(self) -> None:
        swarm = self._swarm
        rules = swarm.editions.rules
        edition = swarm.editions.next(swarm.founder, rules.replicas + 1, 2 * rules.chunk)
        self._editions.append(edition.to_bytes())
        swarm.editions.learn(edition.to_bytes())
        swarm.promises.replicas = edition.replicas
        swarm.trace.note(swarm.clock.now, "founder", f"signs {swarm.editions!r}")
        self._send(len(self._editions) - 1)

    def _send(self, index: int) -> None:
        """Send an edition to any peer; again and again, if it is the newest or an earlier one."""
        there = [one for one in self._machines() if one.alive and not one.stopped]
        if there:
            self._rng.choice(there).learn_edition(self._editions[index])
        self._swarm.clock.after(_AGAIN * (0.5 + self._rng.random()), lambda: self._send(index))

    def _look(self) -> None:
        """Check that no peer knows an earlier edition than before."""
        for machine in self._machines():
            if machine.alive:
                number = machine.gate.editions.number
                if number < self._known.get(machine, 0):
                    self._swarm.promises.broken(
                        f"{machine.name} knew edition {self._known[machine]}, and now {number}"
                    )
                self._known[machine] = number
        self._swarm.clock.after(_LOOK_EVERY, self._look)

    def _machines(self) -> list[Machine]:
        return [*self._swarm.storages, *self._swarm.computes]
