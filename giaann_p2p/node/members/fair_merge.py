"""What others brought from the board, one record of each in turn, each record once.

However much one of them brings, of all others as much is heard as of it: a flood hides nobody.
Honest nodes prove what they take, so whoever brought a single lie is heard no more; a liar costs
those who listen one signature, and not one for each lie.
"""

from collections.abc import Iterator, Sequence


class Hearsay:
    """See the module; to be gone through once."""

    def __init__(self, brought: Sequence[Sequence[bytes]]) -> None:
        self._left = {who: iter(records) for who, records in enumerate(brought)}

    def __repr__(self) -> str:
        return f"<Hearsay of {len(self._left)} nodes>"

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Go through all records, with the number of who brought it."""
        told = set()
        while self._left:
            for who, records in list(self._left.items()):
                record = next(records, None)
                if record is None:
                    del self._left[who]
                elif record not in told:
                    told.add(record)
                    yield who, record

    def silence(self, who: int) -> None:
        """Hear the one no more who has just been heard."""
        self._left.pop(who, None)
