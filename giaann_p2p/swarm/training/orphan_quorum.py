"""What a founder withdraws, by what the owners of its swarm tell: a chunk for which none but
disowned peers stand.

An owner that remembers a chunk's delta knows who stands for it, and tells; one that has forgotten
it does not know, and one that lies may tell anything. Each shard is told of every chunk, so all
owners have all chunks, whatever shards are theirs, or will have them in a moment. So
1. more than half of all owners have to tell that a chunk is an orphan: a lone liar of three can
   neither have a chunk withdrawn that honest peers taught, be it long forgotten, nor keep a false
   one. Who does not answer, or has forgotten, or is new, has not told.
2. More than half of all, too, have to tell the same root; or all that a chunk is an orphan: then
   nobody will need another's delta to withdraw it.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.withdrawn import Chunk


class Agreed(NamedTuple):
    """What comes of it."""

    roots: dict[Chunk, bytes]
    """What is to be withdrawn."""
    left: set[Chunk]
    """What is told, but by too few."""
    silent: int
    """Owners that did not answer."""
    asked: int

    def by_job(self) -> dict[bytes, int]:
        """Return how many chunks of each job are to be withdrawn."""
        return dict(sorted(Counter(job for job, _ in self.roots).items()))


def agreed(told: Mapping[Peer, Mapping[Chunk, bytes] | None]) -> Agreed:
    """Return what owners agree on that told orphans with their roots; None for one in silence."""
    votes = dict[Chunk, Counter[bytes]]()
    for said in told.values():
        for chunk, root in said.items() if said else ():
            votes.setdefault(chunk, Counter())[root] += 1
    elected = {chunk: _elected(each, len(told)) for chunk, each in votes.items()}
    return Agreed(
        {chunk: root for chunk, root in elected.items() if root},
        {chunk for chunk, root in elected.items() if not root},
        sum(said is None for said in told.values()),
        len(told),
    )


def _elected(votes: Counter[bytes], owners: int) -> bytes:
    """Return the root that is to be withdrawn; nothing if none is."""
    count, root = max((count, root) for root, count in votes.items())
    return root if 2 * count > owners or votes.total() == owners else b""
