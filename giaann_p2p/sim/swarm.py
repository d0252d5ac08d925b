"""A whole simulated swarm: the shared world, and its processes by kind."""

from typing import Literal

from giaann_p2p.sim.client import Client
from giaann_p2p.sim.compute import ComputePeer
from giaann_p2p.sim.storage import USUAL, Kind, Storage
from giaann_p2p.sim.trainer import Trainer
from giaann_p2p.sim.world import Rules, World
from giaann_p2p.swarm.replication.settings import Settings


class Swarm(World):
    """One simulated history: the world, and lists of the honest processes in it."""

    def __init__(
        self,
        seed: int,
        everything: bool = False,
        settings: Settings | None = None,
        rules: Rules | None = None,
        admission: Literal["open", "token"] = "open",
    ) -> None:
        self.storages: list[Storage] = []
        self.clients: list[Client] = []
        self.trainers: list[Trainer] = []
        self.computes: list[ComputePeer] = []
        super().__init__(
            seed,
            everything,
            settings or Settings(),
            rules or Rules(),
            admission,
            self.storages,
            (self.clients, self.trainers, self.computes),
        )

    def add_storage(self, name: str = "", kind: Kind = USUAL) -> Storage:
        """Add a storage peer; without a name, it gets the next number."""
        peer = Storage(self, name or f"peer{len(self.storages)}", self.skew(), kind)
        self.storages.append(peer)
        return peer

    def add_compute(self) -> ComputePeer:
        """Add a compute peer."""
        peer = ComputePeer(self, f"compute{len(self.computes)}", self.skew())
        self.computes.append(peer)
        return peer

    def problems(self) -> list[str]:
        """Return the problems that remain: broken promises, and work that is not finished."""
        found = self.promises.check()
        asking: list[Client | Trainer] = [*self.clients, *self.trainers]
        found += [f"{node.name} has chunks left" for node in asking if not node.done]
        machines = [node for node in [*self.storages, *self.computes] if node.alive]
        late = [node for node in machines if node.gate.editions.number < self.editions.number]
        found += [f"{node.name} does not know the newest edition" for node in late]
        leaving = [node for node in self.storages if node.alive and node.core.leaving]
        return found + [f"{node.name} has not left yet" for node in leaving]
