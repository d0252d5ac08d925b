"""An update: what one chunk of a job adds to some shards. And its record in the log."""

import struct
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import DamagedError, UsageError
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store.applied import JOB_BYTES
from giaann_p2p.store.codec.parcel import Limits, decode
from giaann_p2p.store.layout import Shards

_HEAD = struct.Struct(f"<{JOB_BYTES}sII")
_MOST_CHUNKS = 1 << 32
_MOST_UNITS = 1 << 47
"""Well beyond 64 sentences of 1,000 tokens, all of them one word; so sums do not wrap unnoticed."""


class Update(NamedTuple):
    """A chunk's delta for some shards; rows of other shards in it do not count."""

    job: bytes
    chunk: int
    shards: Shards
    """Ascending; also those for which the chunk has nothing."""
    delta: Delta
    parcel: bytes | memoryview = b""
    """The delta as it came, if it came as bytes; else it is made when it is needed."""

    def check(self, spec: ModelSpec) -> None:
        """Raise UsageError for what no update of a model is."""
        if len(self.job) != JOB_BYTES:
            raise UsageError(f"a job is named by {JOB_BYTES} bytes, not {len(self.job)}")
        if not 0 <= self.chunk < _MOST_CHUNKS:
            raise UsageError(f"chunks are numbered from 0 to 2^32 - 1, not {self.chunk}")
        most = max(int(self.delta.strength.max(initial=0)), int(self.delta.count.max(initial=0)))
        if most > _MOST_UNITS:
            raise UsageError(f"no chunk adds as much as {most} to anything")
        check_delta(self.delta, spec)


def check_delta(delta: Delta, spec: ModelSpec) -> None:
    """Raise UsageError for a delta that a store could not read back."""
    if nameless := _nameless(delta):
        raise UsageError(f"a delta lacks the text of {nameless} words of its rows")
    branches, segments = (int(a.max(initial=0)) + 1 for a in (delta.branch, delta.segment))
    if branches > spec.branches or segments > spec.segments:
        raise UsageError(
            f"a delta of {branches} branches and {segments} segments; the store's model has "
            f"{spec.branches} and {spec.segments}"
        )


def _nameless(delta: Delta) -> int:
    rows = (delta.count > 0) | (np.diff(delta.row_starts) > 0)
    words = np.unique(np.concatenate([delta.concept[rows], delta.feature[rows]])).tolist()
    return len(set(words) - delta.names.keys() - {PRIME})


def update_record(update: Update, shards: Shards, parcel: bytes | memoryview) -> bytes:
    """Return what stands in the log for the shards to which the update is new."""
    head = _HEAD.pack(update.job, update.chunk, len(shards))
    return b"".join([head, shards.astype("<u2").tobytes(), parcel])


def update_of(record: memoryview, limits: Limits) -> Update:
    """Read what `update_record` wrote."""
    if len(record) < _HEAD.size:
        raise DamagedError("an update without a head")
    job, chunk, count = _HEAD.unpack_from(record)
    end = _HEAD.size + 2 * count
    if len(record) < end:
        raise DamagedError("an update without its shards")
    shards = np.frombuffer(record[_HEAD.size : end], "<u2").astype(np.uint16)
    return Update(job, chunk, shards, decode(record[end:], limits))
