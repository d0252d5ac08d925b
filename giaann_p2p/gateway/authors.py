"""Who learned how much: the signed authors of chunks, by job."""

from collections import Counter

from pyroaring import BitMap

from giaann_p2p.client.learned import Chunk
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.wire.identity import Peer

_NONE = BitMap()


class Authors:
    """The authors of all chunks that were looked at."""

    def __init__(self) -> None:
        self._by_job: dict[bytes, dict[Peer, BitMap]] = {}
        self._looked_at: dict[bytes, BitMap] = {}
        self._unknown: dict[bytes, BitMap] = {}

    def unsettled(self, chunks: Applied) -> Applied:
        """Return the chunks of a set that were not looked at yet."""
        left = ((job, chunks.of(job) - self._looked_at.get(job, _NONE)) for job in chunks)
        return Applied({job: some for job, some in left if some})

    def settle(self, authors: dict[Chunk, list[Peer]]) -> None:
        """Note the authors of some chunks."""
        for (job, chunk), peers in authors.items():
            self._looked_at.setdefault(job, BitMap()).add(chunk)
            for peer in peers:
                self._by_job.setdefault(job, {}).setdefault(peer, BitMap()).add(chunk)

    def give_up(self, chunks: Applied) -> None:
        """Note that nobody knows any more who learned some chunks."""
        for job in chunks:
            for known in (self._looked_at, self._unknown):
                known[job] = known.get(job, _NONE) | chunks.of(job)

    def unknown(self, chunks: Applied) -> int:
        """Return how many chunks of a set have authors that nobody knows any more."""
        return sum(len(some & chunks.of(job)) for job, some in self._unknown.items())

    def of(self, job: bytes, chunks: Applied) -> Counter[Peer]:
        """Return how many chunks of a job, as far as they are in a set, each peer has learned."""
        learned, found = chunks.of(job), Counter[Peer]()
        for peer, some in self._by_job.get(job, {}).items():
            if count := len(some & learned):
                found[peer] = count
        return found
