"""Stores that keep deltas until they are released, and what they are told."""

import re
from collections.abc import Iterable

from pyroaring import BitMap

from giaann_p2p.errors import DamagedError
from giaann_p2p.store.budget import Budget
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.helpers import SMALL
from tests.helpers_store import JOB, lessons, plain_store, rows_of
from tests.plain import store as plain

LAYOUT = Layout(shards=4)
ALL = range(4)
LESSONS = lessons(12, seed=5)
OLD = "log-00000001"


def numbers(*chunks: int) -> BitMap:
    return BitMap(chunks)


def told(*chosen: int, shards: Iterable[int] = ALL) -> list[Update]:
    return [LESSONS[i].update(shards) for i in chosen]


def begun(disk: FakeDisk | None = None, budget: Budget | None = None) -> Store:
    """Return a store that retains and holds all shards, on a disk or in memory."""
    store = Store.in_memory(SMALL, LAYOUT, budget, retain=True)
    if disk:
        store = Store.open(disk, SMALL, LAYOUT, budget=budget, retain=True)
    store.hold(ALL)
    return store


def yardstick() -> plain.Store:
    """Return a store that was told everything."""
    expected = plain_store(LAYOUT, retain=True)
    expected.hold(ALL)
    for one in LESSONS:
        expected.apply(one.chunk, ALL, one.rows)
    return expected


def logs(disk: FakeDisk) -> list[int]:
    return [int(name[4:]) for name in disk.names() if name.startswith("log-")]


def recalled(store: Store, chunk: int, expected: plain.Store) -> bool:
    """Recall a chunk, which comes as it was told, or not at all, and then not ever."""
    told = ""
    try:
        found = store.recall(JOB, chunk, ALL)
    except DamagedError as error:
        told = str(error)
    if told:
        assert re.match(r"log-0000000[12] is damaged at byte [\d,]+: ", told)
        assert chunk not in store.retained(JOB)
        assert store.recall(JOB, chunk, ALL) == []
        return False
    assert found or chunk not in store.retained(JOB)
    for update in found:
        shards = update.shards.tolist()
        rows = LESSONS[chunk].rows.items()
        wanted = {neuron: row for neuron, row in rows if expected.shard_of(neuron) in shards}
        assert rows_of(update.delta) == wanted
    return sorted(n for update in found for n in update.shards.tolist()) == list(ALL)


def learned(*chosen: int, shards: Iterable[int] = ALL) -> Store:
    store = Store.in_memory(SMALL, LAYOUT)
    store.hold(shards)
    store.apply(told(*chosen, shards=shards))
    return store
