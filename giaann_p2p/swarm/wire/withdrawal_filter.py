"""A founder's search for chunks to withdraw: by job, by author, or by time.

A flood of poisoned chunks may come from more peers than a list can name. So an edition of the
founder's list can carry a search instead of names. Each owner goes once through the deltas that it
remembers, and reports what it finds, as it reports the chunks of disowned peers (see `orphans`).
The next edition withdraws what most owners reported, and carries no search any more.
"""

from collections.abc import Callable, Collection, Iterable
from itertools import pairwise
from typing import Annotated, NamedTuple

import msgspec

from giaann_p2p.store.applied import JOB_BYTES, Applied
from giaann_p2p.swarm.wire.identity import Peer, PeerField

MOST_SOUGHT = 1 << 11
"""Maximum number of jobs, and of authors, in one search."""
MOST_BYTES = MOST_SOUGHT * (34 + 2 + JOB_BYTES) + 64
"""Maximum length of an encoded search, in bytes."""
_Job = Annotated[bytes, msgspec.Meta(min_length=JOB_BYTES, max_length=JOB_BYTES)]


class WithdrawalFilter(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A founder's search for chunks. A chunk is found if it meets any of the three criteria.

    An empty search finds nothing.
    """

    jobs: Annotated[tuple[_Job, ...], msgspec.Meta(max_length=MOST_SOUGHT)] = ()
    """Jobs, ascending; every chunk of these jobs is found."""
    authors: Annotated[tuple[PeerField, ...], msgspec.Meta(max_length=MOST_SOUGHT)] = ()
    """Authors, ascending; a chunk is found if all its authors are among them, or disowned."""
    since: Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)] = 0
    """Time in seconds since 1970; a chunk is found if it arrived later and all its authors lack
    standing. 0 switches this criterion off."""

    @classmethod
    def of(cls, jobs: Iterable[bytes], authors: Iterable[Peer], since: int) -> "WithdrawalFilter":
        """Return a search with these criteria, in canonical form."""
        return cls(tuple(sorted({*jobs})), tuple(sorted({*authors})), since)

    def __bool__(self) -> bool:
        return bool(self.jobs or self.authors or self.since)

    def fault(self) -> str:
        """Return why the search is not in canonical form; empty if it is."""
        for some in (self.jobs, self.authors):
            if any(one >= other for one, other in pairwise(some)):
                return "a search that is not in ascending order"
        return ""


NOTHING = WithdrawalFilter()


class Search(NamedTuple):
    """A founder's search at one owner, with what the owner knew when the search began."""

    sought: WithdrawalFilter = NOTHING
    came: Applied = Applied()
    """Chunks that arrived at this owner since `sought.since`."""
    stands: Callable[[Peer], bool] = lambda peer: True
    disowned: Callable[[Peer], bool] = lambda peer: False

    def finds(self, job: bytes, chunk: int, authors: Collection[Peer]) -> bool:
        """Return whether the search finds a chunk with these authors, so the owner reports it."""
        if job in self.sought.jobs:
            return True
        if not authors:
            return False
        named = self.sought.authors
        if all(author in named or self.disowned(author) for author in authors):
            return True
        return (job, chunk) in self.came and not any(map(self.stands, authors))
