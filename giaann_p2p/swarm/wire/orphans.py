"""Orphans: chunks for which nobody stands but who is disowned, and which are not withdrawn yet.

Each owner finds out which of the chunks that it remembers are orphans, once for each of the
founder's lists (see `withdrawing`), and tells whoever asks. The founder asks them all, and makes up
its mind from that (see `agreeing`).
"""

from collections.abc import Mapping

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.messages import BUSY, OrphansAre
from giaann_p2p.swarm.withdrawn import MOST, Chunk, Parts, pages_of

_PAGE = 1 << 13
"""Chunks in an answer: 350 KB at most."""
MOST_TOLD = MOST
"""As many as a list has room for; what is beyond is told when these are withdrawn."""


class Orphans:
    """What an owner tells of them."""

    def __init__(self) -> None:
        self._told: tuple[int, list[Parts]] = -1, []

    def __repr__(self) -> str:
        number, pages = self._told
        count = sum(len(part) for page in pages for part in page)
        return f"<Orphans by list {number}: {count:,}>"

    def found(self, number: int, roots: Mapping[Chunk, bytes]) -> None:
        """Tell these from now on, which are orphans by the list with this number."""
        if number >= self._told[0]:
            self._told = number, pages_of(roots, _PAGE)

    def page(self, number: int, at: int) -> OrphansAre:
        """Return one page of what is found by a list, or by a newer one; UsageError if none is."""
        known, pages = self._told
        if known < number:
            raise UsageError(
                f"{BUSY}: what list {number} comes to is not known here yet; ask again in a moment"
            )
        if at >= len(pages):
            raise UsageError(f"orphans: there are pages 0 to {len(pages) - 1}, not {at}")
        return OrphansAre(known, len(pages), pages[at])
