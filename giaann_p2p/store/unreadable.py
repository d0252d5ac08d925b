"""Counts the kept records that cannot be read, and logs them: they are skipped, but reported."""

import logging

from giaann_p2p.errors import StoreError
from giaann_p2p.store.disk.record import Place

_LOG = logging.getLogger("giaann.store")


class Unreadable:
    """The unreadable records of one store. Each counts once; the first of each file is logged."""

    def __init__(self) -> None:
        self._places, self._files = set[Place](), set[int]()

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"<Unreadable: {len(self):,} records>"

    def note(self, place: Place, error: StoreError) -> None:
        """Count a record, and log the error if it is the first of its file."""
        self._places.add(place)
        if place.file not in self._files:
            self._files.add(place.file)
            _LOG.warning(
                "what was kept of a chunk cannot be read, so it cannot be withdrawn by itself; more"
                " of this file is not told, but counted: %s",
                error,
            )
