"""How long a reader waits for a row, alone and while a writer writes as fast as it can."""

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.rows import Answer, Neuron, Question
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.benchmarks.process import Queue
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
Read = Callable[[Question], Answer]


def reads(work: Workload, size: int, directory: Path) -> Figures:
    """Read rows of the store in a directory, and write more to it meanwhile."""
    figures = {}
    asked, more = picked(work, size), work.behind(size)
    with Store.at(directory) as store:
        short = of_size(store.read, asked)
        for pick, questions in short.items():
            figures |= latencies(f"row read, {pick}", store.read, questions)
        title = "row read, often asked, of any length"
        figures |= latencies(title, store.read, asked[OFTEN], most=math.inf)
        for name, seconds in SWITCH.items():
            for pick, questions in short.items():
                title = f"row read while writing{name}, {pick}"
                with _interval(seconds), _writing(store, more) as writer:
                    figures |= latencies(title, store.read, questions, writer)
                    figures[f"written meanwhile{name}, {pick}"] = writer.rate
    return figures


ANY, OFTEN = "any", "often asked"


def picked(work: Workload, size: int) -> Picked:
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


def of_size(read: Read, asked: Picked) -> Picked:
    """Leave out the long rows."""
    found = {}
    for pick, questions in asked.items():
        lengths = [len(row.target) if (row := read(q)[0]) else 0 for q in questions]
        found[pick] = [q for q, n in zip(questions, lengths, strict=True) if n <= MOST]
    return found


def latencies(
    name: str,
    read: Read,
    questions: list[Question],
    writer: "_Writer | None" = None,
    most: float = MOST,
) -> Figures:
    """Read all again and again; return the microseconds of a read, but for those of long rows.

    On a shared machine a thread waits for a processor, too, and the reader for a writer that waits
    for one; the same is told without these waits, as the system counts them.
    """
    threads = [threading.get_native_id(), *([writer.native_id] if writer else [])]
    waits: list[float] = []
    queued: list[float] = []
    with closing(Queue(*threads)) as queue:
        end = time.perf_counter() + _SECONDS
        while time.perf_counter() < end or len(waits) < _LEAST_READS:
            before = queue.waited()
            for question in questions:
                begin = time.perf_counter()
                (row,) = read(question)
                wait = time.perf_counter() - begin
                now = queue.waited()
                if row and len(row.target) <= most:  # it may have grown
                    waits.append(wait)
                    queued.append(now - before)
                before = now
    wall = np.array(waits) * 1e6
    alone = np.maximum(wall - np.array(queued) * 1e6, 0)
    return _told(name, wall) | _told(f"{name}, but for waiting for a processor", alone)


def _told(name: str, waits: npt.NDArray[np.float64]) -> Figures:
    parts = zip(("p50", "p99", "p99.9"), np.percentile(waits, [50, 99, 99.9]).tolist(), strict=True)
    return {f"{name}: {part}": wait for part, wait in parts} | {f"{name}: most": float(waits.max())}


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
