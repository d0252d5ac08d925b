"""Fills a storage peer's store with its part of a made-up model, while the peer is down."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.subwords.tokeniser import tokeniser
from giaann_p2p.solo.brain import Brain
from giaann_p2p.store.layout import Layout, Shards, among
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.benchmarks.vast.copies import Learned, renamed, turned

_JOB = b"a made-up model."
_TURNED = 20
"""How many copies of the rows that ignore columns are made at most. As many as that make the
longest rows lead to most tokens; such a row does not grow any further."""


def fill(folder: Path, brain: Path, copies: int) -> str:
    """Fill the store in a folder with a brain's knowledge, and with so many copies of its columns.

    Returns what it took.
    """
    began = time.perf_counter()
    with Brain.open(brain, readonly=True, device="cpu") as base:
        learned = Learned.of(base.knowledge)
        first = base.knowledge
    with Store.at(folder) as store:
        for chunk, delta in enumerate(_parts(first, learned, copies)):
            here = _part(delta, store.shards, store.layout)
            store.apply([Update(_JOB, chunk, store.shards, here)])
        filled = time.perf_counter()
        store.compact()
        known = store.statistics()
        return (
            f"{known.connections:,} connections in {known.rows:,} rows:"
            f" {filled - began:,.0f} s to apply, {time.perf_counter() - filled:,.0f} s for a"
            f" snapshot, {store.nbytes / known.connections:.1f} B of RAM each"
        )


def _parts(first: Delta, learned: Learned, copies: int) -> Iterator[Delta]:
    yield first
    known = tokeniser()
    every = max(1, copies // _TURNED)
    for number in range(1, copies + 1):
        yield renamed(learned.own, number)
        if number % every == 0:
            yield turned(learned.anywhere, known, number // every)


def _part(delta: Delta, shards: Shards, layout: Layout) -> Delta:
    """Return the rows of some shards."""
    rows = (delta.count > 0) | (delta.lengths > 0)
    homes = layout.shards_of(delta.concept, delta.feature)
    wanted = rows & among(homes, shards)
    return delta.only(wanted) if wanted.any() else delta.only(np.zeros_like(rows))
