"""Fault injection: a random sequence of faults from a seed.

Each fault begins at a random time and ends again, except when a peer leaves or is lost for ever.
Faults overlap, within what the swarm promises to survive: a second storage peer may be lost for
ever only after the first loss could be repaired, and enough peers must remain.
"""

import random
from typing import NamedTuple

from giaann_p2p.sim.client import Client
from giaann_p2p.sim.compute import ComputePeer
from giaann_p2p.sim.node import Node
from giaann_p2p.sim.storage import QUICK_DISK, Storage
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.sim.trainer import Trainer
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.record import MOST_LIFETIME, Announcement, signed_as

Links = set[tuple[Peer, Peer]]

_EVERY = 12.0
"""The mean time between two faults, in virtual seconds."""
_MOST_STORAGES = 12
_LEAST_STAYING = 5
_REPAIR = 150.0
"""The virtual seconds after which the replicas lost with a peer are certainly replaced."""


class Kind(NamedTuple):
    """A kind of fault, and its weight in the random choice of the next fault."""

    name: str
    weight: int


KINDS = (
    Kind("crash", 6),
    Kind("stop", 3),
    Kind("partition", 2),
    Kind("one way", 2),
    Kind("slow", 2),
    Kind("disk full", 2),
    Kind("slow disk", 2),
    Kind("weather", 2),
    Kind("join", 2),
    Kind("leave", 1),
    Kind("lose", 1),
    Kind("client crash", 2),
    Kind("forge", 2),
)


