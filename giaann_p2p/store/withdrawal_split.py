"""Splits a withdrawal by shard, so that each shard loses exactly what it got from the chunk.

A lying peer may have sent different deltas of one chunk to different owners, and an honest peer may
have sent the same chunk to some of them. So each shard subtracts the delta that its store archived
for it; without one, it subtracts the delta that came with the withdrawal.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from pyroaring import BitMap

from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.codec.parcel import Limits, decode
from giaann_p2p.store.layout import Layout, Shards, among
from giaann_p2p.store.records import Kind, release_record
from giaann_p2p.store.seal import narrowed
from giaann_p2p.store.update import Parcel, Update

Remembered = Callable[[bytes, int, Shards], Iterable[Parcel]]
"""Returns the archived parcels of a chunk for some shards; takes job, chunk and shards."""


class UpdatePart(NamedTuple):
    """A received update, or the part of it that concerns some of its shards."""

    at: int
    """The index of the received update that this is, or is a part of."""
    update: Update
    parcel: bytes | memoryview
    is_own: bool = False
    """Whether this part withdraws this store's own version of the delta. Such a part is not passed
    on, because other owners may have another version."""


def as_it_came(
    received: UpdatePart, remembered: Remembered, limits: Limits, layout: Layout
) -> Iterator[UpdatePart]:
    """Split a withdrawal: shards that archived another delta of the chunk withdraw that delta.

    An update that is not a withdrawal is yielded unchanged.
    """
    at, update, parcel, _ = received
    if update.chunk < WITHDRAWN:
        yield received
        return
    left = update.shards
    for own in remembered(update.job, update.chunk - WITHDRAWN, left):
        if own.seal.words != update.seal.words:
            left = left[~among(left, own.shards)]
            delta = decode(own.data, limits)
            mine = update._replace(shards=own.shards, delta=delta, parcel=b"", seal=own.seal)
            yield UpdatePart(at, mine, own.data, is_own=True)
    if len(left) == len(update.shards):
        yield received
    elif len(left):
        seal = narrowed(update.seal, update.delta, update.shards, left, layout)
        yield UpdatePart(at, update._replace(shards=left, seal=seal), parcel)


def released_at_once(new: Iterable[tuple[UpdatePart, Shards]]) -> list[tuple[int, bytes]]:
    """Return RELEASE records for withdrawals of this store's own versions of deltas.

    They ensure that a reopened store does not pass these withdrawals on.
    """
    return [
        (Kind.RELEASE, release_record(one.update.job, BitMap([one.update.chunk]), fresh))
        for one, fresh in new
        if one.is_own
    ]


def by_update(count: int, parts: Sequence[UpdatePart], planned: Sequence[Shards]) -> list[Shards]:
    """Return for each of `count` updates the planned shards of all its parts, ascending."""
    if len(parts) == count:
        return list(planned)
    found: list[list[Shards]] = [[] for _ in range(count)]
    for one, fresh in zip(parts, planned, strict=True):
        found[one.at].append(fresh)
    return [np.sort(np.concatenate(some)) for some in found]
