"""Parcels: the encoding of a delta, in one form for log, snapshots and wire.

    magic, format     4 + 1 bytes
    checksum          16 bytes, xxh3_128 of all that follows
    sizes             neurons, connections, words, bytes of text, branches, segments
    body              the thirteen arrays of `Words`, counts, `Links` and `Strengths`

Format 1 had no words of the vocabulary: its body lacks the first array. It is still read, because
older releases wrote it to logs, snapshots and cold copies.

Equal deltas have equal parcels, as long as zstd is the same version. Names without a neuron in the
delta are left out. `decode` is total: for any bytes it returns a delta that satisfies all
invariants of deltas, or raises DamagedError, and its limits bound the memory that it takes. The
checksum detects faults of disk and wire. The check of the invariants protects against a sender that
computes valid checksums over invalid data. `encode` trusts its delta.
"""

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import xxhash

from giaann_p2p.errors import DamagedError
from giaann_p2p.model.delta import EMPTY, Delta
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.codec.arrays import pack, unpack
from giaann_p2p.store.codec.damage import check
from giaann_p2p.store.codec.links import Links, Shape, linked, reached, shape_of
from giaann_p2p.store.codec.strengths import TABLE, Strengths
from giaann_p2p.store.codec.words import Words, neurons, worded

FORMAT = 2
_BEFORE = 1
_MAGIC = b"GIAd"
_HEAD = struct.Struct("<4sB16s")
_SIZES = struct.Struct("<IIIIHH")
_STEPS = "as narrow as may be"
_NO_WORDS = np.empty(0, np.uint32)
_TYPES = ("u4", "u8", "u4", "u1", "u4", "u4", "i8", "u4", "u4", _STEPS, "i8", "u1", "i8")
_DTYPES = {name: np.dtype(name) for name in set(_TYPES) - {_STEPS}}
_SUM_BITS = 63
_SLOT_BITS = 31
_MOST_PLACES = 256
_SMALL = 1 << 14
"""The most bytes of a parcel and its decoded delta together for the delta to be cached."""
_REMEMBERED = 1 << 10
"""The most decoded deltas to cache; they take some 4 MB, and 16 MB at most."""


@dataclass(frozen=True)
class Limits:
    """Upper bounds for the contents of a parcel; the model fixes its branches and segments."""

    branches: int
    segments: int
    neurons: int
    connections: int
    text: int = 1 << 24
    """The most bytes of text of all words together."""


class Bounded(Protocol):
    """The stated sizes of a parcel or sheaf, which `check_sizes` compares with limits."""

    @property
    def neurons(self) -> int:
        """The number of neurons."""
        ...

    @property
    def words(self) -> int:
        """The number of words."""
        ...

    @property
    def branches(self) -> int:
        """The number of branches."""
        ...

    @property
    def segments(self) -> int:
        """The number of segments of a branch."""
        ...


class Sizes(NamedTuple):
    """The sizes that a parcel states in its head; `text` is in bytes."""

    neurons: int
    connections: int
    words: int
    text: int
    branches: int
    segments: int


def encode(delta: Delta) -> bytes:
    """Encode a delta as a parcel; OverflowError if its counts or strengths sum to over 63 bits."""
    return _NOTHING if delta is EMPTY else _encoded(delta)


def _encoded(delta: Delta) -> bytes:
    if not (adds_up(delta.count) and adds_up(delta.strength)):
        raise OverflowError("a delta's counts or strengths add up to more than 63 bits")
    shape = shape_of(delta)
    words, (links, strengths) = worded(delta), linked(delta, shape)
    sizes = Sizes(delta.neurons, delta.connections, len(words.lengths), len(words.texts), *shape)
    body = _SIZES.pack(*sizes) + pack([*words, delta.count, *links, *strengths])
    return _HEAD.pack(_MAGIC, FORMAT, xxhash.xxh3_128_digest(body)) + body


def decode(data: bytes | memoryview, limits: Limits) -> Delta:
    """Decode a parcel's delta; DamagedError if the parcel is invalid or exceeds the limits.

    The deltas of short parcels are cached, because owners send each other the same ones many times:
    a chunk's part for one shard is short or empty. Sharing is safe, because deltas never change.
    """
    if len(data) + memory_of(data) > _SMALL:
        return _decoded(data, limits)
    return _decoded_or_remembered(bytes(data), limits)


