"""A whole simulated swarm: virtual time, seeded randomness, a network, machines and promises."""

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from giaann_p2p.net.clock import Clock
from giaann_p2p.sim.lessons import SPEC, lessons_of
from giaann_p2p.sim.network import Network
from giaann_p2p.sim.node import RECORD, Node
from giaann_p2p.sim.notary import checked
from giaann_p2p.sim.promises import Promises
from giaann_p2p.sim.trace import Trace
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.members.standing import NOTE, Standing
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.messages import Message
from giaann_p2p.swarm.wire.token import Rights, founded

if TYPE_CHECKING:
    from giaann_p2p.sim.client import Client
    from giaann_p2p.sim.compute import ComputePeer
    from giaann_p2p.sim.owner import Owner
    from giaann_p2p.sim.trainer import Trainer


_FOR_EVER = 1 << 40


class Rules(msgspec.Struct, frozen=True):
    """The rules in a simulated swarm's manifest."""

    shards: int = 16
    replicas: int = 3
    quorum: int = 2
    redundancy: int = 1


class Swarm:
    """The shared state of one simulated history."""

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
        """The admission shared by all peers, so that a list of revocations reaches all at once."""
        self.tokens: dict[Peer, bytes] = {}
        self.network.gate = self._refusal
        check = checked(self.manifest, self.admission)
        self.delta_checks = DeltaChecks.of(SPEC, self.layout, check, self.admission)
        self.eagerness = 0.5
        """The probability per second that a client pushes a chunk."""
        self.real = False
        """Whether storage peers that join run the real node."""
        self.storages: list[Owner] = []
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
    def nodes(self) -> list[Node]:
        """All machines."""
        return [*self.storages, *self.clients, *self.trainers, *self.computes, *self.hostiles]

    def close(self) -> None:
        """Kill all machines, so that no task of a real node is left."""
        for node in self.nodes:
            node.die()

    def skew(self) -> float:
        """Draw the error of a machine's clock, in seconds."""
        return self.rng.choice((0.0, self.rng.uniform(-30, 30), self.rng.uniform(-1800, 1800)))

    def problems(self) -> list[str]:
        """Return the problems that remain: broken promises, and work that is not finished."""
        found = self.promises.check()
        asking: list[Client | Trainer] = [*self.clients, *self.trainers]
        found += [f"{node.name} has chunks left" for node in asking if not node.done]
        leaving = [node for node in self.storages if node.alive and node.core.leaving]
        return found + [f"{node.name} has not left yet" for node in leaving]

    def admit(self, peer: Peer, rights: Rights, until: int = _FOR_EVER) -> None:
        """Give a peer a token, if the swarm needs tokens."""
        if not self.admission.is_open:
            token = founded(self.founder, self.swarm_id, peer, rights, until)
            self.tokens[peer] = token.to_bytes()

    def token_of(self, peer: Peer) -> bytes:
        """Return the token that a peer shows when it connects, and in its record."""
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

    def view_of(self, me: Peer, notes: Mapping[str, bytes] | None = None) -> PeersView:
        """Return a machine's initial view of the others, restored from its notes."""
        standing = Standing(me, self.settings.standing, self.settings.founding)
        if notes and NOTE in notes:
            standing.restore(notes[NOTE])
        replicas, admission = self.rules.replicas, self.admission
        return PeersView(me, self.swarm_id, self.layout, replicas, admission, standing)

    def publish(self, node: Node, record: bytes) -> None:
        """Send a record to all live machines."""
        for other in self.nodes:
            if other is not node and other.alive:
                self.network.tell(node.peer, other.peer, RECORD + record)

    def is_heard(self, node: Node) -> bool:
        """Return whether any machine answers a node's directory look-up.

        There is a bootstrap peer that may know no other peer, and never fails: a node that is not
        cut off from all others reaches it, or one of them.
        """
        others = [other.peer for other in self.nodes if other is not node]
        cut = self.network.cut
        heard = [peer for peer in others if not {(node.peer, peer), (peer, node.peer)} & cut]
        return bool(heard) or not others

    def introduce(self, node: Node) -> None:
        """Let a node take in what a look-up returns."""
        for records in self.records_seen_from(node):
            for data in records:
                node.learn(data)

    def records_seen_from(self, node: Node) -> list[list[bytes]]:
        """Return the records known to each machine that a node reaches, as a look-up does."""
        found = list[list[bytes]]()
        for other in self.nodes:
            links = {(node.peer, other.peer), (other.peer, node.peer)}
            there = other is not node and other.alive and not other.stopped
            if there and not links & self.network.cut:
                found.append(other.around.records(other.now))
        return found
