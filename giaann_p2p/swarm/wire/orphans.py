"""Orphans: chunks that only disowned peers vouch for, and that are not withdrawn yet.

For each edition of the founder's list, an owner finds the orphans among the chunks that it
remembers (see `retract`), and reports them to any client that asks. The founder asks all owners,
and decides by their reports which chunks to withdraw (see `orphan_quorum`).
"""

from collections.abc import Mapping

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.wire.messages import BUSY, OrphansAre
from giaann_p2p.swarm.wire.withdrawn import Chunk, Parts, pages_of

_PAGE = 1 << 13
"""Number of chunks in one answer: 350 KB at most."""


class Orphans:
    """The orphans that an owner reports, in pages."""

    def __init__(self) -> None:
        self._told: tuple[int, list[Parts]] = -1, []

    def __repr__(self) -> str:
        number, pages = self._told
        count = sum(len(part) for page in pages for part in page)
        return f"<Orphans by list {number}: {count:,}>"

    def found(self, number: int, roots: Mapping[Chunk, bytes]) -> None:
        """Report these orphans from now on; they were found by the list with this number."""
        if number >= self._told[0]:
            self._told = number, pages_of(roots, _PAGE)

    def page(self, number: int, at: int) -> OrphansAre:
        """Return a page of the orphans by this list or a newer one; UsageError if none is known."""
        known, pages = self._told
        if known < number:
            raise UsageError(
                f"{BUSY}: what list {number} comes to is not known here yet; ask again in a moment"
            )
        if at >= len(pages):
            raise UsageError(f"orphans: there are pages 0 to {len(pages) - 1}, not {at}")
        return OrphansAre(known, len(pages), pages[at])
