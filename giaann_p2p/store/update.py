"""Updates: what one chunk of a job adds to some shards, and its record in the log."""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import DamagedError, UsageError
from giaann_p2p.model.delta import EMPTY, Delta
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.learn import increment
from giaann_p2p.model.spec import CHUNK, ModelSpec
from giaann_p2p.store.applied import JOB_BYTES
from giaann_p2p.store.codec.parcel import Limits, decode, encode
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.seal import UNSEALED, Seal, narrowed

_HEAD = struct.Struct(f"<{JOB_BYTES}sIIHII")
_MOST_CHUNKS = 1 << 32
_FEW = 1 << 9
"""The most neurons and connections of a delta whose parts are cached: owners that were cut off
request the same part, one after the other."""
_REMEMBERED = 512
"""The most parts in that cache; with their deltas, 8 MB at most."""
MOST_HELD = 1 << 53
"""The largest strength or count that content from elsewhere may have; an honest sum reaches it
after 10^10 chunks."""


class Update(NamedTuple):
    """A chunk's delta for some shards; rows of other shards in the delta are ignored."""

    job: bytes
    chunk: int
    shards: Shards
    """The shards' numbers, ascending; includes shards for which the chunk has no rows."""
    delta: Delta
    parcel: bytes | memoryview = b""
    """The delta's encoding, if it was received as bytes; else it is encoded when needed."""
    seal: Seal = UNSEALED
    """The proof of which peers learned the chunk."""

    @classmethod
    def received(
        cls,
        job: bytes,
        chunk: int,
        shards: Shards,
        parcel: bytes | memoryview,
        limits: Limits,
        seal: Seal = UNSEALED,
    ) -> "Update":
        """Return an update received as bytes, decoded; DamagedError if it is no valid parcel."""
        return cls(job, chunk, shards, decode(parcel, limits), parcel, seal)

    def check(self, spec: ModelSpec) -> None:
        """Raise UsageError if this cannot be an update of a model."""
        if len(self.job) != JOB_BYTES:
            raise UsageError(f"a job is named by {JOB_BYTES} bytes, not {len(self.job)}")
        if not 0 <= self.chunk < _MOST_CHUNKS:
            raise UsageError(f"chunks are numbered from 0 to 2^32 - 1, not {self.chunk}")
        if np.any(self.shards[1:] <= self.shards[:-1]):
            raise UsageError("an update's shards are to be ascending")
        check_delta(self.delta, spec, _most_units(spec))


def anything(update: Update) -> None:
    """Accept every update: the default for `Packed.check`."""


class Packed(NamedTuple):
    """An update as received, not decoded yet: decoding is slow, and may run in any thread."""

    job: bytes
    chunk: int
    shards: Shards
    """The shards of `told` that are held here."""
    parcel: bytes | memoryview
    limits: Limits
    """The limits of the parcel's sizes."""
    layout: Layout
    told: Shards
    """All shards that the update was sent for."""
    seal: Seal = UNSEALED
    check: Callable[[Update], None] = anything
    """Raises a GiaannError for an update without the vouchers that it needs."""

    def unpacked(self) -> Update:
        """Decode and check the update; DamagedError if it is malformed, or the error of `check`."""
        update = Update.received(
            self.job, self.chunk, self.told, self.parcel, self.limits, self.seal
        )
        self.check(update)
        seal = narrowed(self.seal, update.delta, self.told, self.shards, self.layout)
        return update._replace(shards=self.shards, seal=seal)


def check_delta(delta: Delta, spec: ModelSpec, most: int = MOST_HELD) -> None:
    """Raise UsageError for a delta that a store could not read back, or with too large a value.

    The order of a delta is not checked: a delta that was made here is trusted, and one that was
    received as bytes was checked by `decode`.
    """
    if not (delta.neurons or delta.connections):
        return
    if nameless := _nameless(delta):
        raise UsageError(f"a delta lacks the text of {nameless} words of its rows")
    branches, segments = (int(a.max(initial=0)) + 1 for a in (delta.branch, delta.segment))
    if branches > spec.branches or segments > spec.segments:
        raise UsageError(
            f"a delta of {branches} branches and {segments} segments; the store's model has "
            f"{spec.branches} and {spec.segments}"
        )
    if delta.connections and not 0 <= delta.target.min() <= delta.target.max() < delta.neurons:
        raise UsageError("a delta with a connection to a neuron that it does not have")
    least = min(int(delta.strength.min(initial=1)) - 1, int(delta.count.min(initial=0)))
    highest = max(int(delta.strength.max(initial=0)), int(delta.count.max(initial=0)))
    if least < 0 or highest > most:
        raise UsageError(f"a delta that adds {least} or {highest} to something; at most {most} may")


