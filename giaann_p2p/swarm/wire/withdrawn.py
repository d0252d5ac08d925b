"""Chunks that are withdrawn by the founder's word, each with its delta's root (`store.seal`).

Who is disowned can still sign, whatever it likes, under any chunk's name. So it takes the founder's
list for a chunk to be withdrawn, and the root for an owner that has forgotten the delta to know
which one is to be taken away again.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import groupby, islice, pairwise
from typing import Annotated

import msgspec
import numpy as np
from pyroaring import BitMap

from giaann_p2p.store.applied import JOB_BYTES, WITHDRAWN, Applied
from giaann_p2p.store.seal import DIGEST

MOST = 1 << 16
"""Chunks of a list. Each peer holds the list, and each client fetches it, 20 bytes a chunk; and an
owner remembers a quarter as many deltas, if all are tiny and it was not told otherwise."""
_CHUNK = np.dtype("<u4")
_ALONE = 1 + 2 + JOB_BYTES + 2 + _CHUNK.itemsize + 2 + DIGEST
"""Bytes of a chunk that is its job's only one; of others it is less."""
MOST_BYTES = MOST * _ALONE + 16

Chunk = tuple[bytes, int]
"""A job, and the number of a chunk of it."""


class Part(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Some chunks of a job."""

    job: Annotated[bytes, msgspec.Meta(min_length=JOB_BYTES, max_length=JOB_BYTES)]
    numbers: Annotated[bytes, msgspec.Meta(min_length=4, max_length=4 * MOST)]
    """Ascending, as u32."""
    roots: Annotated[bytes, msgspec.Meta(min_length=DIGEST, max_length=DIGEST * MOST)]
    """For each of them."""

    def __len__(self) -> int:
        return len(self.numbers) // _CHUNK.itemsize

    def chunks(self) -> Iterator[tuple[Chunk, bytes]]:
        """Iterate over them, each with its root."""
        for at, number in enumerate(np.frombuffer(self.numbers, _CHUNK).tolist()):
            yield (self.job, number), self.roots[DIGEST * at : DIGEST * (at + 1)]

    def fault(self) -> str:
        """Tell why this cannot be; nothing if it can."""
        if len(self.numbers) % _CHUNK.itemsize or len(self.roots) != DIGEST * len(self):
            return "chunks without their roots"
        numbers = np.frombuffer(self.numbers, _CHUNK).astype(np.int64)
        if np.any(numbers[1:] <= numbers[:-1]) or int(numbers[-1]) >= WITHDRAWN:
            return "chunks out of their order"
        return ""


Parts = tuple[Part, ...]


def fault_of(parts: Iterable[Part]) -> str:
    """Tell why these are no chunks, each once, in order; nothing if they are."""
    some = tuple(parts)
    if sum(map(len, some)) > MOST:
        return f"more than {MOST:,} chunks"
    if any(one.job >= other.job for one, other in pairwise(some)):
        return "jobs out of their order"
    return next(filter(None, (part.fault() for part in some)), "")


def parts_of(roots: Mapping[Chunk, bytes]) -> Parts:
    """Return chunks in their one form."""
    found = list[Part]()
    for job, chunks in groupby(sorted(roots), lambda chunk: chunk[0]):
        numbers = np.array([number for _, number in chunks], _CHUNK)
        each = b"".join(roots[job, number] for number in numbers.tolist())
        found.append(Part(job, numbers.tobytes(), each))
    return tuple(found)


def roots_in(parts: Iterable[Part]) -> dict[Chunk, bytes]:
    """Return the root of each chunk."""
    return {chunk: root for part in parts for chunk, root in part.chunks()}


def pages_of(roots: Mapping[Chunk, bytes], size: int) -> list[Parts]:
    """Return chunks in pages of so many; there is one at least."""
    left, found = iter(sorted(roots)), list[Parts]()
    while page := list(islice(left, size)):
        found.append(parts_of({chunk: roots[chunk] for chunk in page}))
    return found or [()]


class Withdrawn:
    """All chunks of a list, to be looked up."""

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        self._parts = {part.job: part for part in parts}

    def __len__(self) -> int:
        return sum(map(len, self._parts.values()))

    def __repr__(self) -> str:
        return f"<Withdrawn: {len(self):,} chunks of {len(self._parts):,} jobs>"

    def root_of(self, job: bytes, chunk: int) -> bytes:
        """Return the root of the delta that is withdrawn of a chunk; nothing if none is."""
        if (part := self._parts.get(job)) is None:
            return b""
        numbers = np.frombuffer(part.numbers, _CHUNK)
        at = int(np.searchsorted(numbers, chunk))
        if at == len(numbers) or numbers[at] != chunk:
            return b""
        return part.roots[DIGEST * at : DIGEST * (at + 1)]

    @cached_property
    def chunks(self) -> Applied:
        """The chunks."""
        return Applied(
            {job: BitMap(np.frombuffer(part.numbers, _CHUNK)) for job, part in self._parts.items()}
        )


NONE = Withdrawn()
