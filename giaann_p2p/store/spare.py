"""A bounded cache of released deltas, which every known owner has; the oldest is evicted first.

Without its delta, a chunk can no longer be subtracted from a shard. A released delta may still be
needed: to withdraw a chunk that turns out to be a lie, or by a replica that this peer does not know
and that cannot get it elsewhere. So owners with a disk keep released deltas while there is room.

There may be very many records, but they are for few distinct sets of shards. Records for the same
set form a group, so that dropping shards costs one step per group.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from pyroaring import BitMap

from giaann_p2p.store.disk.record import Place
from giaann_p2p.store.kept import KEPT_BYTES, Kept, followed
from giaann_p2p.store.layout import Shards, among, divided

_LEAST = 8 * KEPT_BYTES
"""The least number of bytes that a record counts as. Without it, the index of many tiny records
would fill the memory."""


@dataclass(eq=False, slots=True)
class SpareGroup:
    """The records for one set of shards; they are numbered in order of arrival."""

    shards: Shards
    numbers: set[int] = field(default_factory=set)
    chunks: dict[bytes, BitMap] = field(default_factory=dict)
    """The chunks of these records, by job. Invariant: no shard has two records of one chunk."""


class Spare:
    """A cache of released records, of at most `most` bytes in total."""

    def __init__(self, most: int = 0) -> None:
        self._most, self._size = most, 0
        self._next = 0
        self._kept: dict[int, Kept] = {}  # in order of arrival
        self._group_of: dict[int, SpareGroup] = {}
        self._groups: dict[bytes, SpareGroup] = {}  # by shards
        self._of_chunk: dict[tuple[bytes, int], set[int]] = {}
        self._files: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Kept]:
        return iter([self._as_it_is(number) for number in self._kept])

    def __repr__(self) -> str:
        return f"<Spare: {len(self._kept):,} deltas, {self._size:,} bytes>"

    @property
    def nbytes(self) -> int:
        """The approximate memory that the cache takes, in bytes."""
        return KEPT_BYTES * len(self._kept)

    @property
    def files(self) -> set[int]:
        """The numbers of the log files that contain the cached records."""
        return {number for number, count in self._files.items() if count}

    def find(self, job: bytes, chunk: int) -> list[Kept]:
        """Return the cached records of a chunk."""
        return [self._as_it_is(number) for number in sorted(self._of_chunk.get((job, chunk), ()))]

    @property
    def groups(self) -> Iterable[SpareGroup]:
        """The cached records, grouped by the set of shards that they are for."""
        return self._groups.values()

    def add(self, one: Kept) -> None:
        """Cache a record of the log; the oldest records are evicted to make room for it.

        It replaces older records of the chunk for the same shards. A record that is not in a log
        is not cached.
        """
        if one.place is None or not self._most:
            return
        self.forget(one.job, one.chunk, one.shards)
        self._next += 1
        self._kept[self._next] = one
        self._of_chunk.setdefault((one.job, one.chunk), set()).add(self._next)
        self._join(self._next, one)
        self._count(one, 1)
        while self._size > self._most:
            self._forget(next(iter(self._kept)))

    def forget(self, job: bytes, chunk: int, shards: Shards) -> None:
        """Stop caching a chunk's records for some shards.

        A store that is opened may index two records for one shard: if a shard was dropped and held
        again, the log file that recorded the drop may be gone.
        """
        for number in list(self._of_chunk.get((job, chunk), ())):
            one = self._as_it_is(number)
            gone = among(one.shards, shards)
            if gone.all():
                self._forget(number)
            elif gone.any():
                self._ungroup(number, one)
                self._kept[number] = left = replace(one, shards=one.shards[~gone])
                self._join(number, left)

    def drop(self, shards: Shards) -> None:
        """Forget records for dropped shards, which may be held again with other content."""
        for group in list(self._groups.values()):
            gone = among(group.shards, shards)
            if gone.any():
                self._leave(group, group.shards[~gone])

    def double(self, before: int, after: int) -> None:
        """Divide the shards of all records; `before` and `after` are their total numbers."""
        groups = list(self._groups.values())
        for group in groups:
            group.shards = divided(group.shards, before, after)
        self._groups = {group.shards.tobytes(): group for group in groups}

    def move(self, moves: Mapping[Place, Place]) -> None:
        """Update the places of records that the log has rewritten into another file."""
        for number, one in self._kept.items():
            if one.place and one.place in moves:
                self._count(one, -1)
                self._kept[number] = moved = replace(one, place=followed(one.place, moves))
                self._count(moved, 1)

    def _as_it_is(self, number: int) -> Kept:
        one, shards = self._kept[number], self._group_of[number].shards
        if one.shards is not shards:  # some were dropped or divided since the last call
            one = self._kept[number] = replace(one, shards=shards)
        return one

    def _leave(self, group: SpareGroup, left: Shards) -> None:
        """Narrow a group to the shards `left`; merge it with a group for the same shards."""
        del self._groups[group.shards.tobytes()]
        if not len(left):
            for number in list(group.numbers):
                self._forget(number)
            return
        group.shards = left
        if (other := self._groups.get(left.tobytes())) is not None:
            if len(other.numbers) > len(group.numbers):
                group, other = other, group
            group.numbers |= other.numbers
            for job, chunks in other.chunks.items():
                group.chunks[job] = group.chunks.get(job, BitMap()) | chunks
            self._group_of.update(dict.fromkeys(other.numbers, group))
        self._groups[left.tobytes()] = group

    def _join(self, number: int, one: Kept) -> None:
        group = self._groups.setdefault(one.shards.tobytes(), SpareGroup(one.shards))
        group.numbers.add(number)
        group.chunks.setdefault(one.job, BitMap()).add(one.chunk)
        self._group_of[number] = group

    def _ungroup(self, number: int, one: Kept) -> None:
        group = self._group_of.pop(number)
        group.numbers.discard(number)
        if not group.numbers and self._groups.get(group.shards.tobytes()) is group:
            del self._groups[group.shards.tobytes()]
        group.chunks[one.job].discard(one.chunk)
        if not group.chunks[one.job]:
            del group.chunks[one.job]

    def _forget(self, number: int) -> None:
        one = self._kept.pop(number)
        self._ungroup(number, one)
        left = self._of_chunk[one.job, one.chunk]
        left.discard(number)
        if not left:
            del self._of_chunk[one.job, one.chunk]
        self._count(one, -1)

    def _count(self, one: Kept, times: int) -> None:
        self._size += times * max(one.size, _LEAST)
        if one.place:
            self._files[one.place.file] += times
