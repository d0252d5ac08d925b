"""The set of chunks that a shard has applied, by job; the set makes delivery idempotent.

Withdrawing a chunk subtracts its delta from the shard. The chunk stays in the set, and a tombstone
joins it: the chunk's number with the highest bit set. So sets only grow: merging two sets is their
union, and the content of a shard is a function of its set.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import reduce
from operator import xor
from typing import Annotated, NamedTuple, TypeVar, cast
from weakref import ref

import msgspec
from pyroaring import BitMap

from giaann_p2p.errors import DamagedError, MessageError

JOB_BYTES = 16
MOST_BEGUN = 1 << 15
"""The most jobs whose chunks one shard may have. At this limit a shard refuses the chunks of any
further job, whichever peer sends them. Jobs that are withdrawn as a whole do not count. A set of
this many jobs takes 1.3 MB on the wire, and each new chunk copies the list of jobs."""
MOST_JOBS = 4 * MOST_BEGUN
"""The most jobs in a set that another peer sends. The limit is above `MOST_BEGUN`, so that owners
that each reached `MOST_BEGUN` with different jobs can still merge their sets. A set of this size
fits into one message."""
MOST_CHUNKS = 1 << 26
"""The most chunks in a set that another peer sends. Without this limit, a few bytes could encode
millions of chunks, and each takes 2 bytes of memory once the set is used."""
PARTS = 256
"""The number of parts of a set: one for each first byte of a job's name."""
PART_BYTES = 16
"""The size of a part's digest in bytes."""
SET_BYTES = 230
"""The memory that one job's set of chunks takes besides the chunk numbers, in bytes."""
WITHDRAWN = 1 << 31
"""The bit that turns a chunk's number into its withdrawal mark."""
_DENSE = 1 << 13
"""The most bytes of memory that one job's set takes for 65,536 consecutive chunk numbers: a bit for
each number."""

_NO_PARTS, _ALL_PARTS = bytes(PARTS * PART_BYTES), frozenset(range(PARTS))
_MOST_COMPARED = 12
"""The most comparisons that a set caches: three kinds, with the sets of a few other replicas."""

_Found = TypeVar("_Found")
_Pairs = list[tuple[bytes, bytes]]
_FewPairs = Annotated[_Pairs, msgspec.Meta(max_length=MOST_JOBS)]


_NONE = BitMap()
"""No chunks; never changed."""


class _Compared(NamedTuple):
    """A cached result of comparing a set with another one, which is referenced weakly."""

    kind: str
    other: "ref[Applied]"
    found: object


