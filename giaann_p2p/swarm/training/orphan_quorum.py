"""Which orphans a founder withdraws, by a quorum of owners: chunks of disowned authors only.

An owner that remembers a chunk's delta knows its authors, and reports it. An owner that has
forgotten the delta does not know, and a lying owner may report anything. Every shard gets every
chunk, so all owners have all chunks, or will have them soon. A chunk is withdrawn if

1. more than half of all owners report it as an orphan with the same root: of three owners, a single
   liar can neither withdraw a chunk of honest authors, even a long forgotten one, nor protect a
   false one. An owner that does not answer, has forgotten, or is new, counts as not reporting; or
2. all owners report it as an orphan, whatever the roots: then no owner needs another's delta to
   withdraw it.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.withdrawn import Chunk


class Agreed(NamedTuple):
    """The result of a poll of the owners."""

    roots: dict[Chunk, bytes]
    """The chunks to withdraw, each with its root."""
    left: set[Chunk]
    """Chunks that too few owners reported."""
    silent: int
    """Number of owners that did not answer."""
    asked: int
    """Number of owners asked."""

    def by_job(self) -> dict[bytes, int]:
        """Return, by job, how many of its chunks are to be withdrawn."""
        return dict(sorted(Counter(job for job, _ in self.roots).items()))


def agreed(told: Mapping[Peer, Mapping[Chunk, bytes] | None]) -> Agreed:
    """Return the orphans on which the owners agree, by their reports; None marks a silent owner."""
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
    """Return the most reported root if it has enough votes, else an empty one."""
    count, root = max((count, root) for root, count in votes.items())
    return root if 2 * count > owners or votes.total() == owners else b""
