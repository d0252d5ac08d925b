"""A founder's search for chunks to withdraw: by job, by author, or by time.

A flood of poison may come from more peers than a list can name. So an edition of the founder's list
can carry a search instead of names. Owners search the deltas that they remember once, and report
what they find, like the chunks of disowned peers (see `orphans`). The next edition withdraws what
most of them reported, and carries no search any more.
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
_Job = Annotated[bytes, msgspec.Meta(min_length=JOB_BYTES, max_length=JOB_BYTES)]


class WithdrawalFilter(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A search; it finds the union of its three criteria. An empty one finds nothing."""

    jobs: Annotated[tuple[_Job, ...], msgspec.Meta(max_length=MOST_SOUGHT)] = ()
    """Jobs, ascending: every chunk of them is sought."""
    authors: Annotated[tuple[PeerField, ...], msgspec.Meta(max_length=MOST_SOUGHT)] = ()
    """Authors, ascending: chunks that only these authors taught are sought."""
    since: Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)] = 0
    """Time in seconds since 1970: chunks that came since then, all of whose authors lack standing,
    are sought; 0: none."""

    @classmethod
    def of(cls, jobs: Iterable[bytes], authors: Iterable[Peer], since: int) -> "WithdrawalFilter":
        """Return a search in canonical form."""
        return cls(tuple(sorted({*jobs})), tuple(sorted({*authors})), since)

    def __bool__(self) -> bool:
        return bool(self.jobs or self.authors or self.since)

    def fault(self) -> str:
        """Return why this is not in canonical form; empty if it is."""
        for some in (self.jobs, self.authors):
            if any(one >= other for one, other in pairwise(some)):
                return "a search out of its order"
        return ""


NOTHING = WithdrawalFilter()


class Search(NamedTuple):
    """A search at one owner, with what the owner knew when the search began."""

    sought: WithdrawalFilter = NOTHING
    came: Applied = Applied()
    """Chunks that arrived at this owner since `sought.since`."""
    stands: Callable[[Peer], bool] = lambda peer: True
    disowned: Callable[[Peer], bool] = lambda peer: False

    def finds(self, job: bytes, chunk: int, authors: Collection[Peer]) -> bool:
        """Return whether to report a chunk with these authors."""
        if job in self.sought.jobs:
            return True
        if not authors:
            return False
        named = self.sought.authors
        if all(author in named or self.disowned(author) for author in authors):
            return True
        return (job, chunk) in self.came and not any(map(self.stands, authors))
