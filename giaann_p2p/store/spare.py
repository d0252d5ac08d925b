"""Deltas that nobody can lack any longer, kept as long as there is room for them, the oldest least.

Without its delta a chunk cannot be told from the others any more. What turns out to be a lie is
withdrawn by it: so owners that have a disk do not forget at once what they may forget.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from giaann_p2p.store.disk.record import Place
from giaann_p2p.store.kept import KEPT_BYTES, Kept, followed
from giaann_p2p.store.layout import Shards, among

_LEAST = 8 * KEPT_BYTES
"""What a record counts at least, or tiny ones would fill the memory with what is known of them."""


class Spare:
    """So many bytes of records."""

    def __init__(self, most: int = 0) -> None:
        self._most, self._size = most, 0
        self._kept: deque[Kept] = deque()
        self._files: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Kept]:
        return iter(list(self._kept))

    def __repr__(self) -> str:
        return f"<Spare: {len(self._kept):,} deltas, {self._size:,} bytes>"

    @property
    def nbytes(self) -> int:
        """How much memory all takes, about."""
        return KEPT_BYTES * len(self._kept)

    @property
    def files(self) -> set[int]:
        """The log files in which records lie."""
        return {number for number, count in self._files.items() if count}

    def add(self, one: Kept) -> None:
        """Keep a record that lies in the log, in the place of the oldest if there are too many."""
        if one.place is None or not self._most:
            return
        self._kept.append(one)
        self._count(one, 1)
        while self._size > self._most:
            self._count(self._kept.popleft(), -1)

    def drop(self, shards: Shards) -> None:
        """Forget what shards got that are let go: should they come back, it may be as another."""
        self._change(lambda one: replace(one, shards=one.shards[~among(one.shards, shards)]))

    def move(self, moves: Mapping[Place, Place]) -> None:
        """Note where records lie that were written anew."""
        self._change(lambda one: replace(one, place=one.place and followed(one.place, moves)))

    def _change(self, change: Callable[[Kept], Kept]) -> None:
        kept, self._kept = self._kept, deque()
        for one in kept:
            self._count(one, -1)
            if len((new := change(one)).shards):
                self._kept.append(new)
                self._count(new, 1)

    def _count(self, one: Kept, times: int) -> None:
        self._size += times * max(one.size, _LEAST)
        if one.place:
            self._files[one.place.file] += times
