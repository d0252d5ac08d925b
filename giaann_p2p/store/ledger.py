"""The set of chunks that each held shard has applied. Shards with equal sets share one set object.

So in most stores a chunk costs one entry, however many shards there are. A shard that applies a
different chunk leaves its group of shards, and rejoins it once the sets are equal again.
"""

from collections.abc import Iterable

import numpy as np

from giaann_p2p.errors import UsageError
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.layout import Shards

_ABSENT = -1


class Ledger:
    """The set of applied chunks of each shard that a store holds."""

    def __init__(self, shards: int) -> None:
        self._group = np.full(shards, _ABSENT, np.int64)  # by shard
        self._sets: dict[int, Applied] = {}  # by group
        self._known: dict[int, int] = {}  # groups by their sets' fingerprints
        self._groups = 0  # groups made so far: the next group's number

    def __contains__(self, shard: int) -> bool:
        return 0 <= shard < len(self._group) and int(self._group[shard]) != _ABSENT

    def __repr__(self) -> str:
        return f"<Ledger: {len(self.shards):,} shards, {len(self._sets):,} sets>"

    @property
    def shards(self) -> Shards:
        """The shards that are held, ascending."""
        return np.flatnonzero(self._group != _ABSENT).astype(np.uint16)

    @property
    def nbytes(self) -> int:
        """The approximate memory that the ledger takes, in bytes."""
        return self._group.nbytes + sum(chunks.nbytes for chunks in list(self._sets.values()))

    def of(self, shard: int) -> Applied:
        """Return the chunks that a shard has applied; UsageError if the shard is not held."""
        (group,) = self._groups_of(np.array([shard]))
        return self._sets[int(group)]

    def some(self, shards: Iterable[int]) -> dict[int, Applied]:
        """Return the applied chunks of the given shards, without shards that are not held."""
        most, group_of, sets = len(self._group), self._group.item, self._sets
        return {
            shard: sets[group]
            for shard in shards
            if 0 <= shard < most and (group := group_of(shard)) != _ABSENT
        }

    def lacking(self, job: bytes, chunk: int, shards: Shards) -> Shards:
        """Return which of the given shards have not applied a chunk; all must be held."""
        groups = self._groups_of(shards)
        kinds = set(groups.tolist())
        having = [group for group in kinds if (job, chunk) in self._sets[group]]
        if len(having) in (0, len(kinds)):  # the usual case
            return shards[: 0 if having else len(shards)]
        return shards[~np.isin(groups, having)]

    def add(self, job: bytes, chunk: int, shards: Shards) -> None:
        """Record that some shards have applied a chunk."""
        groups = self._group[shards]
        for group in sorted(set(groups.tolist())):
            part = shards[groups == group]
            chunks = self._sets[group]
            if (job, chunk) in chunks:
                continue
            if len(part) == np.count_nonzero(self._group == group):
                self._forget(group)
            self._group[part] = self._group_of(chunks.plus(job, chunk))

    def hold(self, shard: int, applied: Applied) -> None:
        """Hold a shard with the given set of applied chunks, which replaces any earlier set."""
        self.drop(shard)
        self._group[shard] = self._group_of(applied)

    def drop(self, shard: int) -> None:
        """Remove a shard, which is no longer held, and its set of applied chunks."""
        group = int(self._group[shard])
        self._group[shard] = _ABSENT
        if group != _ABSENT and group not in self._group:
            self._forget(group)

    def double(self, times: int) -> None:
        """Divide each shard into `times` shards, which have applied the same chunks."""
        self._group = np.tile(self._group, times)

    def _group_of(self, chunks: Applied) -> int:
        """Return the group of shards that have applied these chunks, creating it if needed."""
        known = self._known.get(chunks.fingerprint)
        if known is not None and self._sets[known] == chunks:
            return known
        group, self._groups = self._groups, self._groups + 1
        self._sets[group] = chunks
        self._known[chunks.fingerprint] = group
        return group

    def _forget(self, group: int) -> None:
        fingerprint = self._sets.pop(group).fingerprint
        if self._known.get(fingerprint) == group:
            del self._known[fingerprint]

    def _groups_of(self, shards: Ints | Shards) -> Ints:
        exists = shards < len(self._group)
        groups = np.full(len(shards), _ABSENT)
        groups[exists] = self._group[shards[exists]]
        if len(absent := shards[groups == _ABSENT]):
            raise UsageError(f"shard {absent[0]} is not held here")
        return groups
