"""The promises of a swarm, checked with a view of the whole simulation.

Shards are counted by the newest edition (see `holder`). A peer's promise about a shard that is
divided later holds for each of its children.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from giaann_p2p.model.row_slice import EVERYTHING, RowSlice
from giaann_p2p.model.rows import Answer, Neuron, Question, Row, Rows
from giaann_p2p.sim.holder import Holder
from giaann_p2p.sim.joined_rows import JoinedRows
from giaann_p2p.sim.lessons import Lessons
from giaann_p2p.sim.node import Node
from giaann_p2p.sim.told_rows import ToldRows, content_of, sliced
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.wire.actions import Release
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import children, recounted

Chunk = tuple[bytes, int]
"""A job's id, and the number of one of its chunks."""


class Promises:
    """Records the promises that peers make, and checks that they are kept."""

    def __init__(
        self, lessons: Lessons, replicas: int, quorum: int, peers: Sequence[Holder]
    ) -> None:
        self._peers = peers
        self._lessons, self._quorum = lessons, quorum
        self.replicas = replicas
        """The number of ready replicas that each shard must have in the end."""
        self._acked: dict[tuple[Chunk, int], set[Holder]] = {}
        self._durable: dict[Holder, dict[int, set[Chunk]]] = {}
        self._joined, self._told = JoinedRows(), ToldRows()
        self.committed: set[Chunk] = set()
        self.may_lose_all_owners = False
        """Whether all peers with standing that acknowledged a chunk may be lost in this history."""
        self.faults: list[str] = []
        """Promises that were broken so far."""

    @property
    def shards(self) -> int:
        """The number of shards in the swarm."""
        return self._lessons.layout.shards

    def count_as(self, lessons: Lessons) -> None:
        """From now on, count shards as these lessons do; they may have more shards than before."""
        before, after = self.shards, lessons.layout.shards
        self._lessons = lessons
        if after > before:
            self._acked = {
                (chunk, child): {*peers}
                for (chunk, shard), peers in self._acked.items()
                for child in children([shard], before, after)
            }
            for peer, durable in self._durable.items():
                self._durable[peer] = {
                    child: {*chunks}
                    for shard, chunks in durable.items()
                    for child in children([shard], before, after)
                }

    def broken(self, what: str) -> None:
        """Record a broken promise."""
        self.faults.append(what)

    def harmed(self, what: str) -> None:
        """Record a broken promise of which one case is as bad as many."""
        if what not in self.faults:
            self.broken(what)

    def acked(self, peer: Holder, job: bytes, chunk: int, shards: Shards, count: int = 0) -> None:
        """Record that a peer acknowledged a chunk as durable.

        `count` is the number of shards in the peer's layout; 0 means that of the newest edition.
        """
        for shard in recounted(shards, count or self.shards, self.shards).tolist():
            self._acked.setdefault(((job, chunk), shard), set()).add(peer)
            self._durable.setdefault(peer, {}).setdefault(shard, set()).add((job, chunk))

    def reopened(self, peer: Holder) -> None:
        """Check that a peer with a disk has all it acknowledged, after a crash and a restart."""
        for shard, chunks in self._durable.get(peer, {}).items():
            found = peer.kept(shard)
            missing = [chunk for chunk in chunks if chunk not in found]
            if missing:
                self.broken(f"{peer.name} forgot {len(missing)} chunks of shard {shard} in a crash")

    def let_go(self, peer: Holder, held: dict[int, Applied]) -> None:
        """Check that enough others have all chunks of the shards that a peer drops."""
        self.forgot(peer)
        for shard, chunks in self._recounted(held, peer.store.layout.shards):
            if self.may_lose_all_owners and chunks <= peer.kept(shard):
                continue  # the owners that proved to have it may have been lost just now
            others = [other for other in self._peers if other is not peer and other.keeps]
            having = [other for other in others if chunks <= other.chunks(shard)]
            if chunks and len(having) < min(self._quorum, len(others)):
                self.broken(f"{peer.name} dropped shard {shard}, which {len(having)} others have")

    def forgot(self, peer: Holder) -> None:
        """Note that a peer drops shards or cold copies: only the chunks left are still promised."""
        durable = self._durable.get(peer, {})
        for shard in [*durable]:
            if peer.stored(shard) not in peer.store.shards:
                durable[shard] &= set(_flat(peer.kept(shard)))

    def known(self, peer: Holder, decided: Release) -> dict[int, set[Peer]]:
        """Return the peers known to hold the deltas that a peer is about to release.

        The result is by shard, as numbered by the peer's own layout.
        """
        return {
            shard: {*peer.around.witnesses(shard, peer.now), *peer.core.replicas.owners(shard)}
            for shards, _ in decided.parts
            for shard in shards.tolist()
        }

    def released(self, peer: Holder, decided: Release, known: Mapping[int, set[Peer]]) -> None:
        """Check that a peer that releases deltas can still be merged with all replicas known to it.

        A replica that lacks the deltas copies the whole shard, and adds its own further chunks by
        their deltas. So of any two replicas, one must have all chunks that the other has without
        their deltas.
        (A peer cannot know of a replica that was cut off before it announced the shard, nor of one
        that announces it between the decision and its execution.)
        """
        count = peer.store.layout.shards
        for shards, chunks in decided.parts:
            for shard, _ in self._recounted(dict.fromkeys(shards.tolist(), chunks), count):
                for other in self._peers:
                    counts = other.keeps and other.peer in known[shard % count]
                    theirs = other.chunks(shard) if counts else Applied()
                    if theirs and not chunks <= theirs and not _can_be_one(peer, other, shard):
                        self.broken(
                            f"{peer.name} and {other.name} each released deltas that the "
                            f"other lacks of shard {shard}"
                        )

    def _recounted(self, held: dict[int, Applied], count: int) -> Iterator[tuple[int, Applied]]:
        """Yield each shard as the newest edition counts it, with the chunks of its parent."""
        for shard, chunks in held.items():
            for child in children([shard], count, self.shards):
                yield child, chunks

    def commit(self, job: bytes, chunk: int) -> None:
        """Check that a quorum has or acknowledged a chunk that a client regards as committed."""
        self.committed.add((job, chunk))
        for shard in range(self.shards):
            peers = self._acked.get(((job, chunk), shard), set())
            if len(peers) >= self._quorum:
                continue
            having = {p for p in self._peers if p.keeps and (job, chunk) in p.chunks(shard)}
            if len(peers | having) < self._quorum:
                self.broken(f"chunk {chunk} is taken as committed; shard {shard} lacks a quorum")

    def check(self) -> list[str]:
        """Return the promises that are not kept after all faults have ended."""
        there = [peer for peer in self._peers if peer.alive]
        problems = self.faults + [
            f"{peer.name} has other shards in its store than it knows of"
            for peer in there
            if peer.store.shards.tolist() != peer.core.replicas.held.tolist()
        ]
        for shard in range(self.shards):
            problems += self._shard(shard, there)
        problems += self._kept(there)
        return problems or self._contents(there)

    def _contents(self, there: list[Holder]) -> list[str]:
        found = []
        for peer in there:
            for shard in peer.core.replicas.all(ReplicaState.READY).tolist():
                found += self._content(shard, peer)
        return found

    def _shard(self, shard: int, there: list[Holder]) -> list[str]:
        states = {peer: peer.state(shard) for peer in there}
        ready = [peer for peer, state in states.items() if state is ReplicaState.READY]
        problems = [
            f"shard {shard} is still {state.name.lower()} at {peer.name}"
            for peer, state in states.items()
            if state in (ReplicaState.SYNCING, ReplicaState.DRAINING)
        ]
        placed = [peer for peer in ready if not peer.is_beside(shard)]
        if len(placed) != min(self.replicas, len(there)):
            problems.append(f"shard {shard} has {len(placed)} ready replicas")
        sets = [peer.chunks(shard) for peer in ready]
        if any(chunks != sets[0] for chunks in sets):
            problems.append(f"shard {shard} has replicas with different chunks")
        return problems

    def _content(self, shard: int, peer: Holder) -> list[str]:
        held = peer.store.content(shard)
        lessons = self._lessons.of(peer.store.layout)
        if held.digest != lessons.digest(shard, numbers(held.applied[0])):
            return [f"shard {shard} at {peer.name} is not the sum of its chunks"]
        return []

    def _kept(self, there: list[Holder]) -> list[str]:
        problems = []
        ready = {
            shard: [peer.chunks(shard) for peer in there if peer.state(shard) is ReplicaState.READY]
            for shard in range(self.shards)
        }
        for ((job, chunk), shard), peers in self._acked.items():
            may_go = self.may_lose_all_owners or (job, chunk) not in self.committed
            if may_go and all(self._is_gone(peer) for peer in peers):
                continue
            if any((job, chunk) not in chunks for chunks in ready[shard]):
                problems.append(f"chunk {chunk} was acknowledged for shard {shard} and is lost")
        return problems

    def _is_gone(self, peer: Holder) -> bool:
        """Return whether a peer is gone with all its data.

        A peer that leaves hands its shards over to owners of standing, and takes its cold copies
        away.
        """
        return peer.lost or (self.may_lose_all_owners and peer.left)

    def accepted(self, client: Node, neurons: list[Neuron], rows: Answer, asked: float) -> None:
        """Check that the rows that a client accepts are true (see `told_rows`)."""
        for _ in self._told.untrue(neurons, rows, asked):
            self.harmed("a client believes a row that is wrong")

    def complete(self, client: Node, neurons: list[Neuron], rows: Answer) -> None:
        """Check that rows that a client read in the end come from all committed chunks."""
        if self.may_lose_all_owners:
            return
        chunks = frozenset(chunk for _, chunk in self.committed)
        for shard in self._wrong(neurons, rows, lambda _: chunks):
            self.broken(f"{client.name} reads rows of shard {shard} that lack a committed chunk")

    def joined(self, parts: list[Neuron], row: Row | None, asked: float) -> None:
        """Check a row that a client has joined from those of some parts, part 0 first."""
        if (fault := self._joined.fault(self._lessons, parts, row, asked)) is not None:
            self.broken(fault)

    def avoided(self, peer: Peer) -> None:
        """Do nothing when a client avoids a peer that lied: `accepted` checks the lie's effect."""

    def named(self, by: Node, peer: Peer) -> None:
        """Record a broken promise if a peer reports an honest peer as wrong."""
        if any(peer == one.peer for one in self._peers):
            self.broken(f"{by.name} reports an honest peer's content as wrong")

    def found_out(self, peer: Peer) -> None:
        """Record a broken promise: an honest compute peer was excluded for a differing result."""
        self.broken("an honest compute peer was taken for a liar")

    def brought_nothing(self, peer: Peer) -> None:
        """Record a broken promise: an honest compute peer was excluded for missing results."""
        self.broken("an honest compute peer was accused of committing nothing")

    def served(
        self, peer: Holder, asked: Iterable[Neuron], answer: Rows, within: RowSlice = EVERYTHING
    ) -> None:
        """Check that a peer's served rows come from exactly its chunks at that moment."""
        neurons, now = list(asked), peer.clock.now
        rows = answer.read(Question(neurons))
        self._told.add(neurons, rows, within, now)
        if self._lessons.layout.columns and within == EVERYTHING:
            for shard, some in self._by_shard(neurons).items():
                self._joined.served(some, numbers(peer.chunks(shard)), now)
        for shard in self._wrong(neurons, rows, lambda n: numbers(peer.chunks(n)), within):
            self.broken(f"{peer.name} serves rows of shard {shard} that are wrong")

    def _wrong(
        self,
        neurons: list[Neuron],
        rows: Answer,
        chunks_of: Callable[[int], frozenset[int]],
        within: RowSlice = EVERYTHING,
    ) -> Iterator[int]:
        """Yield the shards of which some rows, or slices, are not those of exactly these chunks."""
        told = dict(zip(neurons, rows, strict=True))
        for shard, some in self._by_shard(neurons).items():
            whole = self._lessons.rows(shard, chunks_of(shard)).read(Question(some))
            right = [row if row is None else sliced(row, within) for row in whole]
            pairs = zip(some, right, strict=True)
            if any(content_of(told[neuron]) != content_of(row) for neuron, row in pairs):
                yield shard

    def _by_shard(self, neurons: Iterable[Neuron]) -> dict[int, list[Neuron]]:
        by_shard: dict[int, list[Neuron]] = {}
        for neuron in neurons:
            by_shard.setdefault(self._lessons.layout.shard_of(*neuron), []).append(neuron)
        return by_shard


def _flat(applied: Applied) -> Iterator[Chunk]:
    for job in applied:
        yield from ((job, chunk) for chunk in applied.of(job))


def _can_be_one(one: Holder, other: Holder, shard: int) -> bool:
    return one.can_give_rest_to(other, shard) or other.can_give_rest_to(one, shard)


def numbers(applied: Applied) -> frozenset[int]:
    """Return the numbers of all chunks that are not withdrawn.

    In a simulation, the chunks of different jobs have different numbers.
    """
    left = applied.left
    return frozenset(chunk for job in left for chunk in left.of(job))
