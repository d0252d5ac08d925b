"""Content from hostile peers whose strengths add up to almost too much."""

from dataclasses import replace

import numpy as np
import pytest
from pyroaring import BitMap

from giaann_p2p.errors import UsageError
from giaann_p2p.model.delta import Delta
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.content import Content
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.fsck import fsck
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import MOST_HELD, rows_for
from tests.helpers import SMALL
from tests.helpers_store import lessons, state_of

LAYOUT = Layout(shards=4)
MANY = lessons(300)
"""Chunks enough for a shard to have the 128 connections that add up to 2^60."""


@pytest.fixture(scope="module")
def big() -> dict[int, Delta]:
    """For each shard, rows whose strengths add up to nearly the most that is let in."""
    learned = Store.in_memory(SMALL, LAYOUT)
    learned.hold(range(4))
    learned.apply([one.update(range(4)) for one in MANY])
    return {shard: heavy(learned.content(shard).delta) for shard in range(4)}


def heavy(delta: Delta) -> Delta:
    each = min(MOST_HELD, (1 << 60) // max(1, delta.connections + 1))
    return replace(delta, strength=np.full(delta.connections, each))


def from_liar(shard: int, delta: Delta, job: int = 1) -> Content:
    """Return content of one shard that has applied one chunk of a job."""
    return Content(np.array([shard], np.uint16), [Applied({bytes([job]) * 16: BitMap([1])})], delta)


def test_a_part_that_does_not_fit_one_parcel_is_divided(
    big: dict[int, Delta], disk: FakeDisk
) -> None:
    """More shards in one part of a snapshot than a parcel of 63 bits can hold."""
    layout = LAYOUT.with_shards(64)
    store = Store.open(disk, SMALL, layout)
    store.hold(range(64))
    taken = 0
    for shard in range(64):
        delta = rows_for(big[shard % 4], np.array([shard], np.uint16), layout)
        if delta.connections:
            store.adopt(from_liar(shard, heavy(delta)))
            taken += int(heavy(delta).strength.sum())
    assert taken >= 1 << 63
    store.snapshot()
    assert fsck(disk).problems == []
    assert state_of(Store.open(disk, readonly=True)) == state_of(store)
    store.compact()


def test_content_that_grows_too_large_is_refused(big: dict[int, Delta], disk: FakeDisk) -> None:
    """Contents without a common chunk are added; the sum leaves room for updates."""
    store = Store.open(disk, SMALL, LAYOUT)
    store.hold(range(4))
    shard = max(big, key=lambda number: big[number].connections)
    for job in range(1, 5):
        store.adopt(from_liar(shard, big[shard], job))
    with pytest.raises(UsageError, match="merged content's strengths or counts add up to too much"):
        store.adopt(from_liar(shard, big[shard], 5))
    store.apply([one.update(range(4)) for one in MANY])
    store.snapshot()
    assert state_of(Store.open(disk, readonly=True)) == state_of(store)
