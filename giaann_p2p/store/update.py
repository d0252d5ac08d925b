"""Updates: what one chunk of a job adds to some shards, and how the log records it.

If the layout was doubled after an update was sealed, its rows are those of its shards' *cover* (see
`seal`), so that each holder of a part of the cover can verify them, keep them and pass them on.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import DamagedError, UsageError
from giaann_p2p.model.delta import EMPTY, Delta
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.spec import MOST_CHUNK, ModelSpec, increment
from giaann_p2p.store.applied import JOB_BYTES
from giaann_p2p.store.codec.parcel import Limits, decode, encode
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.seal import UNSEALED, Seal, narrowed

_HEAD = struct.Struct(f"<{JOB_BYTES}sIIHII")
_COUNT = JOB_BYTES + 4
"""The offset of the number of shards in a record."""
_DOUBLINGS_AT = 24
"""From this bit on, a record's number of shards states how often the layout of these shards was
doubled. So records do not change before the first doubling."""
_MOST_CHUNKS = 1 << 32
_FEW = 1 << 9
"""The most neurons and connections together of a delta whose encoded parts are cached. The cache
helps because owners that were cut off request the same part, one after the other."""
_REMEMBERED = 512
"""The most encoded parts of deltas to cache; with their deltas they take 8 MB at most."""
MOST_HELD = 1 << 53
"""The largest strength or count in content that another store sends; an honest sum reaches it after
10^10 chunks."""
_MOST_IN_ALL = 1 << 60
"""The most that the strengths, or the counts, of an update or of content from elsewhere may add up
to: a snapshot cannot hold a shard with eight times as much."""
_MOST_UNITED = 1 << 62
"""The most that they may add up to in content from elsewhere together with what is here. A snapshot
can hold twice as much of a shard; the rest is left for updates."""
_SUMS = 8
"""A pair of tokens adds to two segments at most, in a column and also in the rows that ignore
columns; the counts of tokens come on top. So all sums together are at most so many times one."""


class Update(NamedTuple):
    """A chunk's delta for some shards; the delta's rows for other shards are ignored."""

    job: bytes
    chunk: int
    shards: Shards
    """The numbers of the shards, in the store's layout, ascending. The chunk may have no rows for
    some of them."""
    delta: Delta
    parcel: bytes | memoryview = b""
    """The encoded delta, if it was received as bytes; otherwise empty, and encoded when needed."""
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
        """Decode an update received as bytes; DamagedError if the parcel is invalid."""
        return cls(job, chunk, shards, decode(parcel, limits), parcel, seal)

    def check(self, spec: ModelSpec) -> None:
        """Raise UsageError unless this can be an update of a model with this spec.

        Its chunk may be of any size: a swarm's chunks may grow (see `swarm.wire.edition`).
        """
        if len(self.job) != JOB_BYTES:
            raise UsageError(f"a job's name must have {JOB_BYTES} bytes, not {len(self.job)}")
        if not 0 <= self.chunk < _MOST_CHUNKS:
            raise UsageError(f"chunks are numbered from 0 to 2^32 - 1, not {self.chunk}")
        if np.any(self.shards[1:] <= self.shards[:-1]):
            raise UsageError("an update's shards must be ascending")
        check_delta(self.delta, spec, most_units(spec, MOST_CHUNK))


def anything(update: Update) -> None:
    """Accept every update; this is the default of `Packed.check`."""


class Packed(NamedTuple):
    """A received update that is not decoded yet; decoding is slow, and may run in any thread."""

    job: bytes
    chunk: int
    shards: Shards
    """The numbers of those shards of `told` that are held here, ascending."""
    parcel: bytes | memoryview
    limits: Limits
    """The limits that the parcel's sizes must keep."""
    layout: Layout
    told: Shards
    """The numbers of all shards that the update was sent for, ascending."""
    seal: Seal = UNSEALED
    check: Callable[[Update], None] = anything
    """A function that raises a GiaannError if an update lacks vouchers that it needs."""

    def unpacked(self) -> Update:
        """Decode and check the update, and cut its seal to the shards held here.

        DamagedError if the update is malformed; also any error that `check` raises.
        """
        update = Update.received(
            self.job, self.chunk, self.told, self.parcel, self.limits, self.seal
        )
        self.check(update)
        seal = narrowed(self.seal, update.delta, self.told, self.shards, self.layout)
        return update._replace(shards=self.shards, seal=seal)


