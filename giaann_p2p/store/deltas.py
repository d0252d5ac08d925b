"""Reads kept deltas from a store's log, or from memory if the store has no log.

The caller must hold the store's write lock.
"""

from collections.abc import Iterator

import numpy as np

from giaann_p2p.errors import DamagedError, DiskError
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.disk.replay import damaged, record_at
from giaann_p2p.store.kept import Kept
from giaann_p2p.store.layout import Shards, among
from giaann_p2p.store.opening import Disk
from giaann_p2p.store.state import StoreState
from giaann_p2p.store.unreadable import Unreadable
from giaann_p2p.store.update import Parcel, cut, parcel_of, update_head, update_of


class Deltas:
    """Reads the deltas that one store keeps: from its log if it has a disk, else from memory."""

    def __init__(self, state: StoreState, disk: Disk | None) -> None:
        self.unreadable = Unreadable()
        """Counts the kept records that could not be read when they were requested."""
        self._state, self._disk = state, disk

    def __repr__(self) -> str:
        return f"<Deltas: {self._state.archive!r}, {self.unreadable!r}>"

    def records(self, job: bytes, chunk: int, shards: Ints) -> list[tuple[Shards, memoryview]]:
        """Read a chunk's kept records for some shards.

        Each record comes with the given shards for which it is kept. DamagedError for a record that
        is not what was written; the archive then discards that record.
        """
        found = []
        for kept in self._state.archive.find(job, chunk):
            asked = kept.shards[among(kept.shards, shards)]
            if len(asked):
                try:
                    found.append((asked, self._payload(kept)))
                except DamagedError:
                    self._state.archive.discard(kept)
                    raise
        return found

    def of(self, shard: int, job: bytes, chunk: int) -> Delta:
        """Return the delta that a shard got from a chunk; the delta must be kept."""
        (found,) = self.records(job, chunk, np.array([shard]))
        layout = self._state.columns.layout
        return cut(update_of(found[1], self._state.limits), found[0], layout).delta

    def parcels_of(self, job: bytes, chunk: int, shards: Shards) -> Iterator[Parcel]:
        """Yield a chunk's parcels for some shards, from its kept and its still cached records."""
        for kept in self._state.archive.of_chunk(job, chunk):
            found = self.parcel(kept, shards)
            if found is not None:
                yield found

    def parcel(self, kept: Kept, shards: Shards) -> Parcel | None:
        """Return a record as a parcel, cut to some shards.

        None if the record is kept for none of these shards, or cannot be read.
        """
        shards = shards[among(shards, kept.shards)]
        if not len(shards):
            return None
        try:
            record = self._payload(kept)
        except (DamagedError, DiskError) as error:
            if kept.place:
                self.unreadable.note(kept.place, error)
            return None
        return parcel_of(record, shards, self._state.limits, self._state.columns.layout)

    def _payload(self, kept: Kept) -> memoryview:
        if not self._disk or not kept.place:
            return memoryview(kept.record)
        files = self._disk.files
        record = record_at(files, self._disk.identity, kept.place, kept.size)
        if update_head(record.payload)[:2] != (kept.job, kept.chunk):
            raise damaged(files, *kept.place, "the record is of another chunk")
        return record.payload
