"""The archive of a store's single deltas; owners copy deltas from each other until all have them.

A store on a disk already has each delta in its log, in the record that brought it. So the archive
is an index: for each record, it has the record's place and the shards that it is kept for. A store
in memory keeps the record itself. Invariant: for each chunk and shard, at most one record is kept;
a later record replaces an earlier one.

The index is not logged; only releases are. Opening a store rebuilds the index from the heads of old
records. A released record may reappear if records were moved or damaged; this costs disk space and
nothing else. Records after a damaged place are not found. The store can do without them, because
their deltas are already part of the shards, and the other owners have them, too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import compress
from operator import and_

import numpy as np
from pyroaring import BitMap

from giaann_p2p.store.applied import Applied
from giaann_p2p.store.disk.record import Place
from giaann_p2p.store.kept import KEPT_BYTES, Kept, followed
from giaann_p2p.store.layout import Shards, among, divided
from giaann_p2p.store.ledger import Ledger
from giaann_p2p.store.spare import Spare, SpareGroup


@dataclass(frozen=True, eq=False, slots=True)
class _Group:
    """The chunks whose records are kept for the same set of shards."""

    shards: Shards
    chunks: dict[bytes, BitMap] = field(default_factory=dict)


class Archive:
    """An index of the deltas that a store keeps, by chunk and by shard."""

    def __init__(self) -> None:
        self.spare = Spare()
        """A cache of released records, from which the oldest are evicted first."""
        self._kept: dict[bytes, dict[int, list[Kept]]] = {}  # by job and chunk
        self._groups: dict[bytes, _Group] = {}  # by shards
        self._files: Counter[int] = Counter()  # kept records by log file
        self._count = self._size = self._in_memory = 0

    def __repr__(self) -> str:
        return f"<Archive: {self._count:,} deltas, {self._size:,} bytes>"

    @property
    def nbytes(self) -> int:
        """The approximate memory that the archive takes, in bytes."""
        return KEPT_BYTES * self._count + self._in_memory + self.spare.nbytes

    @property
    def count(self) -> int:
        """The number of kept records, without released ones."""
        return self._count

    @property
    def size(self) -> int:
        """The size of all kept records in bytes, on the disk or in memory."""
        return self._size

    @property
    def files(self) -> set[int]:
        """The numbers of the log files that must not be deleted.

        Each file with a record must stay, and so must its successor, whose header states where the
        file ends.
        """
        used = {number for number, count in self._files.items() if count} | self.spare.files
        return {at for number in used for at in (number, number + 1)}

    def of_chunk(self, job: bytes, chunk: int) -> list[Kept]:
        """Return a chunk's records: the kept ones, and the released ones that are still cached."""
        return [*self.find(job, chunk), *self.spare.find(job, chunk)]

    @property
    def everything(self) -> list[Kept]:
        """All records: the kept ones, and the released ones that are still cached."""
        kept = [one for jobs in self._kept.values() for some in jobs.values() for one in some]
        return [*kept, *self.spare]

    def chunks(self, job: bytes) -> BitMap:
        """Return the chunks of a job for which at least one record is kept."""
        return BitMap(self._kept.get(job, ()))

    def of(self, shard: int, jobs: Iterable[bytes] | None = None) -> Applied:
        """Return the chunks whose delta for one shard is kept, of all jobs or of some."""
        groups = (group.chunks for group in self._groups.values() if shard in group.shards)
        return Applied.union(groups, jobs)

    def of_all(self, shards: Shards, jobs: Iterable[bytes], cached: bool) -> Applied:
        """Return the chunks of some jobs whose delta is kept for each of some shards.

        `cached`: deltas that were released but are still cached count as well.
        """
        groups: list[_Group | SpareGroup] = [*self._groups.values()]
        groups += self.spare.groups if cached else []
        jobs, chunks = list(jobs), [group.chunks for group in groups]
        bears = np.array([among(shards, group.shards) for group in groups], np.bool_)
        columns = bears.reshape(len(groups), len(shards)).T
        kinds = {column.tobytes(): column for column in columns}  # most shards share their groups
        found = [Applied.union(compress(chunks, kind), jobs) for kind in kinds.values()]
        return reduce(and_, found) if found else Applied()

    def find(self, job: bytes, chunk: int) -> list[Kept]:
        """Return the kept records of a chunk, without released ones."""
        return list(self._kept.get(job, {}).get(chunk, ()))

    def add(self, one: Kept) -> None:
        """Keep a delta's record; it replaces older records of the chunk for the same shards.

        It replaces cached records, too; otherwise a withdrawal would subtract the delta twice.
        """
        self.forget(one.job, one.chunk, one.shards)
        self.spare.forget(one.job, one.chunk, one.shards)
        if len(one.shards):
            self._put(one, one.shards)

    def forget(self, job: bytes, chunk: int, shards: Shards) -> None:
        """Stop keeping a chunk's delta for some shards."""
        for one in self.find(job, chunk):
            gone = among(one.shards, shards)
            if gone.any():
                self._leave(one, one.shards[~gone])

    def kept(self, job: bytes, chunks: BitMap, shards: Shards) -> BitMap:
        """Return which of the given chunks have a delta kept for any of the given shards."""
        groups = [of for of in self._groups.values() if among(of.shards, shards).any()]
        return chunks & BitMap.union(*(of.chunks.get(job, BitMap()) for of in groups), BitMap())

    def release(self, job: bytes, chunks: BitMap, shards: Shards) -> None:
        """Release the deltas of some chunks for some shards: the records move to `spare`."""
        for group in list(self._groups.values()):
            gone = among(group.shards, shards)
            if gone.any():
                part = {job: group.chunks.get(job, BitMap()) & chunks}
                for one in self._leave_group(group, part, group.shards[~gone]):
                    self.spare.add(replace(one, shards=group.shards[gone]))

    def drop(self, shards: Iterable[int]) -> None:
        """Stop keeping records for shards that the store no longer holds."""
        gone = np.unique(np.fromiter(shards, np.uint16))
        self.spare.drop(gone)
        for group in list(self._groups.values()):
            dropped = among(group.shards, gone)
            if dropped.any():
                self._leave_group(group, group.chunks, group.shards[~dropped])

    def keep_only(self, ledger: Ledger) -> None:
        """Keep a record for a shard only if the shard is held and has applied the chunk."""
        known = {shard for group in self._groups.values() for shard in group.shards.tolist()}
        self.drop(shard for shard in known if shard not in ledger)
        for shard in ledger.shards:
            strange = self.of(int(shard)) - ledger.of(int(shard))
            for job, chunk in _pairs({job: strange.of(job) for job in strange}):
                self.forget(job, chunk, shard[np.newaxis])

    def move(self, moves: Mapping[Place, Place]) -> None:
        """Update the places of records that the log has rewritten into another file."""
        if not moves:
            return
        self.spare.move(moves)
        for one in [one for jobs in self._kept.values() for kept in jobs.values() for one in kept]:
            if one.place and one.place in moves:
                self.discard(one)
                self._put(replace(one, place=followed(one.place, moves)), one.shards)

    def double(self, before: int, after: int) -> None:
        """Keep each record for all shards into which its shards are divided.

        `before` and `after` are the total numbers of shards.
        """
        self.spare.double(before, after)
        wider = {name: divided(of.shards, before, after) for name, of in self._groups.items()}
        for jobs in self._kept.values():
            for chunk, some in jobs.items():
                jobs[chunk] = [_for(one, wider[one.shards.tobytes()]) for one in some]
        groups = [_Group(wider[name], of.chunks) for name, of in self._groups.items()]
        self._groups = {group.shards.tobytes(): group for group in groups}

    def discard(self, one: Kept) -> None:
        """Stop keeping a record, for all of its shards."""
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
        """Narrow a group's records of some chunks to the shards `left`; return the old records."""
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
        """Narrow a kept record to fewer shards; discard it if none are left."""
        self.discard(one)
        if len(shards):
            self._put(one, shards)

    def _put(self, one: Kept, shards: Shards) -> None:
        """Add a record to the index, as kept for the given shards."""
        group = self._groups.setdefault(shards.tobytes(), _Group(shards))
        group.chunks.setdefault(one.job, BitMap()).add(one.chunk)
        one = _for(one, group.shards)  # all records of a group share one array
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


def _for(one: Kept, shards: Shards) -> Kept:
    """Return a record as kept for some shards; `dataclasses.replace` takes ten times as long."""
    return Kept(one.job, one.chunk, shards, one.size, one.place, one.record)


def _pairs(chunks: Mapping[bytes, BitMap]) -> list[tuple[bytes, int]]:
    return [(job, chunk) for job, numbers in chunks.items() for chunk in numbers]
