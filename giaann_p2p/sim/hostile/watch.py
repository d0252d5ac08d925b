"""What hostile peers achieved, seen from above: beside all that is promised, nothing of theirs is
believed.

1. A row that a client takes to be true lies between two that honest peers told since it asked: it
   is one of theirs, or one has grown into it and it into another.
2. No honest peer's directory has a record that a hostile peer made up, or an older one in the place
   of a newer.
3. Strangers are told nothing.
4. What honest peers keep in memory is bounded.
5. Nobody honest is called wrong.

Hostile peers' words of what they have taken in count as any owner's when a client takes a chunk to
be safe; so there must be fewer of them among a shard's owners than a quorum.
"""

from collections import Counter
from typing import TYPE_CHECKING

from giaann_p2p.model.rows import Answer, Neuron, Question, Row, Rows
from giaann_p2p.sim.promises import Promises, content_of
from giaann_p2p.swarm.directory import Directory
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.likeness import grown
from giaann_p2p.swarm.record import Key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from giaann_p2p.sim.client import Client
    from giaann_p2p.sim.node import Node
    from giaann_p2p.sim.storage import Storage
    from giaann_p2p.sim.swarm import Swarm

MADE_UP = 0x0BAD_0BAD_0BAD
"""The incarnation of every record that a hostile peer makes up."""
_EVERY = 5.0
_MOST_JOBS = 64
_Told = dict[object, tuple[Row | None, float]]


class Watch(Promises):
    """See the module; it takes the place of a swarm's promises before anybody joins."""

    def __init__(self, swarm: "Swarm") -> None:
        rules = swarm.rules
        super().__init__(swarm.lessons, rules.replicas, rules.quorum, swarm.storages)
        self._swarm = swarm
        self._told: dict[Neuron, _Told] = {}
        self._newest: dict[tuple[Directory, Key], int] = {}
        self.counts: Counter[str] = Counter()
        """What happened how often."""
        swarm.clock.after(_EVERY, self._look)

    def happened(self, what: str) -> None:
        """Count something."""
        self.counts[what] += 1

    def harmed(self, what: str) -> None:
        """Count something that never may happen."""
        if not self.counts[what]:
            self.broken(what)
        self.counts[what] += 1

    def served(self, peer: "Storage", asked: "Iterable[Neuron]", answer: Rows) -> None:
        """Note what an honest peer tells."""
        neurons = list(asked)
        super().served(peer, neurons, answer)
        self._remember(neurons, answer.read(Question(neurons)))

    def _remember(self, neurons: list[Neuron], rows: Answer) -> None:
        now = self._swarm.clock.now
        for neuron, row in zip(neurons, rows, strict=True):
            self._told.setdefault(neuron, {})[content_of(row)] = row, now

    def accepted(self, client: "Client", neurons: list[Neuron], rows: Answer, asked: float) -> None:
        """Compare what a client believes with what honest peers told it, or others, meanwhile."""
        for neuron, row in zip(neurons, rows, strict=True):
            told = self._told.get(neuron, {})
            since = [known for known, when in told.values() if when >= asked]
            if not _is_true(row, since):
                self.harmed("a client believes a row that is wrong")
            self.happened("rows believed")

    def shunned(self, peer: Peer) -> None:
        """Count who is found out."""
        honest = any(peer == one.peer for one in self._swarm.storages)
        self.happened("honest peers shunned" if honest else "liars shunned")

    def named(self, by: "Storage", peer: Peer) -> None:
        """Count who is called wrong."""
        super().named(by, peer)
        self.happened("peers named")

    def found_out(self, peer: Peer) -> None:
        """Count who came to something else than others."""
        if any(peer == one.peer for one in self._swarm.computes):
            super().found_out(peer)
        self.happened("compute peers found out")

    def brought_nothing(self, peer: Peer) -> None:
        """Count who brought nothing of what it said it had."""
        if any(peer == one.peer for one in self._swarm.computes):
            super().brought_nothing(peer)
        self.happened("compute peers that brought nothing")

    def _look(self) -> None:
        """Look into all honest peers' directories, now and then."""
        swarm = self._swarm
        for node in swarm.nodes:
            if node.alive and node not in swarm.hostiles:
                self._look_into(node)
        swarm.clock.after(_EVERY, self._look)

    def _look_into(self, node: "Node") -> None:
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

    def check(self) -> list[str]:
        """Return what is not as it should be now that all is quiet."""
        found = super().check()
        for peer in self._peers:
            if peer.alive and any(
                held.jobs > _MOST_JOBS for held in peer.store.sets(peer.store.shards).values()
            ):
                found.append(f"{peer.name} holds chunks of more jobs than there are")
        return found


def watch_of(swarm: "Swarm") -> Watch:
    """Return who watches a swarm that has hostile peers."""
    if not isinstance(swarm.promises, Watch):
        raise TypeError("a swarm with hostile peers is founded by sim.hostile.cast")
    return swarm.promises


def _is_true(row: Row | None, told: list[Row | None]) -> bool:
    if any(content_of(row) == content_of(known) for known in told):
        return True
    return any(grown(known, row) for known in told) and any(grown(row, known) for known in told)
