"""Which chunks of which jobs a shard has taken in: what makes a second delivery harmless."""

import hashlib
from collections.abc import Iterator
from functools import reduce
from operator import xor

import msgspec
from pyroaring import BitMap

from giaann_p2p.errors import DamagedError

JOB_BYTES = 16
SET_BYTES = 230
"""What a set costs in memory beside its elements."""
_DENSE = 1 << 13
"""What 65,536 chunks take at most."""


class Applied:
    """One shard's chunks, by job."""

    def __init__(self, sets: dict[bytes, BitMap] | None = None) -> None:
        self._sets = sets or {}
        self._count = sum(map(len, self._sets.values()))
        self._fingerprint = reduce(xor, map(self._mark, self._sets), 0)
        self._digest = b""

    def __contains__(self, chunk: tuple[bytes, int]) -> bool:
        job, number = chunk
        return job in self._sets and number in self._sets[job]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Applied) and self._sets == other._sets

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._sets)

    def __repr__(self) -> str:
        return f"<Applied: {len(self):,} chunks of {len(self._sets):,} jobs>"

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """How much memory they take, about."""
        sparse, dense = 2 * self._count, self._count // 8 + _DENSE * len(self._sets)
        return SET_BYTES * len(self._sets) + min(sparse, dense)

    @property
    def fingerprint(self) -> int:
        """The same for the same chunks, and seldom for others; not beyond this process."""
        return self._fingerprint

    @property
    def digest(self) -> bytes:
        """16 bytes: equal exactly for the same chunks, anywhere."""
        if not self._digest:
            self._digest = hashlib.blake2b(self.to_bytes(), digest_size=16).digest()
        return self._digest

    def of(self, job: bytes) -> BitMap:
        """Return a job's chunks."""
        return self._sets.get(job, BitMap())

    def __le__(self, other: "Applied") -> bool:
        return all(chunks <= other.of(job) for job, chunks in self._sets.items())

    def __or__(self, other: "Applied") -> "Applied":
        return Applied({job: self.of(job) | other.of(job) for job in self._sets | other._sets})

    def __sub__(self, other: "Applied") -> "Applied":
        left = {job: chunks - other.of(job) for job, chunks in self._sets.items()}
        return Applied({job: chunks for job, chunks in left.items() if chunks})

    def __and__(self, other: "Applied") -> "Applied":
        both = {job: chunks & other.of(job) for job, chunks in self._sets.items()}
        return Applied({job: chunks for job, chunks in both.items() if chunks})

    def meets(self, other: "Applied") -> bool:
        """Tell whether both have a chunk in common."""
        return any(chunks.intersect(other.of(job)) for job, chunks in self._sets.items())

    def copy(self) -> "Applied":
        """Return the same chunks, to be changed on their own."""
        return Applied({job: chunks.copy() for job, chunks in self._sets.items()})

    def add(self, job: bytes, chunk: int) -> None:
        """Note a chunk."""
        if (job, chunk) in self:
            return
        self._fingerprint ^= self._mark(job)
        self._sets.setdefault(job, BitMap()).add(chunk)
        self._fingerprint ^= self._mark(job)
        self._count += 1
        self._digest = b""

    def _mark(self, job: bytes) -> int:
        chunks = self._sets.get(job)
        return hash((job, len(chunks), chunks.max())) if chunks else 0

    def to_bytes(self) -> bytes:
        """Return the one encoding of these chunks."""
        for chunks in self._sets.values():
            chunks.run_optimize()
        return msgspec.msgpack.encode(
            [(job, self._sets[job].serialize()) for job in sorted(self._sets)]
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "Applied":
        """Read what `to_bytes` wrote."""
        try:
            pairs = msgspec.msgpack.decode(data, type=list[tuple[bytes, bytes]])
            sets = {job: BitMap.deserialize(chunks) for job, chunks in pairs}
        except (msgspec.MsgspecError, ValueError, IndexError) as error:
            raise DamagedError(f"no set of chunks: {error}") from None
        if len(sets) < len(pairs) or any(len(job) != JOB_BYTES for job in sets):
            raise DamagedError("no set of chunks: a job is named twice, or by no job's name")
        return cls(sets)