def check_delta(delta: Delta, spec: ModelSpec, most: int = MOST_HELD) -> None:
    """Raise UsageError if a store could not read a delta back, or if a value is above `most`.

    The order of the delta's rows is not checked: a delta made by this process is trusted, and one
    that was received as bytes was checked by `decode`.
    """
    if not (delta.neurons or delta.connections):
        return
    if nameless := _nameless(delta):
        raise UsageError(f"a delta lacks the text of {nameless} words of its rows")
    branches, segments = (int(a.max(initial=0)) + 1 for a in (delta.branch, delta.segment))
    if branches > spec.branches or segments > spec.segments:
        raise UsageError(
            f"a delta has {branches} branches and {segments} segments; the store's model has "
            f"{spec.branches} and {spec.segments}"
        )
    if delta.connections and not 0 <= delta.target.min() <= delta.target.max() < delta.neurons:
        raise UsageError("a delta has a connection to a neuron that it lacks")
    if total_of(delta) > _MOST_IN_ALL:
        raise UsageError("a delta's strengths or counts add up to too much")
    least = min(int(delta.strength.min(initial=1)) - 1, int(delta.count.min(initial=0)))
    if least < 0 or strongest(delta) > most:
        raise UsageError(f"a delta's strengths must be 1 to {most}, its counts 0 to {most}")


def check_united(delta: Delta) -> None:
    """Raise UsageError if content from elsewhere, merged with what is here, adds up to too much."""
    if total_of(delta) > _MOST_UNITED:
        raise UsageError("merged content's strengths or counts add up to too much")


def strongest(delta: Delta) -> int:
    """Return the highest strength or count of a delta."""
    return max(int(delta.strength.max(initial=0)), int(delta.count.max(initial=0)))


def total_of(delta: Delta) -> float:
    """Return what a delta's strengths add up to, or its counts, whichever is more; nearly exact."""
    return float(max(each.sum(dtype=np.float64) for each in (delta.strength, delta.count)))


def most_in_all(spec: ModelSpec, sentences: int) -> int:
    """Return the most that a chunk of this many sentences can add to all strengths together."""
    return _SUMS * most_units(spec, sentences)


def most_units(spec: ModelSpec, sentences: int) -> int:
    """Return the most that a chunk of this many sentences can add to one strength or count.

    The extreme case is a chunk of sentences of the greatest length, all of one word.
    """
    return sentences * spec.max_tokens * spec.max_tokens // 2 * increment(1)


def _nameless(delta: Delta) -> int:
    rows = (delta.count > 0) | (delta.lengths > 0)
    words = {*delta.concept[rows].tolist(), *delta.feature[rows].tolist()}
    named = {word for word, text in delta.names.items() if text}
    return len(words - named - {PRIME})


def update_record(
    update: Update, shards: Shards, parcel: bytes | memoryview, layout: Layout
) -> bytes:
    """Encode an update as a log record, for the given shards, to which it is new."""
    seal = narrowed(update.seal, update.delta, update.shards, shards, layout)
    count = len(shards) | layout.doublings << _DOUBLINGS_AT
    head = _HEAD.pack(update.job, update.chunk, count, *map(len, seal))
    return b"".join([head, shards.astype("<u2").tobytes(), *seal, parcel])


def head_size(shards: int) -> int:
    """Return how many bytes precede the seal in an update's log record for this many shards."""
    return _HEAD.size + 2 * shards


def update_head(record: memoryview) -> tuple[bytes, int, Shards]:
    """Decode job, chunk and shards from the start of an update's log record.

    The shards are those of the layout in which the record was written (see `doublings_of`).
    """
    job, chunk, count, _ = _head(record)
    end = head_size(count)
    if len(record) < end:
        raise DamagedError("an update's record ends before its shards")
    return job, chunk, np.frombuffer(record[_HEAD.size : end], "<u2").astype(np.uint16)


