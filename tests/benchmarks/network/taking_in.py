"""What taking whole shards in costs by itself, on one core: the bound of every join.

Bytes of a bare stream are cheap: a connection comes in about two. It must be unpacked, digested,
checked, written down and put into its place, and that is what takes the time.
"""

import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.node.options import Options
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.transfer import Export, Import
from giaann_p2p.store.update import Update
from tests.benchmarks.network.learned import Learned

_JOB = b"a job of 16 byte"


class Alone(NamedTuple):
    """See the module."""

    connections: int
    seconds: float

    @property
    def rate(self) -> float:
        """Connections a second."""
        return self.connections / self.seconds


def alone(work: Learned, layout: Layout) -> Alone:
    """Take in what some chunks come to, shard by shard, from memory onto a disk."""
    owner = _taught(work, layout)
    exports = [Export(owner.content(shard)) for shard in owner.shards.tolist()]
    with (
        TemporaryDirectory(prefix="g") as name,
        Store.at(Path(name, "store"), owner.spec, layout, retain=True) as store,
    ):
        store.hold(owner.shards.tolist())
        began = time.perf_counter()
        for group in _groups(exports):
            store.adopt(*[_arrived(export, store).content() for export in group])
        seconds = time.perf_counter() - began
    return Alone(sum(export.manifest.connections for export in exports), seconds)


def _taught(work: Learned, layout: Layout) -> Store:
    store = Store.in_memory(ModelSpec(), layout)
    every = np.arange(layout.shards).astype(np.uint16)
    store.hold(every.tolist())
    for number, delta in enumerate(work.deltas):
        store.apply([Update(_JOB, number, every, delta)])
    store.compact()
    return store


def _groups(exports: list[Export]) -> Iterator[list[Export]]:
    """Return shards that are made durable together, as many as a peer takes."""
    most, ends = Options().group_connections, np.cumsum([e.manifest.connections for e in exports])
    for _, group in groupby(zip(exports, ends.tolist(), strict=True), lambda one: one[1] // most):
        yield [export for export, _ in group]


def _arrived(export: Export, store: Store) -> Import:
    taken = Import(export.manifest, store.limits)
    for number in taken.missing:
        taken.take(number, export.part(number))
    return taken
