"""Counts how many chunks each peer has learned, by their signed authors."""

from collections import Counter

from pyroaring import BitMap

from giaann_p2p.client.learned import Chunk
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.wire.identity import Peer

_NONE = BitMap()


class Authors:
    """The authors of all chunks for which the owners were asked."""

    def __init__(self) -> None:
        self._by_job: dict[bytes, dict[Peer, BitMap]] = {}
        self._looked_at: dict[bytes, BitMap] = {}
        self._unknown: dict[bytes, BitMap] = {}

    def unsettled(self, chunks: Applied) -> Applied:
        """Return the chunks of a set whose authors were not asked for yet."""
        left = ((job, chunks.of(job) - self._looked_at.get(job, _NONE)) for job in chunks)
        return Applied({job: some for job, some in left if some})

    def settle(self, authors: dict[Chunk, list[Peer]]) -> None:
        """Record the authors of chunks."""
        for (job, chunk), peers in authors.items():
            self._looked_at.setdefault(job, BitMap()).add(chunk)
            for peer in peers:
                self._by_job.setdefault(job, {}).setdefault(peer, BitMap()).add(chunk)

    def give_up(self, chunks: Applied) -> None:
        """Record that no owner knows the authors of these chunks any more."""
        for job in chunks:
            for known in (self._looked_at, self._unknown):
                known[job] = known.get(job, _NONE) | chunks.of(job)

    def unknown(self, chunks: Applied) -> int:
        """Return how many chunks of a set have authors that are no longer known."""
        return sum(len(some & chunks.of(job)) for job, some in self._unknown.items())

    def of(self, job: bytes, chunks: Applied) -> Counter[Peer]:
        """Return how many chunks of a job each peer has learned, among the chunks of a set."""
        learned, found = chunks.of(job), Counter[Peer]()
        for peer, some in self._by_job.get(job, {}).items():
            if count := len(some & learned):
                found[peer] = count
        return found
