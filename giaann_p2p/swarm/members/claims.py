"""Columnar index of the peer directory: one row per record, one bit per shard.

The index answers queries over all records at once with vectorised operations, which keeps a
directory of thousands of peers fast.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.layout import Shards

Mask = npt.NDArray[np.bool_]
Bits = npt.NDArray[np.uint8]
"""Sets of shards as bits, shape [rows, N / 8]: one bit per shard, the lowest shard first."""

_ARRAYS = "expires", "given_up", "known_for", "live", "holds"
_NONE: Shards = np.empty(0, np.uint16)
_ROWS_AT_ONCE = 64
_GROWTH = 1.25
"""Factor by which room for sets grows; it is low because the sets of a large swarm take most of a
directory's memory."""


class SetColumn:
    """A set of shards for each row; an empty set takes no memory.

    Few peers fetch shards or keep cold copies at any time, and a set of a large swarm takes 8 KiB.
    """

    def __init__(self, rows: int, shards: int) -> None:
        self._shards = shards
        self._bits: Bits = np.zeros((1, (shards + 7) // 8), np.uint8)  # the first is empty
        self._place = np.zeros(rows, np.int64)  # by row: the index of its set in `_bits`
        self._spare = list[int]()  # places that no row uses

    def grow(self, rows: int) -> None:
        """Enlarge the column to `rows` rows; the new ones have empty sets."""
        self._place = np.append(self._place, np.zeros(rows - len(self._place), np.int64))

    def put(self, row: int, shards: Shards) -> None:
        """Set the shards of a row."""
        place = int(self._place[row])
        if not len(shards):
            self._place[row] = 0
            if place:
                self._spare.append(place)
            return
        if not place:
            if not self._spare:
                self._add_places()
            place = self._place[row] = self._spare.pop()
        self._bits[place] = _bits_of(shards.tobytes(), self._shards)

    def of(self, rows: Ints) -> Bits:
        """Return the sets of some rows."""
        return self._bits[self._place[rows]]

    def bytes_of(self, rows: Ints, columns: Ints) -> Bits:
        """Return only some bytes of the sets of some rows, shape [rows, columns]."""
        return self._bits[np.ix_(self._place[rows], columns)]

    def has(self, shard: int) -> Mask:
        """Return for each row whether this shard is in its set."""
        byte: Bits = self._bits[:, shard >> 3]
        return (byte >> (shard & 7) & 1).astype(np.bool_)[self._place]

    def have(self, rows: Ints, shards: Ints) -> Mask:
        """Return for each pair of a row and a shard whether the shard is in the row's set."""
        byte: Bits = self._bits[self._place[rows], shards >> 3]
        return (byte >> (shards & 7) & 1).astype(np.bool_)

    def divided(self, shards: int) -> "SetColumn":
        """Return the column after a division into `shards`: each set has its shards' children."""
        other = SetColumn(0, shards)
        other._bits = _repeated(self._bits, self._shards, shards // self._shards).copy()
        other._place, other._spare = self._place, self._spare
        return other

    def _add_places(self) -> None:
        before = len(self._bits)
        after = max(before + 1, int(_GROWTH * before))
        self._bits.resize((after, self._bits.shape[1]), refcheck=False)  # no view of it exists
        self._spare += range(after - 1, before - 1, -1)


class Claims:
    """The index: arrays with one row for each record of the directory.

    Invariant: a row is free if and only if its `expires` is infinite.
    """

    def __init__(self, rows: int, shards: int) -> None:
        self.shards = shards
        """The number of shards in the swarm."""
        self.expires = np.full(rows, np.inf)
        """Per row: time at which the record expires or expired; infinite if the row is free."""
        self.given_up = np.full(rows, -np.inf)
        """Per row: time at which the peer was last given up, because its record had expired."""
        self.known_for = np.zeros(rows)
        """Per row: seconds for which the peer has sent records."""
        self.live = np.zeros(rows, np.bool_)
        """Per row: whether the peer has neither been given up nor left."""
        self.holds = np.zeros(rows, np.bool_)
        """Per row: whether the record is of a storage peer that has not left."""
        self.ready = SetColumn(rows, shards)
        """Per row: the shards that the peer serves."""
        self.syncing = SetColumn(rows, shards)
        """Per row: the shards that the peer is fetching."""
        self.cold = SetColumn(rows, shards)
        """Per row: the shards that the peer keeps as cold copies."""

    def __len__(self) -> int:
        return len(self.live)

    def grow(self, rows: int) -> None:
        """Enlarge the index to `rows` rows; the new ones are free."""
        wider, before = Claims(rows, self.shards), len(self)
        for name in _ARRAYS:
            getattr(wider, name)[:before] = getattr(self, name)
            setattr(self, name, getattr(wider, name))
        for column in self._sets:
            column.grow(rows)

    def divided(self, shards: int) -> "Claims":
        """Return the index after a division into `shards` shards; each child inherits its claims.

        The result shares its other columns with this index, which must not be used any more.
        """
        other = Claims(0, shards)
        for name in _ARRAYS:
            setattr(other, name, getattr(self, name))
        other.ready, other.syncing, other.cold = (one.divided(shards) for one in self._sets)
        return other

    def free_row(self) -> int:
        """Return the index of a free row; there must be one."""
        return int(np.argmax(self.expires))

    def clear(self, row: int) -> None:
        """Free a row, so that another record can take it."""
        self.expires[row] = np.inf
        self.given_up[row] = -np.inf
        self.live[row] = self.holds[row] = False
        self.claim(row, _NONE, _NONE, _NONE)

    def claim(self, row: int, ready: Shards, syncing: Shards, cold: Shards) -> None:
        """Set which shards the peer of a row serves, fetches, and keeps as cold copies."""
        for column, shards in zip(self._sets, (ready, syncing, cold), strict=True):
            column.put(row, shards)

    def held_by(self, rows: Ints) -> Mask:
        """Return a flag per shard: whether the peer of any of these rows serves or fetches it."""
        held: Bits = np.zeros((self.shards + 7) // 8, np.uint8)
        for some in _blocks(rows):
            held |= np.bitwise_or.reduce(self.ready.of(some) | self.syncing.of(some), axis=0)
        return np.unpackbits(held, count=self.shards, bitorder="little").astype(np.bool_)

    def held_beyond(self, owners: Ints) -> dict[int, Mask]:
        """Return the shards that the peer of each live row serves or fetches without owning them.

        `owners` has shape [N, R]: the rows of each shard's owners; -1 for an owner without a row.
        The result omits rows without such shards.
        """
        rows, found = np.flatnonzero(self.live & self.holds), dict[int, Mask]()
        shard = np.broadcast_to(np.arange(self.shards)[:, None], owners.shape)
        for some in _blocks(rows):
            held = self.ready.of(some) | self.syncing.of(some)
            bits = np.unpackbits(held, axis=1, count=self.shards, bitorder="little")
            place = np.full(len(self) + 1, -1)  # by row: its index in `some`; the last: no row
            place[some] = np.arange(len(some))
            own = place[owners]
            bits[own[own >= 0], shard[own >= 0]] = 0
            for at in np.flatnonzero(bits.any(axis=1)).tolist():
                found[int(some[at])] = bits[at].astype(np.bool_)
        return found

    def unsettled(self, owners: Ints, among: Mask) -> int:
        """Return how many replicas their owners do not serve; `owners` is as in `held_beyond`.

        Owners whose rows are not flagged in `among` do not count: they are silent, so they fetch
        nothing.
        """
        shard = np.arange(len(owners))[:, None]
        settled = (owners >= 0) & self.live[owners] & self.ready.have(owners, shard)
        settled |= (owners >= 0) & ~among[owners]
        return int(np.count_nonzero(~settled))

    def least_known(self) -> int:
        """Return the row to evict first: that of the least useful peer that is not live.

        A peer that holds no shards is least useful, then the one that sent records for the shortest
        time.
        """
        worth = np.where(self.holds, self.known_for, -1.0)
        return int(np.argmin(np.where(self.live, np.inf, worth)))

    def ready_counts(self, among: Mask) -> Ints:
        """Return for each shard how many live peers serve it; `among` flags the rows that count."""
        rows = np.flatnonzero(self.live & self.holds & among)
        counts = np.zeros(self.shards, np.int64)
        for some in _blocks(rows):
            bits = np.unpackbits(self.ready.of(some), axis=1, count=self.shards, bitorder="little")
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
        for some in _blocks(rows):
            held = self.ready.bytes_of(some, columns) | self.syncing.bytes_of(some, columns)
            both = held & wanted[columns]
            at, bit = np.unpackbits(both, axis=1, bitorder="little").nonzero()
            shard = 8 * columns[bit >> 3] + (bit & 7)
            for row, number in zip(some[at].tolist(), shard.tolist(), strict=True):
                found.setdefault(row, []).append(number)
        return found

    @property
    def _sets(self) -> tuple[SetColumn, SetColumn, SetColumn]:
        return self.ready, self.syncing, self.cold


def _blocks(rows: Ints) -> Iterator[Ints]:
    """Yield the rows in blocks, to bound the memory that their sets take meanwhile."""
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        yield rows[start : start + _ROWS_AT_ONCE]


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
