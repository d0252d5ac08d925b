"""The state shared by all simulated processes: time, randomness, a network, rules and promises.

A process sees the others only as `Node`; the lists of processes by kind are in
`giaann_p2p.sim.swarm`.
"""

import random
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Literal

import msgspec

from giaann_p2p.model.traits import traits_of
from giaann_p2p.net.clock import Clock
from giaann_p2p.sim.holder import Holder
from giaann_p2p.sim.lessons import large_columns, lessons_of
from giaann_p2p.sim.network import Network
from giaann_p2p.sim.node import RECORD, Node
from giaann_p2p.sim.notary import Notaries
from giaann_p2p.sim.promises import Promises
from giaann_p2p.sim.trace import Trace
from giaann_p2p.store.cut_columns import CutColumns, cut_columns, read_columns
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.undisturbed import undisturbed
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.members.standing import Standing
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.edition import Edition, Editions
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.manifest import Rules as ManifestRules
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.revoked import Revoked
from giaann_p2p.swarm.wire.token import Rights, founded

_FOR_EVER = 1 << 40
_STEP = 5.0
"""The virtual seconds after which Ctrl-C may take effect."""


class Rules(msgspec.Struct, frozen=True):
    """The rules in a simulated swarm's manifest."""

    shards: int = 16
    replicas: int = 3
    quorum: int = 2
    redundancy: int = 1
    profile: str = "words"
    cut: int = 0
    """The number of parts of the largest columns; 0: none is cut. In odd seeds they are cut late:
    every second chunk is learned without cuts, into part 0 alone."""


class World:
    """The shared state of one simulated history.

    `storages` and `others` are the lists of honest processes; their owner adds to them later.
    """

    def __init__(
        self,
        seed: int,
        everything: bool,
        settings: Settings,
        rules: Rules,
        admission: Literal["open", "token"],
        storages: Sequence[Holder],
        others: Sequence[Sequence[Node]],
    ) -> None:
        self.seed, self.rng = seed, random.Random(seed)
        self.clock, self.trace = Clock(), Trace(everything)
        self.network = Network(self.clock, random.Random(f"{seed} network"))
        self.rules, self.settings = rules, settings
        layout = Layout(
            shards=rules.shards,
            blocks=traits_of(rules.profile).blocks,
            cuts=large_columns(rules.profile, rules.cut),
        )
        self.lessons = lessons_of(layout, rules.profile, late=bool(rules.cut and seed % 2))
        """The lessons for the layout of the newest edition; `of` returns them for other layouts."""
        self.founder = founder = Identity.from_seed(random.Random(f"{seed} founder").randbytes(32))
        self.manifest = Manifest.founded(
            founder,
            name="simulation",
            spec=self.lessons.spec,
            layout=layout,
            replicas=self.rules.replicas,
            quorum=self.rules.quorum,
            redundancy=self.rules.redundancy,
            admission=admission,
        )
        self.swarm_id = self.manifest.swarm_id
        self.admission = Admission(self.manifest)
        """The access control of all nodes but machines, with the newest list of revoked peers."""
        self.editions = Editions(self.manifest)
        """The newest edition, which all nodes but machines and clients know at once."""
        self.signed_editions: dict[int, bytes] = {}
        """All editions by their numbers."""
        self.tokens: dict[Peer, bytes] = {}
        self.network.gate = self._refusal
        self.on_division: Callable[[Holder], None] = lambda peer: None
        """Called when a peer is about to divide the shards of its store."""
        self._notaries = Notaries(self.manifest)
        self.eagerness = 0.5
        """The probability per second that a client pushes a chunk."""
        self.promises = Promises(self.lessons, rules.replicas, rules.quorum, storages)
        self._honest = storages, *others
        """The lists of honest processes, in the order in which `nodes` returns them: a record that
        is published draws its delays from `network` in this order."""
        self.hostiles: list[Node] = []

    @property
    def nodes(self) -> list[Node]:
        """All simulated processes, hostile ones included."""
        return [*chain(*self._honest), *self.hostiles]

    @property
    def columns(self) -> CutColumns:
        """The cut columns, as readers need to know them to join rows."""
        columns = self.editions.rules.columns
        return read_columns((cut_columns(()), columns)) if self.lessons.late else columns

    def run_until(self, end: float) -> None:
        """Run the swarm up to a virtual time; Ctrl-C takes effect between two steps of 5 s.

        In the middle of an event, Ctrl-C would leave tasks of a node that are never cancelled.
        """
        while self.clock.now < end:
            with undisturbed():
                self.clock.run_until(min(self.clock.now + _STEP, end))

    def close(self) -> None:
        """Kill all nodes, so that no task of theirs is left; Ctrl-C takes effect at the end."""
        with undisturbed():
            for node in self.nodes:
                node.die()

    def skew(self) -> float:
        """Draw the error of a machine's clock, in seconds."""
        return self.rng.choice((0.0, self.rng.uniform(-30, 30), self.rng.uniform(-1800, 1800)))

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

    def revoke(self, revoked: Revoked) -> None:
        """Publish a newer list of revoked peers: all live nodes get it now."""
        data = revoked.to_bytes()
        self.admission.learn(data)
        for node in self.nodes:
            node.learn_revoked(data)

    def publish_edition(self, edition: Edition) -> None:
        """Publish the founder's edition; at first, only nodes that share `editions` know it."""
        self.signed_editions[edition.number] = edition.to_bytes()
        self.editions.learn(edition.to_bytes())
        self.promises.replicas = edition.replicas
        self.lessons = self.lessons.of(self.editions.rules.layout)
        self.promises.count_as(self.lessons)

    def delta_checks(self, admission: Admission, rules: Callable[[], ManifestRules]) -> DeltaChecks:
        """Return a peer's checks of deltas, given its admission and the rules that it knows."""
        check = self._notaries.check(admission, rules)
        return DeltaChecks(self.lessons.spec, rules, check, admission)

    def view_of(self, me: Peer, editions: Editions | None = None) -> PeersView:
        """Return a node's initial view of its peers.

        `editions`: the node's own editions; by default, it shares those of the world.
        """
        known = editions or self.editions
        standing = Standing(me, self.settings.standing, self.settings.founding)
        return PeersView(me, self.swarm_id, lambda: known.rules, self.admission, standing)

    def publish(self, node: Node, record: bytes) -> None:
        """Send a node's record to all other live nodes."""
        for other in self.nodes:
            if other is not node and other.alive:
                self.network.tell(node.peer, other.peer, RECORD + record)

    def is_heard(self, node: Node) -> bool:
        """Return whether any machine answers a node's directory look-up.

        A bootstrap peer is assumed that never fails, although it may know no other peer. So a node
        gets an answer unless it is cut off from all other nodes.
        """
        if not (cut := self.network.cut):  # the common case
            return True
        others = [other.peer for other in self.nodes if other is not node]
        heard = [peer for peer in others if not {(node.peer, peer), (peer, node.peer)} & cut]
        return bool(heard) or not others

    def introduce(self, node: Node) -> None:
        """Add the records that a directory look-up returns to a node's directory."""
        for records in self.records_seen_from(node):
            for data in records:
                node.learn(data)

    def records_seen_from(self, node: Node) -> list[list[bytes]]:
        """Return the records that a directory look-up finds: one list per node that is reached."""
        found = list[list[bytes]]()
        for other in self.nodes:
            links = {(node.peer, other.peer), (other.peer, node.peer)}
            there = other is not node and other.alive and not other.stopped
            if there and not links & self.network.cut:
                found.append(other.around.records(other.now))
        return found
