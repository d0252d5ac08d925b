"""How long a reader waits for a row, alone and while a writer writes as fast as it can."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.benchmarks.workload import ALL, Chunk, Workload
from tests.benchmarks.writing import GROUP, Figures

SWITCH = {"": 0.005, ", switch 100 µs": 0.0001}
"""Python's switch interval: its default, and a shorter one."""
MOST = 1000
"""Connections of a row whose reading has a target."""

_SAMPLE = 64
"""Chunks to draw neurons from, spread over all."""
_ROWS = 3000
_LEAST_READS = 10_000
_SECONDS = 4.0

Picked = dict[str, list[Question]]


def reads(work: Workload, size: int, directory: Path) -> Figures:
    """Read rows of the store in a directory, and write more to it meanwhile."""
    figures = {}
    picked, more = _picked(work, size), work.behind(size)
    with Store.at(directory) as store:
        rows = _of_size(store, picked)
        for pick, questions in rows.items():
            figures |= _told(f"row read, {pick}", _latencies(store, questions))
        figures |= _told("row of any length read, often asked", _latencies(store, picked[OFTEN]))
        for name, seconds in SWITCH.items():
            for pick, questions in rows.items():
                with _interval(seconds), _writing(store, more) as writer:
                    waits = _latencies(store, questions)
                    rate = writer.rate
                figures |= _told(f"row read while writing{name}, {pick}", waits)
                figures[f"increments written meanwhile{name}, {pick}"] = rate
    return figures


ANY, OFTEN = "any", "often asked"


def _picked(work: Workload, size: int) -> Picked:
    """Draw neurons: each as likely as any other, or as often as it occurs."""
    step = max(1, work.sizes[size].chunks // _SAMPLE)
    known = total([chunk.delta for i, chunk in enumerate(work.first(size)) if i % step == 0])
    random, here = np.random.default_rng(0), np.flatnonzero(known.count)
    share = known.count[here] / known.count.sum()
    return {
        ANY: _questions(known, random.choice(here, _ROWS)),
        OFTEN: _questions(known, random.choice(here, _ROWS, p=share)),
    }


def _questions(known: Delta, at: npt.NDArray[np.int64]) -> list[Question]:
    named = zip(known.concept[at].tolist(), known.feature[at].tolist(), strict=True)
    return [Question([Neuron(*neuron)]) for neuron in named]


def _of_size(store: Store, picked: Picked) -> Picked:
    """Leave out the long rows."""
    found = {}
    for pick, questions in picked.items():
        lengths = [len(row.target) if (row := store.read(q)[0]) else 0 for q in questions]
        found[pick] = [q for q, n in zip(questions, lengths, strict=True) if n <= MOST]
    return found


def _latencies(store: Store, questions: list[Question]) -> npt.NDArray[np.float64]:
    """Read all again and again; return the microseconds of each read."""
    waits: list[float] = []
    end = time.perf_counter() + _SECONDS
    while time.perf_counter() < end or len(waits) < _LEAST_READS:
        for question in questions:
            begin = time.perf_counter()
            store.read(question)
            waits.append(time.perf_counter() - begin)
    return np.array(waits) * 1e6


def _told(name: str, waits: npt.NDArray[np.float64]) -> Figures:
    parts = zip(("p50", "p99", "p99.9"), np.percentile(waits, [50, 99, 99.9]).tolist(), strict=True)
    return {f"{name}, {part}": wait for part, wait in parts} | {f"{name}, most": float(waits.max())}


@contextmanager
def _interval(seconds: float) -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class _Writer(threading.Thread):
    """Writes the same chunks again and again, as one job after the other."""

    def __init__(self, store: Store, chunks: list[Chunk]) -> None:
        super().__init__()
        self._store, self._chunks = store, chunks
        self._written, self._begin, self._ended = 0, time.perf_counter(), False

    @property
    def rate(self) -> float:
        """Increments a second so far."""
        return self._written / (time.perf_counter() - self._begin)

    def run(self) -> None:
        """Write until the end."""
        while not self._ended:
            job = np.random.default_rng().bytes(16)
            for first in range(0, len(self._chunks), GROUP):
                if self._ended:
                    return
                some = self._chunks[first : first + GROUP]
                self._store.apply(
                    [Update(job, first + i, ALL, chunk.delta) for i, chunk in enumerate(some)]
                )
                self._written += sum(chunk.delta.connections for chunk in some)

    def end(self) -> None:
        """Let it end."""
        self._ended = True
        self.join()


@contextmanager
def _writing(store: Store, chunks: list[Chunk]) -> Iterator[_Writer]:
    writer = _Writer(store, chunks)
    writer.start()
    try:
        yield writer
    finally:
        writer.end()
