"""Records that are kept and cannot be read: what lacks them is done without, but not in silence."""

import logging

from giaann_p2p.errors import StoreError
from giaann_p2p.store.disk.record import Place

_LOG = logging.getLogger("giaann.store")


class Unreadable:
    """Those of one store. Each counts once, and the first of each log file is told."""

    def __init__(self) -> None:
        self._places, self._files = set[Place](), set[int]()

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"<Unreadable: {len(self):,} records>"

    def note(self, place: Place, error: StoreError) -> None:
        """Take note of a record, and of why it cannot be read."""
        self._places.add(place)
        if place.file not in self._files:
            self._files.add(place.file)
            _LOG.warning(
                "what was kept of a chunk cannot be read, so it cannot be withdrawn by itself; more"
                " of this file is not told, but counted: %s",
                error,
            )
