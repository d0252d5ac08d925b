"""Splits a withdrawal by shard, so that each shard loses exactly what it got from the chunk.

A liar may have sent different deltas under one name to different owners, and an honest peer may
have sent the same chunk to some of them. So each shard subtracts the delta that it remembers, and
uses the one that came with the withdrawal only if it remembers none.
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
"""Returns the remembered parcels of a chunk for some shards."""


class UpdatePart(NamedTuple):
    """An update that a store receives, or a part of one."""

    at: int
    """The index of the update."""
    update: Update
    parcel: bytes | memoryview
    is_own: bool = False
    """Whether this part withdraws a delta that other owners got differently; it is not passed
    on."""


def as_it_came(
    told: UpdatePart, remembered: Remembered, limits: Limits, layout: Layout
) -> Iterator[UpdatePart]:
    """Split a withdrawal: shards that remember another delta of the chunk withdraw that one.

    An update that is no withdrawal is yielded unchanged.
    """
    at, update, parcel, _ = told
    if update.chunk < WITHDRAWN:
        yield told
        return
    left = update.shards
    for own in remembered(update.job, update.chunk - WITHDRAWN, left):
        if own.seal.words != update.seal.words:
            left = left[~among(left, own.shards)]
            delta = decode(own.data, limits)
            mine = update._replace(shards=own.shards, delta=delta, parcel=b"", seal=own.seal)
            yield UpdatePart(at, mine, own.data, is_own=True)
    if len(left) == len(update.shards):
        yield told
    elif len(left):
        seal = narrowed(update.seal, update.delta, update.shards, left, layout)
        yield UpdatePart(at, update._replace(shards=left, seal=seal), parcel)


def released_at_once(new: Iterable[tuple[UpdatePart, Shards]]) -> list[tuple[int, bytes]]:
    """Return RELEASE records for own withdrawals: a reopened store does not pass these on."""
    return [
        (Kind.RELEASE, release_record(one.update.job, BitMap([one.update.chunk]), fresh))
        for one, fresh in new
        if one.is_own
    ]


def by_update(count: int, told: Sequence[UpdatePart], planned: Sequence[Shards]) -> list[Shards]:
    """Return, for each of `count` updates, the planned shards of all its parts together."""
    if len(told) == count:
        return list(planned)
    parts: list[list[Shards]] = [[] for _ in range(count)]
    for one, fresh in zip(told, planned, strict=True):
        parts[one.at].append(fresh)
    return [np.sort(np.concatenate(some)) for some in parts]
