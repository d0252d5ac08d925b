"""What a store is told, update by update; of a withdrawal, shard by shard what it takes away there.

A shard lets go of what it got from a chunk, whoever tells it to: a liar may have told owners
different things under one name, or somebody honest the same chunk to some. So what is remembered of
the chunk counts, and what comes with the withdrawal only where nothing is.
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
"""Returns what is at hand of a chunk for some shards."""


class Told(NamedTuple):
    """An update that a store is told, or a part of one."""

    at: int
    """Which one it is."""
    update: Update
    parcel: bytes | memoryview
    is_own: bool = False
    """Whether it withdraws what came otherwise to others, so that it is not passed on."""


def as_it_came(
    told: Told, remembered: Remembered, limits: Limits, layout: Layout
) -> Iterator[Told]:
    """Return a withdrawal of just what was added here, as far as that is known to be another."""
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
            yield Told(at, mine, own.data, is_own=True)
    if len(left) == len(update.shards):
        yield told
    elif len(left):
        seal = narrowed(update.seal, update.delta, update.shards, left, layout)
        yield Told(at, update._replace(shards=left, seal=seal), parcel)


def released_at_once(new: Iterable[tuple[Told, Shards]]) -> list[tuple[int, bytes]]:
    """Return the records by which a store that is opened again knows what not to pass on."""
    return [
        (Kind.RELEASE, release_record(one.update.job, BitMap([one.update.chunk]), fresh))
        for one, fresh in new
        if one.is_own
    ]


def by_update(count: int, told: Sequence[Told], planned: Sequence[Shards]) -> list[Shards]:
    """Return for each of so many updates what is planned for its parts."""
    if len(told) == count:
        return list(planned)
    parts: list[list[Shards]] = [[] for _ in range(count)]
    for one, fresh in zip(told, planned, strict=True):
        parts[one.at].append(fresh)
    return [np.sort(np.concatenate(some)) for some in parts]
