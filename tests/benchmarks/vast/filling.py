"""Fills a storage peer's store with its part of a made-up model, while the peer is down."""

import time
from collections.abc import Iterator
from pathlib import Path

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.hash_table import Bools
from giaann_p2p.model.sequence import Ids
from giaann_p2p.model.subwords.tokeniser import tokeniser
from giaann_p2p.solo.brain import Brain
from giaann_p2p.store.layout import among
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.benchmarks.vast.copies import IsHere, Learned, renamed, rows_of, turned

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
        first = base.knowledge
    with Store.at(folder) as store:

        def is_here(concept: Ids, feature: Ids) -> Bools:
            return among(store.layout.shards_of(concept, feature), store.shards)

        for chunk, delta in enumerate(_parts(first, copies, is_here)):
            store.apply([Update(_JOB, chunk, store.shards, delta)])
        filled = time.perf_counter()
        store.compact()
        known = store.statistics()
        return (
            f"{known.connections:,} connections in {known.rows:,} rows:"
            f" {filled - began:,.0f} s to apply, {time.perf_counter() - filled:,.0f} s for a"
            f" snapshot, {store.nbytes / known.connections:.1f} B of RAM each"
        )


def _parts(first: Delta, copies: int, is_here: IsHere) -> Iterator[Delta]:
    yield first.only(rows_of(first) & is_here(first.concept, first.feature))
    own, anywhere = Learned.of(first)
    anywhere = anywhere.only(rows_of(anywhere) & is_here(anywhere.concept, anywhere.feature))
    known, every = tokeniser(), max(1, copies // _TURNED)
    for number in range(1, copies + 1):
        yield renamed(own, number, is_here)
        if number % every == 0:
            yield turned(anywhere, known, number // every)
