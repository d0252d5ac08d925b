"""Rows read from one storage peer: many at a time, and one by one.

Rows travel packed, in some two bytes a connection, where a connection's target alone has sixteen.
So what they come to in bytes is no share of what an echo moves: the fewer bytes, the worse it would
look. What can be compared is what a reader gets, the same rows as plain bytes, and that is shown
beside it, without a target.
"""

import asyncio
import time
from collections.abc import Sequence
from statistics import median, quantiles

import numpy as np

from giaann_p2p.client.session import Session
from giaann_p2p.model.rows import Neuron
from giaann_p2p.store.codec.plain import encode
from tests.benchmarks.network.bare import Bare
from tests.benchmarks.network.figures import Figure
from tests.benchmarks.network.learned import Learned
from tests.benchmarks.network.processor import processor_time
from tests.benchmarks.targets import Target

BATCHES = (256, 1024, 4096)
_UNDER_WAY = 4
_ONE_BY_ONE = 300
_ROWS, _SIZE = Target(least=40_000), Target(most=6)


async def reads(
    visiting: Session, bare: Bare, learned: Learned, seconds: float, rounds: int, server: int
) -> list[Figure]:
    """Measure both; `server` is the storage peer's process."""
    figures = []
    for batch in BATCHES:
        figures += await _batches(visiting, bare, learned, batch, seconds, rounds, server)
    return figures + await _single(visiting, bare, learned, rounds)


async def _batches(
    visiting: Session,
    bare: Bare,
    learned: Learned,
    batch: int,
    seconds: float,
    rounds: int,
    server: int,
) -> list[Figure]:
    asked = _drawn(learned, batch)
    found: list[tuple[float, float]] = []
    came, here, there = 0.0, 0.0, 0.0
    size, plainly = await _size(visiting, asked[0])
    for _ in range(rounds):
        before = time.process_time(), processor_time(server)
        rows, number = await _rate(visiting, asked, seconds)
        came += number
        here += time.process_time() - before[0]
        there += processor_time(server) - before[1]
        found.append((rows, await bare.rate(bytes(size), seconds / 2, _UNDER_WAY)))
    a_row, length = size / len(asked[0]), _length(learned, asked[0])
    name = f"{batch} rows at a time"
    rate = median(rows for rows, _ in found)
    share = median(rows * a_row / echo for rows, echo in found)
    return [
        Figure(f"{name}: rows of {length:.0f} connections", rate, "rows/s", _ROWS),
        Figure(f"{name}: the peer's processor time", there / came * 1e6, "µs a row"),
        Figure(f"{name}: the reader's processor time", here / came * 1e6, "µs a row"),
        Figure(f"{name}: on the wire", a_row / length, "bytes a connection", _SIZE),
        Figure(f"{name}: of the echo's bytes, as they travel packed", share, "x"),
        Figure(f"{name}: of the echo's bytes, as a reader gets them", share * plainly / size, "x"),
        Figure(f"{name}: the echo", median(echo for _, echo in found) / 1e6, "MB/s"),
    ]


def _drawn(learned: Learned, batch: int) -> list[list[Neuron]]:
    """Draw different questions."""
    random, rows = np.random.default_rng(batch), list(learned.lengths)
    return [
        [rows[i] for i in random.permutation(len(rows))[:batch].tolist()] for _ in range(_UNDER_WAY)
    ]


def _length(learned: Learned, asked: Sequence[Neuron]) -> float:
    return sum(learned.lengths[neuron] for neuron in asked) / len(asked)


async def _size(visiting: Session, asked: Sequence[Neuron]) -> tuple[int, int]:
    """Return the bytes of an answer, and of its rows as plain bytes; check that none is missing."""
    calls = visiting.reading.calls
    before = calls.bytes_in
    found = await visiting.rows(asked)
    rows = [row for row in found if row]
    if len(rows) < len(found):
        raise SystemExit(f"{len(found) - len(rows)} rows of {len(found)} are missing")
    return calls.bytes_in - before, len(encode(rows))


async def _rate(visiting: Session, asked: list[list[Neuron]], seconds: float) -> tuple[float, int]:
    """Return the rows that come in a second, and how many came."""
    came = 0
    began = time.perf_counter()

    async def read(neurons: Sequence[Neuron]) -> None:
        nonlocal came
        while time.perf_counter() - began < seconds:
            rows = await visiting.rows(neurons)
            came += len(rows)  # not in one line: others count while this waits

    await asyncio.gather(*map(read, asked))
    return came / (time.perf_counter() - began), came


async def _single(visiting: Session, bare: Bare, learned: Learned, rounds: int) -> list[Figure]:
    """Measure one row at a time, in turns with the bare stream."""
    rows = list(learned.lengths)[:_ONE_BY_ONE]
    size, _ = await _size(visiting, rows[:1])
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(2 * rounds):
        for row in rows:
            began = time.perf_counter()
            await visiting.rows([row])
            ours.append(time.perf_counter() - began)
        theirs += await bare.round_trips(bytes(size), len(rows))
    middle = median(ours)
    ratio = middle / median(theirs)
    return [
        Figure("one row: p50", middle * 1e6, "µs"),
        Figure("one row: p99", quantiles(ours, n=100)[98] * 1e6, "µs"),
        Figure("one row: on the wire", size / learned.lengths[rows[0]], "bytes a connection"),
        Figure("the bare round trip of as many bytes: p50", median(theirs) * 1e6, "µs"),
        Figure("the bare round trip: p99", quantiles(theirs, n=100)[98] * 1e6, "µs"),
        Figure("one row: p50, of the bare round trip", ratio, "x", Target(most=1.5)),
    ]