def _most_units(spec: ModelSpec) -> int:
    """Return the most that a chunk can add to a value: by longest sentences, all of one word."""
    return CHUNK * spec.max_tokens * spec.max_tokens // 2 * increment(1)


def _nameless(delta: Delta) -> int:
    rows = (delta.count > 0) | (delta.lengths > 0)
    words = {*delta.concept[rows].tolist(), *delta.feature[rows].tolist()}
    named = {word for word, text in delta.names.items() if text}
    return len(words - named - {PRIME})


def update_record(
    update: Update, shards: Shards, parcel: bytes | memoryview, layout: Layout
) -> bytes:
    """Return an update's log record, for the shards to which it is new."""
    seal = narrowed(update.seal, update.delta, update.shards, shards, layout)
    head = _HEAD.pack(update.job, update.chunk, len(shards), *map(len, seal))
    return b"".join([head, shards.astype("<u2").tobytes(), *seal, parcel])


def head_size(shards: int) -> int:
    """Return how many bytes precede the seal in the record of an update for this many shards."""
    return _HEAD.size + 2 * shards


def update_head(record: memoryview) -> tuple[bytes, int, Shards]:
    """Decode the fields before the seal: the job, the chunk, and the shards."""
    job, chunk, count, *_ = _head(record)
    end = head_size(count)
    if len(record) < end:
        raise DamagedError("an update without its shards")
    return job, chunk, np.frombuffer(record[_HEAD.size : end], "<u2").astype(np.uint16)


def update_of(record: memoryview, limits: Limits) -> Update:
    """Decode what `update_record` returned."""
    job, chunk, shards = update_head(record)
    seal, parcel = _sealed(record)
    return Update(job, chunk, shards, decode(parcel, limits), parcel, seal)


def _head(record: memoryview) -> tuple[bytes, int, int, list[int]]:
    """Return job, chunk, the number of shards, and the sizes of a seal's parts."""
    if len(record) < _HEAD.size:
        raise DamagedError("an update without a head")
    job, chunk, count, *sizes = _HEAD.unpack_from(record)
    return job, chunk, count, sizes


def _sealed(record: memoryview) -> tuple[Seal, memoryview]:
    """Return the seal of a record, and the parcel after it."""
    _, _, count, sizes = _head(record)
    at, parts = head_size(count), list[bytes]()
    if len(record) < at + sum(sizes):
        raise DamagedError("an update without its seal")
    for size in sizes:
        parts.append(bytes(record[at : at + size]))
        at += size
    return Seal(*parts), record[at:]


class Parcel(NamedTuple):
    """A kept update for some of its shards, in the form in which it is sent."""

    shards: Shards
    data: bytes
    seal: Seal
    unpacked: int
    """The number of bytes unpacked to make the parcel; 0 if the record is passed on unchanged."""


def parcel_of(record: memoryview, shards: Shards, limits: Limits, layout: Layout) -> Parcel:
    """Return a record's parcel for some of its shards; for all of them it is not unpacked."""
    _, _, told = update_head(record)
    if len(shards) == len(told):
        seal, parcel = _sealed(record)
        return Parcel(shards, bytes(parcel), seal, 0)
    update = update_of(record, limits)
    seal = narrowed(update.seal, update.delta, told, shards, layout)
    delta = update.delta
    few = delta.neurons + delta.connections <= _FEW
    part = (_part_again if few else _part)(delta, shards.tobytes(), layout)
    return Parcel(shards, part, seal, len(record))


def _part(delta: Delta, shards: bytes, layout: Layout) -> bytes:
    """Return the parcel of a delta's rows for some shards."""
    return encode(_cut(delta, np.frombuffer(shards, np.uint16), layout))


_part_again = lru_cache(maxsize=_REMEMBERED)(_part)


def cut(update: Update, shards: Shards, layout: Layout) -> Update:
    """Return an update for some of its shards, without the rows of others."""
    delta = _cut(update.delta, shards, layout)
    if delta is update.delta:
        return update._replace(shards=shards)
    return Update(update.job, update.chunk, shards, delta)


def _cut(delta: Delta, shards: Shards, layout: Layout) -> Delta:
    """Return a delta's rows for some shards; the same object if it has no other rows."""
    rows = (delta.count > 0) | (delta.lengths > 0)
    chosen = np.zeros(layout.shards, np.bool_)
    chosen[shards] = True
    wanted = rows & chosen[layout.shards_of(delta.concept, delta.feature)]
    if not wanted.any():
        return EMPTY
    return delta if np.array_equal(wanted, rows) else delta.only(wanted)