def _decoded(data: bytes | memoryview, limits: Limits) -> Delta:
    sizes = sizes_of(data)
    check_sizes(sizes, limits)
    _check_sum(data)
    before = data[len(_MAGIC)] == _BEFORE
    start = _HEAD.size + _SIZES.size
    arrays = unpack(data, len(_TYPES) - before, _most_items(sizes), start)
    arrays[:0] = [_NO_WORDS] * before
    shape = Shape(sizes.branches, sizes.segments)
    _check_arrays(arrays, sizes, shape)
    words, count, links = Words(*arrays[:6]), arrays[6], Links(*arrays[7:10])
    check(count.min(initial=0) >= 0, "a count is below 0")
    concept, feature, names = neurons(words)
    connections = reached(links, Strengths(*arrays[10:]), shape)
    check(
        adds_up(count) and adds_up(connections.strength),
        "the sum of counts or strengths exceeds 63 bits",
    )
    return Delta(concept, feature, count, *connections, names)


def memory_of(data: bytes | memoryview) -> int:
    """Return the approximate bytes of memory that a parcel's decoded delta keeps in use.

    They include its objects, its arrays, its names, and the cached leaves of its seal.
    """
    sizes = sizes_of(data)
    rows = 32 * sizes.neurons + 20 * sizes.connections
    return 1500 + rows + 150 * sizes.words + sizes.text + 180 * sizes.neurons


_decoded_or_remembered = lru_cache(maxsize=_REMEMBERED)(_decoded)


def sizes_of(data: bytes | memoryview) -> Sizes:
    """Return the sizes that a parcel states in its first bytes; they are not checked."""
    check(len(data) >= _HEAD.size + _SIZES.size, f"not a parcel: only {len(data)} bytes")
    magic, version, _ = _HEAD.unpack_from(data)
    check(magic == _MAGIC, "not a parcel: it starts with other bytes")
    check(
        version in (_BEFORE, FORMAT),
        f"the parcel has format {version}; this version reads {_BEFORE} and {FORMAT}",
    )
    return Sizes(*_SIZES.unpack_from(data, _HEAD.size))


def check_sizes(sizes: Bounded, limits: Limits) -> None:
    """Raise DamagedError for sizes beyond the limits, or beyond what the format's indices hold."""
    for name in Limits.__dataclass_fields__:
        size, most = getattr(sizes, name), getattr(limits, name)
        check(size <= most, f"{name}: {size} is above the limit of {most}")
    check(sizes.neurons < 1 << _SLOT_BITS, f"{sizes.neurons} neurons are too many for one delta")
    for places in (sizes.branches, sizes.segments):
        check(
            0 < places <= _MOST_PLACES,
            f"{places} branches or segments; 1 to {_MOST_PLACES} are allowed",
        )
    check(sizes.words <= 2 * sizes.neurons, "there are more words than the neurons can have")


def _check_sum(data: bytes | memoryview) -> None:
    _, _, wanted = _HEAD.unpack_from(data)
    found = xxhash.xxh3_128_digest(memoryview(data)[_HEAD.size :])
    if found != wanted:
        raise DamagedError(f"the checksum of a parcel of {len(data)} bytes is wrong")


def _most_items(sizes: Sizes) -> int:
    words = 2 * sizes.words + sizes.text
    return words + 4 * sizes.neurons + 4 * sizes.connections + TABLE


def _check_arrays(arrays: list[npt.NDArray[Any]], sizes: Sizes, shape: Shape) -> None:
    names = [*Words._fields, "counts", *Links._fields, *Strengths._fields]
    for array, name, wanted in zip(arrays, names, _TYPES, strict=True):
        dtype = shape.dtype if wanted == _STEPS else _DTYPES[wanted]
        if array.dtype != dtype:  # not `check`, whose message would be formatted each time
            raise DamagedError(f"the array of {name} has type {array.dtype}, not {dtype}")
    stated = (None, None, sizes.words, sizes.text, *[sizes.neurons] * 4, None, sizes.connections)
    for array, name, size in zip(arrays, names, stated, strict=False):
        if size not in (None, len(array)):
            raise DamagedError(f"the length of {name} is {len(array)}, not {size}")


def adds_up(values: Ints) -> bool:
    """Return whether the sum of some numbers fits 63 bits; none may be negative."""
    if int(values.max(initial=0)) * len(values) >> _SUM_BITS == 0:
        return True
    high, low = int((values >> 32).sum()), int((values & 0xFFFFFFFF).sum())
    return (high << 32) + low >> _SUM_BITS == 0


_NOTHING = _encoded(EMPTY)  # most chunks have no rows for most shards of a large swarm
