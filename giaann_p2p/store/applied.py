"""Which chunks of which jobs a shard has taken in: what makes a second delivery harmless.

A chunk may be *withdrawn*: nothing of it is left in the shard. That is a number of its own, the
chunk's with the highest bit set, and stands beside the chunk's. So sets only grow, whatever is
withdrawn: the union of two is right, and what a shard holds is a function of its set.
"""

import hashlib
from collections.abc import Iterator
from functools import reduce
from operator import xor
from typing import Annotated

import msgspec
from pyroaring import BitMap

from giaann_p2p.errors import DamagedError, MessageError

JOB_BYTES = 16
MOST_BEGUN = 1 << 15
"""Jobs of which a shard has chunks when it takes in none of a further one, from whoever asks it to.
A set of so many has 1.3 MB on its way, and each new chunk copies the list of them."""
MOST_JOBS = 4 * MOST_BEGUN
"""Jobs of a set that another peer may send. Owners who were each brought others, as many as they
take, still come together; and so many still go into a message."""
MOST_CHUNKS = 1 << 26
"""Chunks of such a set: some bytes may stand for millions, which take 2 bytes each once they are
worked with."""
SET_BYTES = 230
"""What a set costs in memory beside its elements."""
WITHDRAWN = 1 << 31
"""The bit that tells a chunk's withdrawal from the chunk."""
_DENSE = 1 << 13
"""What 65,536 chunks take at most."""

_Pairs = list[tuple[bytes, bytes]]
_FewPairs = Annotated[_Pairs, msgspec.Meta(max_length=MOST_JOBS)]


class Applied:
    """One shard's chunks, by job. A set never changes, so that many may look at one."""

    def __init__(self, sets: dict[bytes, BitMap] | None = None) -> None:
        self._sets = sets or {}
        self._count: int | None = None
        self._fingerprint: int | None = None
        self._digest = b""

    def __contains__(self, chunk: tuple[bytes, int]) -> bool:
        job, number = chunk
        return job in self._sets and number in self._sets[job]

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Applied) and self._sets == other._sets)

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._sets)

    def __repr__(self) -> str:
        return f"<Applied: {len(self):,} chunks of {len(self._sets):,} jobs>"

    def __len__(self) -> int:
        if self._count is None:
            self._count = sum(map(len, self._sets.values()))
        return self._count

    def __bool__(self) -> bool:
        return any(self._sets.values())

    @property
    def jobs(self) -> int:
        """How many jobs they are of."""
        return len(self._sets)

    @property
    def nbytes(self) -> int:
        """How much memory they take, about."""
        sparse, dense = 2 * len(self), len(self) // 8 + _DENSE * len(self._sets)
        return SET_BYTES * len(self._sets) + min(sparse, dense)

    @property
    def fingerprint(self) -> int:
        """The same for the same chunks, and seldom for others; not beyond this process."""
        if self._fingerprint is None:
            marks = (_mark(job, chunks) for job, chunks in self._sets.items())
            self._fingerprint = reduce(xor, marks, 0)
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
        if self is other:  # as nearly always among shards with the same chunks
            return True
        return all(chunks <= other.of(job) for job, chunks in self._sets.items())

    def __or__(self, other: "Applied") -> "Applied":
        return Applied({job: self.of(job) | other.of(job) for job in self._sets | other._sets})

    def __sub__(self, other: "Applied") -> "Applied":
        if self is other:
            return Applied()
        left = {job: chunks - other.of(job) for job, chunks in self._sets.items()}
        return Applied({job: chunks for job, chunks in left.items() if chunks})

    def __and__(self, other: "Applied") -> "Applied":
        if self is other:
            return self
        both = {job: chunks & other.of(job) for job, chunks in self._sets.items()}
        return Applied({job: chunks for job, chunks in both.items() if chunks})

    def meets(self, other: "Applied") -> bool:
        """Tell whether both have a chunk in common."""
        return any(chunks.intersect(other.of(job)) for job, chunks in self._sets.items())

    @property
    def withdrawn(self) -> "Applied":
        """The chunks that were withdrawn."""
        return Applied(
            {job: back for job, chunks in self._sets.items() if (back := withdrawn_of(chunks))}
        )

    @property
    def left(self) -> "Applied":
        """The chunks that were not withdrawn."""
        back = self.withdrawn
        return self - back - back.withdrawals if back else self

    @property
    def wanted(self) -> "Applied":
        """What of all this is to be got: a withdrawal without its chunk, which goes with it."""
        back = self.withdrawn
        return self - back if back else self

    @property
    def withdrawals(self) -> "Applied":
        """The numbers of these chunks' withdrawals."""
        return Applied({job: chunks.shift(WITHDRAWN) for job, chunks in self._sets.items()})

    def plus(self, job: bytes, chunk: int) -> "Applied":
        """Return these chunks and one more; the other jobs' chunks are shared."""
        if (job, chunk) in self:
            return self
        before = self.of(job)
        after = before.copy()
        after.add(chunk)
        found = Applied({**self._sets, job: after})
        found._count = len(self) + 1
        found._fingerprint = self.fingerprint ^ _mark(job, before) ^ _mark(job, after)
        return found

    def sharing(self, other: "Applied") -> "Applied":
        """Return the same chunks, with what is the same in others in memory once."""
        known = {
            job: theirs for job, theirs in other._sets.items() if theirs == self._sets.get(job)
        }
        new = {job: chunks for job, chunks in self._sets.items() if job not in known}
        return Applied({**known, **new})

    def to_bytes(self) -> bytes:
        """Return the one encoding of these chunks."""
        return msgspec.msgpack.encode(
            [(job, _bytes(self._sets[job])) for job in sorted(self._sets)]
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "Applied":
        """Read what `to_bytes` wrote."""
        try:
            return cls._of(msgspec.msgpack.decode(data, type=_Pairs))
        except (msgspec.MsgspecError, ValueError, IndexError) as error:
            raise DamagedError(f"no set of chunks: {error}") from None

    @classmethod
    def received(cls, data: bytes) -> "Applied":
        """Read what another peer sent: MessageError if it is too much, DamagedError if it is none.

        How many jobs it names is seen before any of them is read.
        """
        try:
            found = cls._of(msgspec.msgpack.decode(data, type=_FewPairs))
        except (msgspec.MsgspecError, ValueError, IndexError) as error:
            raise DamagedError(f"no set of chunks of up to {MOST_JOBS:,} jobs: {error}") from None
        if len(found) > MOST_CHUNKS:
            raise MessageError(f"a set of {len(found):,} chunks; {MOST_CHUNKS:,} are taken at most")
        return found

    @classmethod
    def _of(cls, pairs: _Pairs) -> "Applied":
        sets = {job: BitMap.deserialize(chunks) for job, chunks in pairs}
        if len(sets) < len(pairs) or any(len(job) != JOB_BYTES for job in sets):
            raise DamagedError("no set of chunks: a job is named twice, or by no job's name")
        return cls(sets)


def withdrawn_of(chunks: BitMap) -> BitMap:
    """Return which of a job's chunks were withdrawn."""
    if not chunks or chunks.max() < WITHDRAWN:  # as nearly always
        return BitMap()
    back = chunks.copy()
    back.remove_range(0, WITHDRAWN)
    return back.shift(-WITHDRAWN)


def _mark(job: bytes, chunks: BitMap) -> int:
    return hash((job, len(chunks), chunks.max())) if chunks else 0


def _bytes(chunks: BitMap) -> bytes:
    packed = chunks.copy()  # somebody else may be looking at it
    packed.run_optimize()
    data: bytes = packed.serialize()
    return data
