"""Counts and logs the archived records that cannot be read; readers skip them."""

import logging

from giaann_p2p.errors import StoreError
from giaann_p2p.store.disk.record import Place

_LOG = logging.getLogger("giaann.store")


class Unreadable:
    """The unreadable archived records of one store.

    Each record counts once. Only the first one of each log file is logged.
    """

    def __init__(self) -> None:
        self._places, self._files = set[Place](), set[int]()

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"<Unreadable: {len(self):,} records>"

    def note(self, place: Place, error: StoreError) -> None:
        """Count an unreadable record, and log the error if it is the first of its log file."""
        self._places.add(place)
        if place.file not in self._files:
            self._files.add(place.file)
            _LOG.warning(
                "the kept delta of a chunk cannot be read, so if the chunk is withdrawn, the delta"
                " must come from another owner; this file's further cases are not logged: %s",
                error,
            )
