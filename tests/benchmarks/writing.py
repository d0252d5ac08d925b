"""What a store costs: memory, writing, snapshots, recovery. Each function is one process's work."""

import itertools
from collections.abc import Iterator
from pathlib import Path

from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.benchmarks.process import Memory, Taken, timed
from tests.benchmarks.workload import ALL, LAYOUT, SPEC, Chunk, Workload

GROUP = 4
"""Chunks that are made durable at once."""
JOB = b"benchmark".ljust(16)

COST = "a sentence at this size, processor time"

Figures = dict[str, float]


def memory(work: Workload, size: int) -> Figures:
    """Grow a store in memory; bytes a connection."""
    connections = work.sizes[size].connections
    warm(work, size)
    before = Memory()
    store, most = Store.in_memory(SPEC, LAYOUT), 0
    store.hold(ALL.tolist())
    for group in groups(work, size):
        store.apply([update for update, _ in group])
        most = max(most, store.nbytes)
    grown = before.now()
    store.compact()
    return {
        "RAM, accounted": store.nbytes / connections,
        "RAM, measured": before.now() / connections,
        "RAM, measured before it is compacted": grown / connections,
        "RAM, accounted, most while growing": most / connections,
        "RAM, measured, most while growing": before.peak() / connections,
    }


def durable(work: Workload, size: int, directory: Path) -> Figures:
    """Write all to the disk, a group at a time."""
    total, half, encoding = Taken(), Taken(), Taken()
    told, chunks, sentences = work.sizes[size], 0, 0
    with Store.at(directory, SPEC, LAYOUT) as store:
        store.hold(ALL.tolist())
        for group in groups(work, size):
            with timed(encoding):
                updates = [update._replace(parcel=encode(update.delta)) for update, _ in group]
            with timed(total), timed(half if chunks >= told.chunks // 2 else None):
                store.apply(updates)
            if chunks >= told.chunks // 2:
                sentences += sum(count for _, count in group)
            chunks += len(group)
    log = sum(file.stat().st_size for file in directory.glob("log-*"))
    return {
        "apply, durable": told.increments / (total.wall + encoding.wall),
        "apply, processor time": told.increments / (total.cpu + encoding.cpu),
        "apply, processor time, but for encoding": told.increments / total.cpu,
        COST: 1e6 * half.cpu / sentences,
        "a sentence at this size": 1e6 * half.wall / sentences,
        "log": log / told.increments,
    }


def recovery(work: Workload, size: int, directory: Path) -> Figures:
    """Open what `durable` left, make a snapshot of it and open that."""
    told = work.sizes[size]
    figures = {}
    before = Memory()
    with timed() as opened:
        store = Store.at(directory)
    figures["recovery from the log"] = told.connections / opened.wall
    figures["recovery from the log, processor time"] = told.connections / opened.cpu
    figures["RAM, measured, most in recovery from the log"] = before.peak() / told.connections
    held, before = before.now(), Memory()
    with store, timed() as compacted:
        store.compact()
    figures["compaction and snapshot"] = told.connections / compacted.wall
    figures["RAM, measured, most while a snapshot is made"] = (
        held + before.peak()
    ) / told.connections
    snapshot = sum(file.stat().st_size for file in directory.glob("snapshot-*"))
    figures["snapshot"] = snapshot / told.connections
    return figures


def reopened(work: Workload, size: int, directory: Path) -> Figures:
    """Open what `recovery` left: a snapshot."""
    connections = work.sizes[size].connections
    before = Memory()
    with timed() as taken:
        store = Store.at(directory)
    store.close()
    return {
        "recovery from a snapshot": connections / taken.wall,
        "recovery from a snapshot, processor time": connections / taken.cpu,
        "RAM, measured, most in recovery from a snapshot": before.peak() / connections,
        "RAM, measured after recovery": before.now() / connections,
    }


def groups(work: Workload, size: int) -> Iterator[list[tuple[Update, int]]]:
    """Iterate over a size's chunks as updates, with their sentences, some at a time."""
    numbered = enumerate(work.first(size))
    while group := [(_update(i, chunk), chunk.sentences) for i, chunk in _some(numbered)]:
        yield group


def _some(numbered: Iterator[tuple[int, Chunk]]) -> Iterator[tuple[int, Chunk]]:
    return itertools.islice(numbered, GROUP)


def _update(number: int, chunk: Chunk, job: bytes = JOB) -> Update:
    return Update(job, number, ALL, chunk.delta)


def warm(work: Workload, size: int) -> None:
    """Have what is allocated once."""
    store = Store.in_memory(SPEC, LAYOUT)
    store.hold(ALL.tolist())
    store.apply([update for update, _ in next(groups(work, size))])
    store.compact()
