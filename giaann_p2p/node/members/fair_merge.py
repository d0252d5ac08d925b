"""Merges the records that several DHT nodes returned: round robin, each record once.

So a node that returns a flood of records cannot hide the records of other nodes. Honest nodes
verify each record that they store, so a node that returned a single forged record is not read any
further: a liar costs the reader one signature check, not one for each lie.
"""

from collections.abc import Iterator, Sequence


class FairMerge:
    """An iterable over the records of several nodes; it can be iterated once."""

    def __init__(self, brought: Sequence[Sequence[bytes]]) -> None:
        self._left = {who: iter(records) for who, records in enumerate(brought)}

    def __repr__(self) -> str:
        return f"<FairMerge of {len(self._left)} nodes>"

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield each record with the number of the node that returned it."""
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
        """Skip the remaining records of a node, the one whose record was yielded last."""
        self._left.pop(who, None)
