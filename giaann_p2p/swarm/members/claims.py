"""Columnar index of the peer directory: one row per record, one bit per shard.

The index answers queries over all records at once with vectorised operations, which keeps a
directory of thousands of peers fast.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.layout import Shards

Mask = npt.NDArray[np.bool_]
Bits = npt.NDArray[np.uint8]
"""Sets of shards as bits, shape [rows, N / 8]: one bit per shard, the lowest shard first."""

_ROWS_AT_ONCE = 64


class Claims:
    """The index: arrays with one row for each record of the directory.

    Invariant: a row is free if and only if its `expires` is infinite.
    """

    def __init__(self, rows: int, shards: int) -> None:
        self.shards = shards
        """The number of shards in the swarm."""
        self.expires = np.full(rows, np.inf)
        """Per row: time at which the record expires or expired; infinite if the row is free."""
        self.known_for = np.zeros(rows)
        """Per row: seconds for which the peer has sent records."""
        self.live = np.zeros(rows, np.bool_)
        """Per row: whether the record has not expired and the peer has not left."""
        self.holds = np.zeros(rows, np.bool_)
        """Per row: whether the record is of a storage peer that has not left."""
        self.ready = np.zeros((rows, (shards + 7) // 8), np.uint8)
        """Per row, as `Bits`: the shards that the peer serves."""
        self.syncing = np.zeros_like(self.ready)
        """Per row, as `Bits`: the shards that the peer is fetching."""
        self.cold = np.zeros_like(self.ready)
        """Per row, as `Bits`: the shards that the peer keeps as cold copies."""

    def __len__(self) -> int:
        return len(self.live)

    def grow(self, rows: int) -> None:
        """Enlarge the index to `rows` rows; the new ones are free."""
        wider = Claims(rows, self.shards)
        for name, array in vars(self).items():
            if isinstance(array, np.ndarray):
                getattr(wider, name)[: len(self)] = array
        vars(self).update(vars(wider))

    def divided(self, shards: int) -> "Claims":
        """Return the index after a division into `shards` shards; each child inherits its claims.

        The result shares its other columns with this index, which must not be used any more.
        """
        other, times = Claims(len(self), shards), shards // self.shards
        for name in ("expires", "known_for", "live", "holds"):
            setattr(other, name, getattr(self, name))
        for name in ("ready", "syncing", "cold"):
            setattr(other, name, _repeated(getattr(self, name), self.shards, times))
        return other

    def free_row(self) -> int:
        """Return the index of a free row; there must be one."""
        return int(np.argmax(self.expires))

    def clear(self, row: int) -> None:
        """Free a row, so that another record can take it."""
        self.expires[row] = np.inf
        self.live[row] = self.holds[row] = False
        self.ready[row] = self.syncing[row] = self.cold[row] = 0

    def claim(self, row: int, ready: Shards, syncing: Shards, cold: Shards) -> None:
        """Set which shards the peer of a row serves, fetches, and keeps as cold copies."""
        for bits, shards in ((self.ready, ready), (self.syncing, syncing), (self.cold, cold)):
            bits[row] = _bits_of(shards.tobytes(), self.shards)

    def held_by(self, rows: Ints) -> Mask:
        """Return a flag per shard: whether the peer of any of these rows serves or fetches it."""
        some = self.ready[rows] | self.syncing[rows]
        both = np.bitwise_or.reduce(some, axis=0, initial=np.uint8(0))
        return np.unpackbits(both, count=self.shards, bitorder="little").astype(np.bool_)

    def held_beyond(self, owners: Ints) -> dict[int, Mask]:
        """Return the shards that the peer of each live row serves or fetches without owning them.

        `owners` has shape [N, R]: the rows of each shard's owners; -1 for an owner without a row.
        The result omits rows without such shards.
        """
        rows, found = np.flatnonzero(self.live & self.holds), dict[int, Mask]()
        shard = np.broadcast_to(np.arange(self.shards)[:, None], owners.shape)
        for start in range(0, len(rows), _ROWS_AT_ONCE):  # in blocks, to bound the memory
            some = rows[start : start + _ROWS_AT_ONCE]
            held = self.ready[some] | self.syncing[some]
            bits = np.unpackbits(held, axis=1, count=self.shards, bitorder="little")
            place = np.full(len(self) + 1, -1)  # by row: its index in `some`; the last: no row
            place[some] = np.arange(len(some))
            own = place[owners]
            bits[own[own >= 0], shard[own >= 0]] = 0
            for at in np.flatnonzero(bits.any(axis=1)).tolist():
                found[int(some[at])] = bits[at].astype(np.bool_)
        return found

    def least_known(self) -> int:
        """Return the row to evict first: not live, and of the peer that is missed the least.

        A peer that holds no shards is missed least, then the one that sent records for the shortest
        time.
        """
        worth = np.where(self.holds, self.known_for, -1.0)
        return int(np.argmin(np.where(self.live, np.inf, worth)))

    def ready_counts(self, among: Mask) -> Ints:
        """Return for each shard how many live peers serve it; `among` flags the rows that count."""
        rows = np.flatnonzero(self.live & self.holds & among)
        counts = np.zeros(self.shards, np.int64)
        for start in range(0, len(rows), _ROWS_AT_ONCE):  # in blocks, to bound the memory
            some = self.ready[rows[start : start + _ROWS_AT_ONCE]]
            bits = np.unpackbits(some, axis=1, count=self.shards, bitorder="little")
            counts += bits.sum(axis=0, dtype=np.int64)
        return counts

    def held_of(self, shards: Shards) -> dict[int, list[int]]:
        """Return which of these shards the peer of each live row serves or fetches, ascending.

        The result omits rows without any of these shards.
        """
        rows = np.flatnonzero(self.live & self.holds)
        wanted = _bits_of(shards.tobytes(), self.shards)
        columns = np.flatnonzero(wanted)  # a peer of a large swarm holds few of all shards
        found: dict[int, list[int]] = {}
        for start in range(0, len(rows), _ROWS_AT_ONCE):  # in blocks, to bound the memory
            some = rows[start : start + _ROWS_AT_ONCE]
            place = np.ix_(some, columns)
            both = (self.ready[place] | self.syncing[place]) & wanted[columns]
            at, bit = np.unpackbits(both, axis=1, bitorder="little").nonzero()
            shard = 8 * columns[bit >> 3] + (bit & 7)
            for row, number in zip(some[at].tolist(), shard.tolist(), strict=True):
                found.setdefault(row, []).append(number)
        return found


def _repeated(bits: Bits, shards: int, times: int) -> Bits:
    """Replace each shard in some sets by its children: shard s is divided into s, s + N, ..."""
    if shards % 8 == 0:
        return np.tile(bits, (1, times))
    flags = np.unpackbits(bits, axis=1, count=shards, bitorder="little")  # fewer than 8 shards
    return np.packbits(np.tile(flags, (1, times)), axis=1, bitorder="little")


@lru_cache(maxsize=64)  # one process may run several peers, which all receive the same records
def _bits_of(shards: bytes, count: int) -> Bits:
    mask = np.zeros(count, np.bool_)
    mask[np.frombuffer(shards, np.uint16)] = True
    return np.packbits(mask, bitorder="little")


def has(bits: Bits, shard: int) -> Mask:
    """Return for each row whether its bit for this shard is set."""
    return (bits[:, shard >> 3] & (1 << (shard & 7))).astype(np.bool_)


def have(bits: Bits, rows: Ints, shards: Ints) -> Mask:
    """Return for each pair of a row and a shard whether the row's bit for the shard is set."""
    some: Bits = bits[rows, shards >> 3]
    return (some >> (shards & 7) & 1).astype(np.bool_)
