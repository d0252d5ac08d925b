"""Decides by a quorum of owners which orphans a founder withdraws.

An orphan is a chunk that only disowned peers vouch for, or that the founder searched for. An owner
that remembers an orphan's delta knows its authors, and reports it. An owner that has forgotten the
delta cannot report it, and a lying owner may report anything. Every shard gets every chunk, so all
owners have all chunks, or will have them soon. A chunk is withdrawn if

1. more than half of all owners report it as an orphan with the same root. Of three owners, a single
   liar can neither withdraw a chunk of honest authors, even a long forgotten one, nor protect a
   false one. An owner that does not answer, has forgotten the chunk, or is new, counts as not
   reporting it; or
2. all owners report it as an orphan, whatever the roots. Then each owner has a delta of its own to
   withdraw, and needs none from the others.

A delta's root depends on the layout in which it was sealed. So a chunk that was pushed again after
the number of shards doubled may have two honest roots, and then needs all owners.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.withdrawn import Chunk


class Agreed(NamedTuple):
    """The decision that follows from the owners' reports on orphans."""

    roots: dict[Chunk, bytes]
    """The chunks to withdraw, each with the root of the delta to remove."""
    left: set[Chunk]
    """The orphans that too few owners reported to withdraw them."""
    silent: int
    """Number of owners that did not answer."""
    asked: int
    """Number of owners that were asked."""

    def by_job(self) -> dict[bytes, int]:
        """Return, for each job, the number of its chunks to withdraw."""
        return dict(sorted(Counter(job for job, _ in self.roots).items()))


def agreed(told: Mapping[Peer, Mapping[Chunk, bytes] | None]) -> Agreed:
    """Return which orphans to withdraw, given each owner's report: the root of each of its orphans.

    The report of an owner that did not answer is None.
    """
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
    """Return the root of the delta to withdraw, by the owners' votes; empty if they are too few."""
    count, root = max((count, root) for root, count in votes.items())
    return root if 2 * count > owners or votes.total() == owners else b""
