"""All that a simulation consists of: time, chance, a network, machines, and what was promised."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import msgspec

from giaann_p2p.sim.clock import Clock
from giaann_p2p.sim.lessons import SPEC, lessons_of
from giaann_p2p.sim.network import Network
from giaann_p2p.sim.notary import checked
from giaann_p2p.sim.promises import Promises
from giaann_p2p.sim.trace import Trace
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.admission import Admission
from giaann_p2p.swarm.identity import Identity, Peer
from giaann_p2p.swarm.manifest import Manifest
from giaann_p2p.swarm.messages import Message
from giaann_p2p.swarm.settings import Settings
from giaann_p2p.swarm.surroundings import Surroundings
from giaann_p2p.swarm.terms import Terms
from giaann_p2p.swarm.token import Rights, founded

if TYPE_CHECKING:
    from giaann_p2p.sim.client import Client
    from giaann_p2p.sim.compute import ComputePeer
    from giaann_p2p.sim.node import Node
    from giaann_p2p.sim.storage import Storage
    from giaann_p2p.sim.trainer import Trainer


_FOR_EVER = 1 << 40


class Rules(msgspec.Struct, frozen=True):
    """What a simulated swarm's manifest says."""

    shards: int = 16
    replicas: int = 3
    quorum: int = 2
    redundancy: int = 1


class Swarm:
    """See the module."""

    def __init__(
        self,
        seed: int,
        everything: bool = False,
        settings: Settings | None = None,
        rules: Rules | None = None,
        admission: Literal["open", "token"] = "open",
    ) -> None:
        self.seed, self.rng = seed, random.Random(seed)
        self.clock, self.trace = Clock(), Trace(everything)
        self.network = Network(self.clock, random.Random(f"{seed} network"))
        self.rules = rules or Rules()
        self.settings = settings or Settings()
        self.layout = Layout(shards=self.rules.shards)
        self.lessons = lessons_of(self.layout)
        self.founder = founder = Identity.from_seed(random.Random(f"{seed} founder").randbytes(32))
        self.manifest = Manifest.founded(
            founder,
            name="simulation",
            spec=SPEC,
            layout=self.layout,
            replicas=self.rules.replicas,
            quorum=self.rules.quorum,
            redundancy=self.rules.redundancy,
            admission=admission,
        )
        self.swarm_id = self.manifest.swarm_id
        self.admission = Admission(self.manifest)
        """Everybody's; a list of the revoked is known to all at once."""
        self.tokens: dict[Peer, bytes] = {}
        self.network.gate = self._refusal
        check = checked(self.manifest, self.admission)
        self.terms = Terms.of(SPEC, self.layout, check, self.admission)
        self.eagerness = 0.5
        """How likely a client is to push something in a second."""
        self.storages: list[Storage] = []
        self.promises = Promises(
            self.lessons, self.rules.replicas, self.rules.quorum, self.storages
        )
        self.clients: list[Client] = []
        self.trainers: list[Trainer] = []
        self.computes: list[ComputePeer] = []
        self.hostiles: list[Node] = []
        self._tickets: dict[int, Callable[[Message], None]] = {}
        self._count = 0

    @property
    def nodes(self) -> "list[Node]":
        """All machines."""
        return [*self.storages, *self.clients, *self.trainers, *self.computes, *self.hostiles]

    def skew(self) -> float:
        """Return by how much a machine's clock is wrong."""
        return self.rng.choice((0.0, self.rng.uniform(-30, 30), self.rng.uniform(-1800, 1800)))

    def problems(self) -> list[str]:
        """Return what is not yet as it should be, or never will."""
        found = self.promises.check()
        asking: list[Client | Trainer] = [*self.clients, *self.trainers]
        found += [f"{node.name} has chunks left" for node in asking if not node.done]
        leaving = [node for node in self.storages if node.alive and node.core.leaving]
        return found + [f"{node.name} has not left yet" for node in leaving]

    def admit(self, peer: Peer, rights: Rights, until: int = _FOR_EVER) -> None:
        """Give a peer a token, where one is needed."""
        if not self.admission.is_open:
            token = founded(self.founder, self.swarm_id, peer, rights, until)
            self.tokens[peer] = token.to_bytes()

    def token_of(self, peer: Peer) -> bytes:
        """Return what a peer shows when it connects, and in its record."""
        return self.tokens.get(peer, b"")

    def _refusal(self, peer: Peer, question: Message, now: float) -> str:
        return self.admission.refusal(peer, self.token_of(peer), question, now)

    def ticket(self, answer: Callable[[Message], None]) -> int:
        """Return a number for an answer that is still to be given."""
        self._count += 1
        self._tickets[self._count] = answer
        return self._count

    def answer(self, ticket: int, message: Message) -> None:
        """Give an answer."""
        self._tickets.pop(ticket)(message)

    def surroundings(self, me: Peer) -> Surroundings:
        """Return what a machine that begins knows of the others: nothing."""
        return Surroundings(me, self.swarm_id, self.layout, self.rules.replicas, self.admission)

    def publish(self, node: "Node", record: bytes) -> None:
        """Let everybody know a record who can be reached."""
        for other in self.nodes:
            if other is not node and other.alive:
                self.network.tell(node.peer, other.peer, b"\0" + record)

    def is_heard(self, node: "Node") -> bool:
        """Tell whether somebody answers a node that looks the directory up.

        There is a bootstrap peer that may know of nobody, and is never gone: who is not cut off
        from all the others reaches it, or one of them.
        """
        others = [other.peer for other in self.nodes if other is not node]
        cut = self.network.cut
        heard = [peer for peer in others if not {(node.peer, peer), (peer, node.peer)} & cut]
        return bool(heard) or not others

    def records_seen_from(self, node: "Node") -> list[bytes]:
        """Return what those know who can be reached, as a look-up in the directory does."""
        found: list[bytes] = []
        for other in self.nodes:
            links = {(node.peer, other.peer), (other.peer, node.peer)}
            there = other is not node and other.alive and not other.stopped
            if there and not links & self.network.cut:
                found += other.around.records(other.now)
        return found