class Applied:
    """The chunks that one shard has applied, by job.

    A set is immutable, so threads can share one, and so can shards that have applied the same
    chunks. It remembers its last comparisons, because a storage peer compares each of its shards
    with the other replicas every few seconds, and most shards share one set.
    """

    def __init__(self, sets: dict[bytes, BitMap] | None = None) -> None:
        self._sets = sets or {}
        self.foreign = 0
        """The approximate memory in bytes that decoding this set took, apart from what it shared
        with another set then; 0 for a set that no peer sent."""
        self._compared: tuple[_Compared, ...] = ()
        self._count: int | None = None
        self._fingerprint: int | None = None
        self._digest = b""
        self._parts = _NO_PARTS, _ALL_PARTS  # the parts' digests, and which of them are unknown

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
        """The number of jobs that the set's chunks belong to."""
        return len(self._sets)

    @property
    def begun(self) -> int:
        """The number of jobs with at least one chunk that is not withdrawn.

        Fully withdrawn jobs stay in the set, because sets only grow. The founder's list of
        withdrawals bounds their number.
        """
        return sum(not _is_withdrawn(chunks) for chunks in self._sets.values())

    @property
    def nbytes(self) -> int:
        """The approximate memory that the set takes, in bytes."""
        return _nbytes(len(self), len(self._sets))

    @property
    def fingerprint(self) -> int:
        """A quick hash: equal sets have equal fingerprints, and different sets rarely do.

        A fingerprint is valid only within this process.
        """
        if self._fingerprint is None:
            marks = (_mark(job, chunks) for job, chunks in self._sets.items())
            self._fingerprint = reduce(xor, marks, 0)
        return self._fingerprint

    @property
    def digest(self) -> bytes:
        """A hash of 16 bytes that equal sets share in every process, and different sets do not."""
        if not self._digest:
            self._digest = digest_of(self.parts)
        return self._digest

    @property
    def parts(self) -> bytes:
        """The digest of each part of this set in a row; zeros for a part without any job.

        Two peers compare large sets by these digests, and exchange only the parts that differ. A
        set that has grown from another one reuses its digests, so that a new chunk costs little.
        """
        found, unknown = self._parts
        if unknown:
            pairs: dict[int, _Pairs] = {} if unknown is _ALL_PARTS else {n: [] for n in unknown}
            for job in sorted(job for job in self._sets if job[0] in unknown):
                pairs.setdefault(job[0], []).append((job, _bytes(self._sets[job])))
            digests = bytearray(found)
            for part, some in pairs.items():
                at = part * PART_BYTES
                digests[at : at + PART_BYTES] = _digest(some) if some else bytes(PART_BYTES)
            found = bytes(digests)
            self._parts = found, frozenset()
        return found

    def of_parts(self, parts: Collection[int]) -> "Applied":
        """Return the jobs of some parts of this set."""
        return Applied({job: chunks for job, chunks in self._sets.items() if job[0] in parts})

    def of_job(self, job: bytes) -> "Applied":
        """Return this set without the chunks of all other jobs."""
        return Applied({job: self._sets[job]} if job in self._sets else None)

    def with_parts(self, parts: Collection[int], others: "Applied") -> "Applied":
        """Return this set with its jobs in some parts replaced by the jobs of `others`."""
        kept = {job: chunks for job, chunks in self._sets.items() if job[0] not in parts}
        found = Applied({**kept, **others._sets})
        found.foreign = others.foreign
        return found

    def of(self, job: bytes) -> BitMap:
        """Return one job's chunk numbers, including its withdrawal marks."""
        return self._sets.get(job, BitMap())

    def __le__(self, other: "Applied") -> bool:
        if self is other:  # the usual case: shards with equal sets share one object
            return True
        return len(self) <= len(other) and self._once("<=", other, self._is_within)

    def __or__(self, other: "Applied") -> "Applied":
        return Applied({job: self.of(job) | other.of(job) for job in self._sets | other._sets})

    def __sub__(self, other: "Applied") -> "Applied":
        return Applied() if self is other else self._once("-", other, self._without)

    def __and__(self, other: "Applied") -> "Applied":
        return self if self is other else self._once("&", other, self._common_with)

    def _once(self, kind: str, other: "Applied", find: Callable[["Applied"], _Found]) -> _Found:
        """Return the result of a comparison with another set; a repeated one is cached."""
        for before in self._compared:
            if before.kind == kind and before.other() is other:
                return cast("_Found", before.found)
        found = find(other)
        # One assignment of a new tuple, so that threads may compare at the same time. Comparisons
        # with sets that are gone are dropped.
        live = [before for before in self._compared if before.other() is not None]
        self._compared = (*live[1 - _MOST_COMPARED :], _Compared(kind, ref(other), found))
        return found

    def _is_within(self, other: "Applied") -> bool:
        # Sets that have grown from each other share the bitmaps of most jobs.
        theirs = ((chunks, other._sets.get(job, _NONE)) for job, chunks in self._sets.items())
        return all(a is b or a <= b for a, b in theirs)

    def _without(self, other: "Applied") -> "Applied":
        both = ((job, a, other._sets.get(job, _NONE)) for job, a in self._sets.items())
        left = {job: a - b for job, a, b in both if a is not b}
        return Applied({job: chunks for job, chunks in left.items() if chunks})

    def _common_with(self, other: "Applied") -> "Applied":
        both = ((job, a, other._sets.get(job, _NONE)) for job, a in self._sets.items())
        found = {job: a if a is b else a & b for job, a, b in both}
        return Applied({job: chunks for job, chunks in found.items() if chunks})

    @classmethod
    def union(
        cls, parts: Iterable[Mapping[bytes, BitMap]], jobs: Iterable[bytes] | None = None
    ) -> "Applied":
        """Return the union of several maps from job to chunks, for all jobs or only for `jobs`."""
        found: dict[bytes, BitMap] = {}
        for part in parts:
            for job in part if jobs is None else jobs:
                if chunks := part.get(job):
                    found[job] = found.get(job, _NONE) | chunks
        return cls(found)

    def meets(self, other: "Applied") -> bool:
        """Return whether this set and another one have a chunk in common."""
        return any(chunks.intersect(other.of(job)) for job, chunks in self._sets.items())

    @property
    def withdrawn(self) -> "Applied":
        """The chunks of this set that were withdrawn, without their withdrawal marks."""
        return Applied(
            {job: back for job, chunks in self._sets.items() if (back := withdrawn_of(chunks))}
        )

    @property
    def left(self) -> "Applied":
        """The chunks of this set that were not withdrawn, without any withdrawal marks."""
        back = self.withdrawn
        return self - back - back.withdrawals if back else self

    @property
    def wanted(self) -> "Applied":
        """The elements that a peer must fetch to obtain this set: all except withdrawn chunks.

        The withdrawal mark is enough: a peer that has it need not fetch the withdrawn chunk.
        """
        back = self.withdrawn
        return self - back if back else self

    @property
    def withdrawals(self) -> "Applied":
        """The withdrawal marks for the chunks of this set."""
        return Applied({job: chunks.shift(WITHDRAWN) for job, chunks in self._sets.items()})

    def plus(self, job: bytes, chunk: int) -> "Applied":
        """Return a copy of this set with one more chunk; it shares the other jobs' chunks."""
        if (job, chunk) in self:
            return self
        before = self.of(job)
        after = before.copy()
        after.add(chunk)
        found = Applied({**self._sets, job: after})
        found._count = len(self) + 1
        parts, unknown = self._parts
        found._parts = parts, unknown if job[0] in unknown else unknown | {job[0]}
        found._fingerprint = self.fingerprint ^ _mark(job, before) ^ _mark(job, after)
        return found

    def sharing(self, other: "Applied") -> "Applied":
        """Return an equal set that reuses `other`'s memory for each job with the same chunks.

        This set is one that another peer sent; the rest of it counts as `foreign`.
        """
        both = ((job, other._sets.get(job), chunks) for job, chunks in self._sets.items())
        known = {job: theirs for job, theirs, mine in both if theirs == mine and theirs is not None}
        new = {job: chunks for job, chunks in self._sets.items() if job not in known}
        found = Applied({**known, **new})
        found.foreign = Applied(new).nbytes
        return found

    def to_bytes(self) -> bytes:
        """Return the canonical encoding of this set: equal sets have equal bytes."""
        return msgspec.msgpack.encode(
            [(job, _bytes(self._sets[job])) for job in sorted(self._sets)]
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "Applied":
        """Decode a set that `to_bytes` encoded; DamagedError if the bytes are malformed."""
        try:
            return cls._of(msgspec.msgpack.decode(data, type=_Pairs))
        except (msgspec.MsgspecError, ValueError, IndexError) as error:
            raise DamagedError(f"invalid set of chunks: {error}") from None

    @classmethod
    def received(cls, data: bytes) -> "Applied":
        """Decode a set that another peer sent, and check its size.

        MessageError if it is malformed, or has more than `MOST_JOBS` jobs or `MOST_CHUNKS` chunks.
        The number of jobs is checked before any job is decoded.
        """
        try:
            found = cls._of(msgspec.msgpack.decode(data, type=_FewPairs))
        except (msgspec.MsgspecError, ValueError, IndexError, DamagedError) as error:
            raise MessageError(
                f"invalid set of chunks, or more than {MOST_JOBS:,} jobs: {error}"
            ) from None
        if len(found) > MOST_CHUNKS:
            raise MessageError(f"a set has {len(found):,} chunks; the limit is {MOST_CHUNKS:,}")
        return found

    @classmethod
    def _of(cls, pairs: _Pairs) -> "Applied":
        sets = {job: BitMap.deserialize(chunks) for job, chunks in pairs}
        if len(sets) < len(pairs) or any(len(job) != JOB_BYTES for job in sets):
            raise DamagedError("invalid set of chunks: a job occurs twice or has an invalid name")
        return cls(sets)


def memory_of(sets: Iterable[Applied], besides: Applied) -> int:
    """Return the approximate memory of some sets, apart from what they share with `besides`."""
    distinct = {id(one): one for one in sets}.values()  # most shards share one set
    each = {id(chunks): chunks for one in distinct for chunks in one._sets.values()}
    for chunks in besides._sets.values():
        each.pop(id(chunks), None)
    return _nbytes(sum(map(len, each.values())), len(each))


def _nbytes(chunks: int, jobs: int) -> int:
    return SET_BYTES * jobs + min(2 * chunks, chunks // 8 + _DENSE * jobs)


def digest_of(parts: bytes) -> bytes:
    """Return the digest of a set, given the digests of its parts."""
    return hashlib.blake2b(parts, digest_size=16).digest()


def differing(parts: bytes, others: bytes) -> list[int]:
    """Return which parts of two sets differ, given the digests of the parts of each."""
    at = range(0, PARTS * PART_BYTES, PART_BYTES)
    both = ((parts[n : n + PART_BYTES], others[n : n + PART_BYTES]) for n in at)
    return [part for part, (one, other) in enumerate(both) if one != other]


def _digest(pairs: _Pairs) -> bytes:
    return hashlib.blake2b(msgspec.msgpack.encode(pairs), digest_size=PART_BYTES).digest()


def withdrawn_of(chunks: BitMap) -> BitMap:
    """Return which chunks of a job were withdrawn, without their withdrawal marks."""
    if not chunks or chunks.max() < WITHDRAWN:  # the usual case
        return BitMap()
    back = chunks.copy()
    back.remove_range(0, WITHDRAWN)
    return back.shift(-WITHDRAWN)


def _is_withdrawn(chunks: BitMap) -> bool:
    """Return whether every chunk of a job is withdrawn."""
    if not chunks or chunks.max() < WITHDRAWN:  # the usual case
        return False
    plain = chunks.copy()
    plain.remove_range(WITHDRAWN, 1 << 32)
    return bool(plain <= withdrawn_of(chunks))


def _mark(job: bytes, chunks: BitMap) -> int:
    return hash((job, len(chunks), chunks.max())) if chunks else 0


def _bytes(chunks: BitMap) -> bytes:
    packed = chunks.copy()  # another thread may be reading the original
    packed.run_optimize()
    data: bytes = packed.serialize()
    return data
