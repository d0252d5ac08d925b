"""What is asked of all records of a directory at once: a row each, a bit for each shard."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.layout import Shards

Mask = npt.NDArray[np.bool_]
Bits = npt.NDArray[np.uint8]
"""[rows, N / 8] one bit a shard, the lowest first."""

_ROWS_AT_ONCE = 64


class Claims:
    """Rows that are free until `expires` is set."""

    def __init__(self, rows: int, shards: int) -> None:
        self._shards = shards
        self.expires = np.full(rows, np.inf)
        """When the record ends, or ended; infinite where the row is free."""
        self.known_for = np.zeros(rows)
        """For how long the peer has sent records."""
        self.live = np.zeros(rows, np.bool_)
        """The record has not ended, and the peer has not left."""
        self.holds = np.zeros(rows, np.bool_)
        """The record is of a storage peer that has not left."""
        self.ready = np.zeros((rows, (shards + 7) // 8), np.uint8)
        self.syncing = np.zeros_like(self.ready)

    def __len__(self) -> int:
        return len(self.live)

    def grow(self, rows: int) -> None:
        """Have more rows; the further ones are free."""
        wider = Claims(rows, self._shards)
        for name, array in vars(self).items():
            if isinstance(array, np.ndarray):
                getattr(wider, name)[: len(self)] = array
        vars(self).update(vars(wider))

    def free_row(self) -> int:
        """Return a row that is free."""
        return int(np.argmax(self.expires))

    def clear(self, row: int) -> None:
        """Make a row free."""
        self.expires[row] = np.inf
        self.live[row] = self.holds[row] = False
        self.ready[row] = self.syncing[row] = 0

    def claim(self, row: int, ready: Shards, syncing: Shards) -> None:
        """Set the shards of a row."""
        for bits, shards in ((self.ready, ready), (self.syncing, syncing)):
            bits[row] = _bits_of(shards.tobytes(), self._shards)

    def least_known(self) -> int:
        """Return the row to be forgotten first, of those that are not live."""
        worth = np.where(self.holds, self.known_for, -1.0)
        return int(np.argmin(np.where(self.live, np.inf, worth)))

    def ready_counts(self, among: Mask) -> Ints:
        """Return how many live peers, of some, serve each shard."""
        rows = np.flatnonzero(self.live & self.holds & among)
        counts = np.zeros(self._shards, np.int64)
        for start in range(0, len(rows), _ROWS_AT_ONCE):  # so that the bits take little memory
            some = self.ready[rows[start : start + _ROWS_AT_ONCE]]
            bits = np.unpackbits(some, axis=1, count=self._shards, bitorder="little")
            counts += bits.sum(axis=0, dtype=np.int64)
        return counts

    def held_of(self, shards: Shards) -> dict[int, list[int]]:
        """Return by live row which of some shards it names, ascending, where it names any."""
        rows = np.flatnonzero(self.live & self.holds)
        wanted = _bits_of(shards.tobytes(), self._shards)
        found: dict[int, list[int]] = {}
        for start in range(0, len(rows), _ROWS_AT_ONCE):  # so that the bits take little memory
            some = rows[start : start + _ROWS_AT_ONCE]
            both = (self.ready[some] | self.syncing[some]) & wanted
            bits = np.unpackbits(both, axis=1, count=self._shards, bitorder="little")
            at, shard = bits.nonzero()
            for row, number in zip(some[at].tolist(), shard.tolist(), strict=True):
                found.setdefault(row, []).append(number)
        return found


@lru_cache(maxsize=64)  # one process may be several peers, who all hear the same
def _bits_of(shards: bytes, count: int) -> Bits:
    mask = np.zeros(count, np.bool_)
    mask[np.frombuffer(shards, np.uint16)] = True
    return np.packbits(mask, bitorder="little")


def has(bits: Bits, shard: int) -> Mask:
    """Tell which rows name a shard."""
    return (bits[:, shard >> 3] & (1 << (shard & 7))).astype(np.bool_)


def have(bits: Bits, rows: Ints, shards: Ints) -> Mask:
    """Tell for many rows whether each names its shard."""
    some: Bits = bits[rows, shards >> 3]
    return (some >> (shards & 7) & 1).astype(np.bool_)
