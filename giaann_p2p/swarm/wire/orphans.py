"""Orphans: chunks that only disowned peers vouch for, and that are not withdrawn yet.

For each edition of the founder's list, an owner finds the orphans among the chunks that it
remembers (see `retract`), and reports them to any client that asks. Chunks that the founder
searches for (see `withdrawal_filter`) are reported in the same way. The founder asks all owners,
and decides by their reports which chunks to withdraw (see `orphan_quorum`).
"""

from collections.abc import Mapping

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.wire.messages import BUSY, OrphansAre
from giaann_p2p.swarm.wire.withdrawn import Chunk, Parts, pages_of

_PAGE = 1 << 13
"""Maximum number of chunks in one answer, which then has 350 KB at most."""


class Orphans:
    """The orphaned chunks that an owner reports, in pages."""

    def __init__(self) -> None:
        self._told: tuple[int, list[Parts]] = -1, []

    def __repr__(self) -> str:
        number, pages = self._told
        count = sum(len(part) for page in pages for part in page)
        return f"<Orphans by list {number}: {count:,}>"

    def found(self, number: int, roots: Mapping[Chunk, bytes]) -> None:
        """Report these orphans from now on, unless this peer has already searched by a newer list.

        `number` is the number of the founder's list by which they were found.
        """
        if number >= self._told[0]:
            self._told = number, pages_of(roots, _PAGE)

    def page(self, number: int, at: int) -> OrphansAre:
        """Return page `at` of the orphans by the founder's list `number`, or by a newer one.

        UsageError if the search by such a list is not finished, or if there is no such page.
        """
        known, pages = self._told
        if known < number:
            raise UsageError(
                f"{BUSY}: this peer has not finished its search by list {number}; ask again soon"
            )
        if at >= len(pages):
            raise UsageError(f"orphans: there is no page {at}; the last is {len(pages) - 1}")
        return OrphansAre(known, len(pages), pages[at])