class Faults:
    """Injects random faults into a swarm until an end time, and then repairs them all."""

    def __init__(self, swarm: Swarm, end: float) -> None:
        self._swarm, self._end = swarm, end
        self._rng = random.Random(f"{swarm.seed} faults")
        self._lost_at = -_REPAIR
        self._healed = False
        self._next()
        swarm.clock.at(end, self.heal)

    def _next(self) -> None:
        self._swarm.clock.after(self._rng.expovariate(1 / _EVERY), self._strike)

    def _strike(self) -> None:
        if self._healed:
            return
        weights = [kind.weight for kind in KINDS]
        (kind,) = self._rng.choices(KINDS, weights)
        self.let(kind.name)
        self._next()

    def let(self, kind: str) -> None:
        """Inject a fault of a kind, if there is a peer that it can hit."""
        getattr(self, "_" + kind.replace(" ", "_"))()

    def heal(self) -> None:
        """End all faults, and restart all peers that are dead and not lost for ever."""
        self._healed = True
        swarm = self._swarm
        swarm.trace.note(swarm.clock.now, "world", "is whole again")
        swarm.network.cut.clear()
        swarm.network.slow.clear()
        swarm.network.weather = type(swarm.network.weather)()
        for node in swarm.nodes:
            if isinstance(node, Storage):
                node.disk_delay = QUICK_DISK
                node.disk.capacity = None
            if node.stopped:
                node.go_on()
            if not node.alive:
                self._restart(node)

    def _restart(self, node: Node) -> None:
        if isinstance(node, Storage) and (node.left or node.lost):
            return
        if not node.alive and isinstance(node, Storage | Client | Trainer | ComputePeer):
            node.restart()

    def _later(self, low: float, high: float) -> float:
        return self._rng.uniform(low, high)

    def _running(self) -> list[Storage]:
        return [node for node in self._swarm.storages if node.alive and not node.stopped]

    def _staying(self) -> list[Storage]:
        return [
            node
            for node in self._swarm.storages
            if not (node.left or node.lost or node.core.leaving or node.kind.is_newcomer)
        ]

    def _crash(self) -> None:
        if not (running := self._running()):
            return
        node = self._rng.choice(running)
        node.crash(in_the_middle=self._rng.random() < 0.5)
        self._swarm.clock.after(self._later(0.5, 90), lambda: self._restart(node))

    def _stop(self) -> None:
        if not (running := self._running()):
            return
        node = self._rng.choice(running)
        node.say("stands still")
        node.stop()
        self._swarm.clock.after(self._later(1, 60), lambda: self._go_on(node))

    def _go_on(self, node: Node) -> None:
        if node.stopped:
            node.say("goes on")
            node.go_on()

    def _partition(self) -> None:
        nodes = self._swarm.nodes
        some = self._rng.sample(nodes, self._rng.randrange(1, len(nodes)))
        links = {(a.peer, b.peer) for a in some for b in nodes if b not in some}
        links |= {(b, a) for a, b in links}
        self._cut(links, f"cut off: {', '.join(sorted(node.name for node in some))}")

    def _one_way(self) -> None:
        one, other = self._rng.sample(self._swarm.nodes, 2)
        self._cut({(one.peer, other.peer)}, f"nothing from {one.name} reaches {other.name}")

    def _cut(self, links: Links, what: str) -> None:
        self._swarm.trace.note(self._swarm.clock.now, "network", what)
        new = links - self._swarm.network.cut
        self._swarm.network.cut |= new
        self._swarm.clock.after(self._later(2, 80), lambda: self._mend(new))

    def _mend(self, links: Links) -> None:
        self._swarm.trace.note(self._swarm.clock.now, "network", "some links are mended")
        self._swarm.network.cut -= links

    def _slow(self) -> None:
        node = self._rng.choice(self._swarm.nodes)
        node.say("is slow")
        self._swarm.network.slow[node.peer] = self._rng.choice((5, 20, 100))
        self._swarm.clock.after(self._later(5, 60), lambda: self._hurry(node))

    def _hurry(self, node: Node) -> None:
        self._swarm.network.slow.pop(node.peer, None)

    def _disk_full(self) -> None:
        if not (running := self._running()):
            return
        node = self._rng.choice(running)
        node.say("has a full disk")
        used = sum(node.disk.size(name) for name in node.disk.names())
        node.disk.capacity = used + self._rng.randrange(2000)
        self._swarm.clock.after(self._later(5, 60), lambda: self._space(node))

    def _space(self, node: Storage) -> None:
        node.say("has space again")
        node.disk.capacity = None

    def _slow_disk(self) -> None:
        if not (running := self._running()):
            return
        node = self._rng.choice(running)
        node.say("has a slow disk")
        node.disk_delay = self._rng.choice((0.2, 1.0, 3.0))
        self._swarm.clock.after(self._later(5, 60), lambda: self._quick(node))

    def _quick(self, node: Storage) -> None:
        node.disk_delay = QUICK_DISK

    def _weather(self) -> None:
        weather = self._swarm.network.weather
        weather.lost = self._rng.choice((0, 0.02, 0.1, 0.3))
        weather.twice = self._rng.choice((0, 0.05, 0.3))
        weather.latency = self._rng.choice((0.002, 0.02, 0.2))
        told = f"loses {weather.lost:.0%}, doubles {weather.twice:.0%}, {weather.latency} s"
        self._swarm.trace.note(self._swarm.clock.now, "network", told)

    def _join(self) -> None:
        if len(self._staying()) < _MOST_STORAGES:
            self._swarm.add_storage()

    def _leave(self) -> None:
        staying = [node for node in self._staying() if node.alive and not node.stopped]
        if len(self._staying()) > _LEAST_STAYING and staying:
            self._rng.choice(staying).leave()

    def _lose(self) -> None:
        now = self._swarm.clock.now
        staying = [node for node in self._staying() if node.alive]
        if len(self._staying()) <= _LEAST_STAYING or now - self._lost_at < _REPAIR or not staying:
            return
        self._lost_at = now
        self._rng.choice(staying).crash(lost=True)

    def _forge(self) -> None:
        """Announce in a victim's name, with a far higher sequence, that it is about to leave."""
        victim = self._rng.choice(self._swarm.storages)
        stranger = Identity.from_seed(self._rng.randbytes(32))
        said = Announcement(
            swarm_id=self._swarm.swarm_id,
            peer=victim.peer,
            role="storage",
            state="draining",
            incarnation=1,
            sequence=1 << 60,
            issued=int(victim.now),
            lifetime=MOST_LIFETIME,
            capacity=victim.capacity,
        )
        victim.say("is slandered")
        self._swarm.publish(victim, signed_as(stranger, said))

    def _client_crash(self) -> None:
        swarm = self._swarm
        others = [*swarm.clients, *swarm.trainers, *swarm.computes]
        running = [node for node in others if node.alive]
        if running:
            node = self._rng.choice(running)
            node.say("crashes")
            node.die()
            self._swarm.clock.after(self._later(1, 40), lambda: self._restart(node))
