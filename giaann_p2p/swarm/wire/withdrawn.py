"""Chunks that the founder's list withdraws, each with the root of its delta (`store.seal`).

A disowned peer can still sign anything under the name of any chunk. So only the founder's list can
withdraw a chunk. Its root identifies the delta to subtract, for owners that have forgotten it.
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
"""Maximum number of withdrawn chunks in one list. Each peer holds the list, and each client fetches
it, at 20 bytes per chunk. By default an owner remembers at most a quarter as many deltas."""
_CHUNK = np.dtype("<u4")
_ALONE = 1 + 2 + JOB_BYTES + 2 + _CHUNK.itemsize + 2 + DIGEST
"""Bytes that a chunk takes if it is the only one of its job in the list; other chunks take less."""
MOST_BYTES = MOST * _ALONE + 16
"""Maximum length of the encoded chunks of one list, in bytes."""

Chunk = tuple[bytes, int]
"""The id of a job, and the number of one of its chunks."""


class Part(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Some chunks of one job, each with the root of its delta."""

    job: Annotated[bytes, msgspec.Meta(min_length=JOB_BYTES, max_length=JOB_BYTES)]
    numbers: Annotated[bytes, msgspec.Meta(min_length=4, max_length=4 * MOST)]
    """Numbers of the chunks, ascending, each as a little-endian u32."""
    roots: Annotated[bytes, msgspec.Meta(min_length=DIGEST, max_length=DIGEST * MOST)]
    """Roots of the chunks' deltas, concatenated in the order of `numbers`."""

    def __len__(self) -> int:
        return len(self.numbers) // _CHUNK.itemsize

    def chunks(self) -> Iterator[tuple[Chunk, bytes]]:
        """Iterate over the chunks, each with the root of its delta."""
        for at, number in enumerate(np.frombuffer(self.numbers, _CHUNK).tolist()):
            yield (self.job, number), self.roots[DIGEST * at : DIGEST * (at + 1)]

    def fault(self) -> str:
        """Return what is malformed in this part of a list; empty if nothing is."""
        if len(self.numbers) % _CHUNK.itemsize or len(self.roots) != DIGEST * len(self):
            return "chunks that do not have one root each"
        numbers = np.frombuffer(self.numbers, _CHUNK).astype(np.int64)
        if np.any(numbers[1:] <= numbers[:-1]) or int(numbers[-1]) >= WITHDRAWN:
            return "chunks that are not in ascending order"
        return ""


Parts = tuple[Part, ...]


def fault_of(parts: Iterable[Part]) -> str:
    """Return what is wrong with a list of chunks: too many, repeated, or out of order.

    Empty if nothing is wrong.
    """
    some = tuple(parts)
    if sum(map(len, some)) > MOST:
        return f"more than {MOST:,} chunks"
    if any(one.job >= other.job for one, other in pairwise(some)):
        return "jobs that are not in ascending order"
    return next(filter(None, (part.fault() for part in some)), "")


def parts_of(roots: Mapping[Chunk, bytes]) -> Parts:
    """Return chunks and their roots in canonical form: by job, both in ascending order."""
    found = list[Part]()
    for job, chunks in groupby(sorted(roots), lambda chunk: chunk[0]):
        numbers = np.array([number for _, number in chunks], _CHUNK)
        each = b"".join(roots[job, number] for number in numbers.tolist())
        found.append(Part(job, numbers.tobytes(), each))
    return tuple(found)


def roots_in(parts: Iterable[Part]) -> dict[Chunk, bytes]:
    """Return the root of each chunk in some parts of a list."""
    return {chunk: root for part in parts for chunk, root in part.chunks()}


def pages_of(roots: Mapping[Chunk, bytes], size: int) -> list[Parts]:
    """Split chunks into pages of at most `size` chunks; there is at least one page."""
    left, found = iter(sorted(roots)), list[Parts]()
    while page := list(islice(left, size)):
        found.append(parts_of({chunk: roots[chunk] for chunk in page}))
    return found or [()]


class Withdrawn:
    """All chunks of one edition of the founder's list, indexed by job."""

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        self._parts = {part.job: part for part in parts}

    def __len__(self) -> int:
        return sum(map(len, self._parts.values()))

    def __repr__(self) -> str:
        return f"<Withdrawn: {len(self):,} chunks of {len(self._parts):,} jobs>"

    def root_of(self, job: bytes, chunk: int) -> bytes:
        """Return the root of a chunk's withdrawn delta; empty if the chunk is not withdrawn."""
        if (part := self._parts.get(job)) is None:
            return b""
        numbers = np.frombuffer(part.numbers, _CHUNK)
        at = int(np.searchsorted(numbers, chunk))
        if at == len(numbers) or numbers[at] != chunk:
            return b""
        return part.roots[DIGEST * at : DIGEST * (at + 1)]

    @cached_property
    def chunks(self) -> Applied:
        """All withdrawn chunks, as a set with fast lookup."""
        return Applied(
            {job: BitMap(np.frombuffer(part.numbers, _CHUNK)) for job, part in self._parts.items()}
        )


NONE = Withdrawn()
