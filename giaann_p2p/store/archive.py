"""Which chunks' deltas are at hand, and where: owners give them to each other until all have them.

A store on a disk has each delta in its log already, in the record that brought it, so the archive
is an index: of each record where it lies, and for which shards it is kept. A store in memory keeps
the record itself. No shard of a chunk is kept twice; of two records the later one counts.

The index is not written down, only what was released. Opening a store reads the heads of old
records and makes it anew; what was released may be back if records were moved or damaged, which
costs room and nothing else. What it cannot find, behind damage, it does without: the delta is in
the shard, and other owners have it, too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from pyroaring import BitMap

from giaann_p2p.store.applied import Applied
from giaann_p2p.store.disk.record import Place
from giaann_p2p.store.kept import KEPT_BYTES, Kept, followed
from giaann_p2p.store.layout import Shards, among
from giaann_p2p.store.ledger import Ledger
from giaann_p2p.store.spare import Spare


@dataclass(frozen=True, eq=False, slots=True)
class _Group:
    """The chunks that are kept for the same shards."""

    shards: Shards
    chunks: dict[bytes, BitMap] = field(default_factory=dict)


class Archive:
    """The deltas that are kept."""

    def __init__(self) -> None:
        self.spare = Spare()
        """What was released and is not forgotten yet."""
        self._kept: dict[bytes, dict[int, list[Kept]]] = {}  # by job and chunk
        self._groups: dict[bytes, _Group] = {}  # by shards
        self._files: Counter[int] = Counter()  # how many records of each are kept
        self._count = self._size = self._in_memory = 0

    def __repr__(self) -> str:
        return f"<Archive: {self._count:,} deltas, {self._size:,} bytes>"

    @property
    def nbytes(self) -> int:
        """How much memory all takes, about."""
        return KEPT_BYTES * self._count + self._in_memory + self.spare.nbytes

    @property
    def size(self) -> int:
        """How many bytes the records take that are kept, wherever they lie."""
        return self._size

    @property
    def files(self) -> set[int]:
        """The log files to keep.

        Where a file ends is told by the one behind it, so that one stays, too.
        """
        used = {number for number, count in self._files.items() if count} | self.spare.files
        return {at for number in used for at in (number, number + 1)}

    def of_chunk(self, job: bytes, chunk: int) -> list[Kept]:
        """Return what is kept of a chunk, and what of it was released and is not forgotten yet."""
        return [*self.find(job, chunk), *self.spare.find(job, chunk)]

    @property
    def everything(self) -> list[Kept]:
        """Return all that is kept, also what was released."""
        kept = [one for jobs in self._kept.values() for some in jobs.values() for one in some]
        return [*kept, *self.spare]

    def chunks(self, job: bytes) -> BitMap:
        """Return the chunks of a job of which something is kept."""
        return BitMap(self._kept.get(job, ()))

    def of(self, shard: int) -> Applied:
        """Return the chunks that are kept for a shard."""
        found: dict[bytes, BitMap] = {}
        for group in self._groups.values():
            if shard in group.shards:
                for job, chunks in group.chunks.items():
                    found[job] = found.get(job, BitMap()) | chunks
        return Applied(found)

    def find(self, job: bytes, chunk: int) -> list[Kept]:
        """Return what is kept of a chunk."""
        return list(self._kept.get(job, {}).get(chunk, ()))

    def add(self, one: Kept) -> None:
        """Keep a delta, in the place of what was kept of its chunk for these shards."""
        self.forget(one.job, one.chunk, one.shards)
        if len(one.shards):
            self._put(one, one.shards)

    def forget(self, job: bytes, chunk: int, shards: Shards) -> None:
        """Keep a chunk's delta for some shards no longer."""
        for one in self.find(job, chunk):
            gone = among(one.shards, shards)
            if gone.any():
                self._leave(one, one.shards[~gone])

    def kept(self, job: bytes, chunks: BitMap, shards: Shards) -> BitMap:
        """Return those of some chunks that are kept for any of some shards."""
        groups = [of for of in self._groups.values() if among(of.shards, shards).any()]
        return chunks & BitMap.union(*(of.chunks.get(job, BitMap()) for of in groups), BitMap())

    def release(self, job: bytes, chunks: BitMap, shards: Shards) -> None:
        """Keep the deltas that some shards got of some chunks no longer."""
        for group in list(self._groups.values()):
            gone = among(group.shards, shards)
            if gone.any():
                part = {job: group.chunks.get(job, BitMap()) & chunks}
                for one in self._leave_group(group, part, group.shards[~gone]):
                    self.spare.add(replace(one, shards=group.shards[gone]))

    def drop(self, shards: Iterable[int]) -> None:
        """Keep no longer what is kept for some shards alone."""
        gone = np.unique(np.fromiter(shards, np.uint16))
        self.spare.drop(gone)
        for group in list(self._groups.values()):
            dropped = among(group.shards, gone)
            if dropped.any():
                self._leave_group(group, group.chunks, group.shards[~dropped])

    def keep_only(self, ledger: Ledger) -> None:
        """Keep only what shards that are held have taken in."""
        known = {shard for group in self._groups.values() for shard in group.shards.tolist()}
        self.drop(shard for shard in known if shard not in ledger)
        for shard in ledger.shards:
            strange = self.of(int(shard)) - ledger.of(int(shard))
            for job, chunk in _pairs({job: strange.of(job) for job in strange}):
                self.forget(job, chunk, shard[np.newaxis])

    def move(self, moves: Mapping[Place, Place]) -> None:
        """Note where records lie that were written anew."""
        if not moves:
            return
        self.spare.move(moves)
        for one in [one for jobs in self._kept.values() for kept in jobs.values() for one in kept]:
            if one.place and one.place in moves:
                self.discard(one)
                self._put(replace(one, place=followed(one.place, moves)), one.shards)

    def discard(self, one: Kept) -> None:
        """Keep a record no longer."""
        left = [other for other in self.find(one.job, one.chunk) if other is not one]
        if left:
            self._kept[one.job][one.chunk] = left
        else:
            del self._kept[one.job][one.chunk]
            if not self._kept[one.job]:
                del self._kept[one.job]
        self._ungroup(one)
        self._count_in(one, -1)

    def _leave_group(
        self, group: _Group, chunks: Mapping[bytes, BitMap], left: Shards
    ) -> list[Kept]:
        """Keep some records of a group for fewer shards; return them as they were."""
        found = [
            one
            for job, chunk in _pairs(chunks)
            for one in self.find(job, chunk)
            if one.shards is group.shards
        ]
        for one in found:
            self._leave(one, left)
        return found

    def _leave(self, one: Kept, shards: Shards) -> None:
        """Keep a record for fewer shards."""
        self.discard(one)
        if len(shards):
            self._put(one, shards)

    def _put(self, one: Kept, shards: Shards) -> None:
        """Keep a record for these shards."""
        group = self._groups.setdefault(shards.tobytes(), _Group(shards))
        group.chunks.setdefault(one.job, BitMap()).add(one.chunk)
        # One array of shards for all; `dataclasses.replace` takes ten times as long.
        one = Kept(one.job, one.chunk, group.shards, one.size, one.place, one.record)
        self._kept.setdefault(one.job, {}).setdefault(one.chunk, []).append(one)
        self._count_in(one, 1)

    def _ungroup(self, one: Kept) -> None:
        name = one.shards.tobytes()
        chunks = self._groups[name].chunks
        chunks[one.job].discard(one.chunk)
        if not chunks[one.job]:
            del chunks[one.job]
        if not chunks:
            del self._groups[name]

    def _count_in(self, one: Kept, times: int) -> None:
        self._count += times
        self._size += times * one.size
        self._in_memory += times * len(one.record)
        if one.place:
            self._files[one.place.file] += times


def _pairs(chunks: Mapping[bytes, BitMap]) -> list[tuple[bytes, int]]:
    return [(job, chunk) for job, numbers in chunks.items() for chunk in numbers]
