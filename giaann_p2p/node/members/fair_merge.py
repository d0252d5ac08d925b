"""Merges the records that several DHT nodes returned: round robin, each record once.

Taking turns keeps a node that returns a flood of records from hiding those of other nodes. Honest
nodes verify each record that they store, so the reader can skip the rest of a node's records after
the first forged one: a lying node costs one signature check, not one for each forged record.
"""

from collections.abc import Iterator, Sequence


class FairMerge:
    """Iterates, once only, over the records that several DHT nodes returned."""

    def __init__(self, brought: Sequence[Sequence[bytes]]) -> None:
        self._left = {who: iter(records) for who, records in enumerate(brought)}

    def __repr__(self) -> str:
        return f"<FairMerge of {len(self._left)} nodes>"

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield each distinct record, with the number of the DHT node that returned it."""
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
        """Skip the remaining records of DHT node `who`, whose record was yielded last."""
        self._left.pop(who, None)
