"""What the swarm promises, checked from above, where everything can be seen."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from giaann_p2p.model.rows import Answer, Neuron, Question, Row, Rows
from giaann_p2p.sim.lessons import Lessons
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.actions import Release
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.replica import State

if TYPE_CHECKING:
    from giaann_p2p.sim.client import Client
    from giaann_p2p.sim.storage import Storage

Chunk = tuple[bytes, int]


class Promises:
    """Who promised what, and whether it was kept."""

    def __init__(
        self, lessons: Lessons, replicas: int, quorum: int, peers: "Sequence[Storage]"
    ) -> None:
        self._peers = peers
        self._lessons, self._replicas, self._quorum = lessons, replicas, quorum
        self._acked: dict[tuple[Chunk, int], set[Storage]] = {}
        self._durable: dict[Storage, dict[int, set[Chunk]]] = {}
        self.committed: set[Chunk] = set()
        self.faults: list[str] = []
        """What was broken on the way."""

    def broken(self, what: str) -> None:
        """Note that something happened that never may."""
        self.faults.append(what)

    def acked(self, peer: "Storage", job: bytes, chunk: int, shards: Shards) -> None:
        """A peer says that it has a chunk on its disk."""
        for shard in shards.tolist():
            self._acked.setdefault(((job, chunk), shard), set()).add(peer)
            self._durable.setdefault(peer, {}).setdefault(shard, set()).add((job, chunk))

    def reopened(self, peer: "Storage") -> None:
        """A peer is back after a crash: what it acknowledged must be there."""
        shards = self._durable.get(peer, {})
        found = peer.store.sets(shards)
        for shard, chunks in shards.items():
            missing = [chunk for chunk in chunks if chunk not in found.get(shard, Applied())]
            if missing:
                self.broken(f"{peer.name} forgot {len(missing)} chunks of shard {shard} in a crash")

    def let_go(self, peer: "Storage", held: dict[int, Applied]) -> None:
        """A peer lets go of shards: enough others must have all that it had of them."""
        for shard, chunks in held.items():
            self._durable.get(peer, {}).pop(shard, None)
            others = [other for other in self._peers if other is not peer and other.keeps]
            having = [other for other in others if chunks <= _chunks(other, shard)]
            if chunks and len(having) < min(self._quorum, len(others)):
                self.broken(f"{peer.name} let go of shard {shard}, which {len(having)} others have")

    def known(self, peer: "Storage", decided: Release) -> dict[int, set[Peer]]:
        """Return whom a peer knows to hold what it has just decided to release, by shard."""
        return {
            shard: {*peer.around.witnesses(shard, peer.now), *peer.core.replicas.owners(shard)}
            for shards, _ in decided.parts
            for shard in shards.tolist()
        }

    def released(self, peer: "Storage", decided: Release, known: Mapping[int, set[Peer]]) -> None:
        """A peer keeps deltas no longer: it must still be able to become one with all it knew of.

        Whoever lacks them takes a whole shard, and adds what it has beyond that, of which it needs
        the deltas. So of any two, one has all that the other has without deltas. (Of who was cut
        off before it said that it holds a shard, a peer cannot know; nor of one that says so after
        this was decided, and before it is done.)
        """
        for shards, chunks in decided.parts:
            for shard in shards.tolist():
                for other in self._peers:
                    counts = other.keeps and other.peer in known[shard]
                    theirs = _chunks(other, shard) if counts else Applied()
                    if theirs and not chunks <= theirs and not _can_be_one(peer, other, shard):
                        self.broken(
                            f"{peer.name} and {other.name} each let go of what the other lacks "
                            f"of shard {shard}"
                        )

    def commit(self, job: bytes, chunk: int) -> None:
        """A client takes a chunk to be safe: so many must have it, or have said so."""
        self.committed.add((job, chunk))
        for shard in range(self._lessons.layout.shards):
            peers = self._acked.get(((job, chunk), shard), set())
            if len(peers) >= self._quorum:
                continue
            having = {p for p in self._peers if p.keeps and (job, chunk) in _chunks(p, shard)}
            if len(peers | having) < self._quorum:
                self.broken(f"chunk {chunk} is taken to be safe; shard {shard} has it once")

    def check(self) -> list[str]:
        """Return what is not as it should be now that all is quiet."""
        there = [peer for peer in self._peers if peer.alive]
        problems = self.faults + [
            f"{peer.name} has other shards in its store than it knows of"
            for peer in there
            if peer.store.shards.tolist() != peer.core.replicas.held.tolist()
        ]
        for shard in range(self._lessons.layout.shards):
            problems += self._shard(shard, there)
        problems += self._kept(there)
        return problems or self._contents(there)

    def _contents(self, there: list["Storage"]) -> list[str]:
        found = []
        for peer in there:
            for shard in peer.core.replicas.all(State.READY).tolist():
                found += self._content(shard, peer)
        return found

    def _shard(self, shard: int, there: list["Storage"]) -> list[str]:
        states = {peer: peer.core.replicas.state(shard) for peer in there}
        ready = [peer for peer, state in states.items() if state is State.READY]
        problems = [
            f"shard {shard} is still {state.name.lower()} at {peer.name}"
            for peer, state in states.items()
            if state in (State.SYNCING, State.DRAINING)
        ]
        if len(ready) != min(self._replicas, len(there)):
            problems.append(f"shard {shard} has {len(ready)} ready replicas")
        sets = [_chunks(peer, shard) for peer in ready]
        if any(chunks != sets[0] for chunks in sets):
            problems.append(f"shard {shard} has replicas with different chunks")
        return problems

    def _content(self, shard: int, peer: "Storage") -> list[str]:
        held = peer.store.content(shard)
        if held.digest != self._lessons.digest(shard, numbers(held.applied[0])):
            return [f"shard {shard} at {peer.name} is not what its chunks come to"]
        return []

    def _kept(self, there: list["Storage"]) -> list[str]:
        problems = []
        ready = {
            shard: [
                _chunks(peer, shard)
                for peer in there
                if peer.core.replicas.state(shard) is State.READY
            ]
            for shard in range(self._lessons.layout.shards)
        }
        for ((job, chunk), shard), peers in self._acked.items():
            if (job, chunk) not in self.committed and all(peer.lost for peer in peers):
                continue
            if any((job, chunk) not in chunks for chunks in ready[shard]):
                problems.append(f"chunk {chunk} was acknowledged for shard {shard} and is lost")
        return problems

    def accepted(self, client: "Client", neurons: list[Neuron], rows: Answer, asked: float) -> None:
        """A client takes rows to be true that it asked for at that time; `served` sees to them."""

    def shunned(self, peer: Peer) -> None:
        """A client reads no more from a peer, for it lied; `accepted` tells if it lied to some."""

    def named(self, by: "Storage", peer: Peer) -> None:
        """A peer says that another holds something wrong: nobody honest does."""
        if any(peer == one.peer for one in self._peers):
            self.broken(f"{by.name} calls wrong what an honest peer holds")

    def found_out(self, peer: Peer) -> None:
        """A coordinator sends a compute peer away, for it came to something else than others."""
        self.broken("an honest compute peer was taken for a liar")

    def brought_nothing(self, peer: Peer) -> None:
        """A coordinator sends a compute peer away, for owners know nothing of what it brought."""
        self.broken("an honest compute peer was taken for one that brings nothing")

    def served(self, peer: "Storage", asked: Iterable[Neuron], answer: Rows) -> None:
        """A peer serves some neurons' rows: they must be what its chunks come to, just now."""
        by_shard: dict[int, list[Neuron]] = {}
        for neuron in asked:
            by_shard.setdefault(self._lessons.layout.shard_of(*neuron), []).append(neuron)
        for shard, neurons in by_shard.items():
            whole = self._lessons.rows(shard, numbers(_chunks(peer, shard)))
            question = Question(neurons)
            pairs = zip(answer.read(question), whole.read(question), strict=True)
            if any(content_of(told) != content_of(held) for told, held in pairs):
                self.broken(f"{peer.name} serves rows of shard {shard} that are wrong")


def _chunks(peer: "Storage", shard: int) -> Applied:
    return peer.store.sets([shard]).get(shard, Applied())


def _can_be_one(one: "Storage", other: "Storage", shard: int) -> bool:
    return _has_bare_of(one, other, shard) or _has_bare_of(other, one, shard)


def _has_bare_of(one: "Storage", other: "Storage", shard: int) -> bool:
    """Tell whether one has all that the other has without deltas."""
    bare = _chunks(other, shard) - other.store.retained_for(shard)
    return bare <= _chunks(one, shard)


def numbers(applied: Applied) -> frozenset[int]:
    """Return the chunks of all jobs that count; in a simulation their numbers are their own."""
    left = applied.left
    return frozenset(chunk for job in left for chunk in left.of(job))


def content_of(row: Row | None) -> object:
    """Return what stands in a row, in an order of its own."""
    if row is None:
        return None
    fields = (
        row.target_concept[row.target],
        row.target_feature[row.target],
        row.branch,
        row.segment,
        row.strength,
    )
    links = zip(*(field.tolist() for field in fields), strict=True)
    return row.name, row.count, tuple(sorted(links))