def doublings_of(record: memoryview) -> int:
    """Return how often the layout was doubled before an update's log record was written."""
    _head(record)
    return int.from_bytes(record[_COUNT : _COUNT + 4], "little") >> _DOUBLINGS_AT


def update_of(record: memoryview, limits: Limits) -> Update:
    """Decode an update from a log record that `update_record` encoded."""
    job, chunk, shards = update_head(record)
    seal, parcel = _sealed(record)
    return Update(job, chunk, shards, decode(parcel, limits), parcel, seal)


def _head(record: memoryview) -> tuple[bytes, int, int, list[int]]:
    """Decode job, chunk, number of shards, and the sizes of the seal's parts from a log record."""
    if len(record) < _HEAD.size:
        raise DamagedError("an update's record ends within its head")
    job, chunk, count, *sizes = _HEAD.unpack_from(record)
    return job, chunk, count & (1 << _DOUBLINGS_AT) - 1, sizes


def _sealed(record: memoryview) -> tuple[Seal, memoryview]:
    """Return the seal in an update's log record, and the parcel that follows it."""
    _, _, count, sizes = _head(record)
    at, parts = head_size(count), list[bytes]()
    if len(record) < at + sum(sizes):
        raise DamagedError("an update's record ends before its seal's end")
    for size in sizes:
        parts.append(bytes(record[at : at + size]))
        at += size
    return Seal(*parts), record[at:]


class Parcel(NamedTuple):
    """An archived update, cut to some of its shards and encoded for sending."""

    shards: Shards
    data: bytes
    """The rows of the cover of these shards."""
    seal: Seal
    unpacked: int
    """The number of bytes that were unpacked to make this parcel; 0 if it was not changed."""


def parcel_of(record: memoryview, shards: Shards, limits: Limits, layout: Layout) -> Parcel:
    """Return the parcel in an update's log record, cut to the cover of some of its shards.

    `shards` are numbered by `layout`, which may have been doubled since the record was written. If
    their cover is that of all of the record's shards, the parcel is returned without unpacking it.
    """
    _, _, told = update_head(record)
    written = layout.doubled(doublings_of(record))
    seal, parcel = _sealed(record)
    made_in = seal.layout(layout)
    covered, part = written.cover(told, made_in), layout.cover(shards, made_in)
    if len(part) == len(covered):
        return Parcel(shards, bytes(parcel), seal, 0)
    delta = decode(parcel, limits)
    seal = narrowed(seal, delta, covered, part, made_in)
    few = delta.neurons + delta.connections <= _FEW
    data = (_part_again if few else _part)(delta, part.tobytes(), made_in)
    return Parcel(shards, data, seal, len(record))


def _part(delta: Delta, shards: bytes, layout: Layout) -> bytes:
    """Encode a delta's rows for some shards as a parcel."""
    return encode(rows_for(delta, np.frombuffer(shards, np.uint16), layout))


_part_again = lru_cache(maxsize=_REMEMBERED)(_part)


def cut(update: Update, shards: Shards, layout: Layout) -> Update:
    """Cut an update to some of its shards: rows of other shards are removed."""
    delta = rows_for(update.delta, shards, layout)
    if delta is update.delta:
        return update._replace(shards=shards)
    return Update(update.job, update.chunk, shards, delta)


def rows_for(delta: Delta, shards: Shards, layout: Layout) -> Delta:
    """Return a delta's rows for some shards; the delta itself if it has no other rows."""
    rows = (delta.count > 0) | (delta.lengths > 0)
    chosen = np.zeros(layout.shards, np.bool_)
    chosen[shards] = True
    wanted = rows & chosen[layout.shards_of(delta.concept, delta.feature)]
    if not wanted.any():
        return EMPTY
    return delta if np.array_equal(wanted, rows) else delta.only(wanted)
