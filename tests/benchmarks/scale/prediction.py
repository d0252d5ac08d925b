"""What a token takes: rows, bytes, round trips."""

from dataclasses import replace

import numpy as np

from giaann_p2p.model.rows import DeltaRows, Neuron, Question
from giaann_p2p.net.frames import HEADER
from giaann_p2p.store.codec import plain
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.codec.plain import MOST_CONNECTIONS
from giaann_p2p.swarm.wire.messages import MOST_BYTES
from giaann_p2p.swarm.wire.messages import encode as encoded
from giaann_p2p.swarm.wire.row_messages import Read, Rows
from giaann_p2p.swarm.wire.shardset import packed
from tests.benchmarks.scale.lessons import learned
from tests.benchmarks.scale.tables import Cells, number, size

CHUNKS = (4, 32, 256)
"""Learned so far."""
TRIPS = (0.001, 0.02, 0.08)
"""Seconds of a round trip."""
COMPUTED = 1 / 5_400
"""Seconds that a token takes where the rows are at hand (see the README)."""
_WIDTH, _DEPTH = 3, 4
_SAMPLE = 64
_NONE = np.empty(0, np.uint16)


def rows(at: int) -> Cells:
    """Return how long rows are that fire as often as their words occur."""
    delta = learned(CHUNKS[at])
    lengths = np.diff(delta.row_starts)
    ends = np.cumsum(delta.count)
    fired = np.searchsorted(ends, (np.arange(_SAMPLE) + 0.5) / _SAMPLE * ends[-1], side="right")
    messages = [answered(CHUNKS[at], int(row)) for row in fired]
    mean = float(np.mean(messages))
    most, longest = int(lengths.argmax()), int(lengths.max())
    largest = answered(CHUNKS[at], most)
    return {
        "connections learned": f"{delta.connections:,}",
        "connections of a row that fires, mean": number(float(lengths[fired].mean())),
        "bytes of the answer, mean and most": f"{size(mean)}, {size(max(messages))}",
        "longest row, connections": f"{longest:,} ({longest / delta.connections:.2%} of all)",
        "bytes of the answer with it": size(largest),
        "connections learned when it outgrows a message, were its part the same": (
            f"{number(MOST_BYTES / largest * delta.connections / 1e6)} million"
        ),
    }


def answered(chunks: int, row: int) -> int:
    """Return the bytes of an answer with one row."""
    delta = learned(chunks)
    neuron = Neuron(int(delta.concept[row]), int(delta.feature[row]))
    (found,) = DeltaRows(delta).read(Question([neuron]))
    if found is None or len(found.target) <= MOST_CONNECTIONS:
        parcel = plain.encode([found] if found else [])
    else:
        only = np.zeros(delta.neurons, np.int64)
        only[row] = 1
        names = {word: text for word, text in delta.names.items() if word in neuron}
        parcel = encode(replace(delta.cut(only)[1], names=names))
    return HEADER + len(encoded(Rows(parcel, packed(_NONE, 256))))


def asked() -> int:
    """Return the bytes of a question for one row."""
    return HEADER + len(encoded(Read(bytes(8), bytes(8))))


def speed(at: int) -> Cells:
    """Return how many tokens a second one prompt gets."""
    trip = TRIPS[at]
    beam = _DEPTH * (trip + _WIDTH * COMPUTED)
    return {
        "round trips a token": "1",
        "rows a token": "1",
        "bytes of the question": size(asked()),
        "tokens a second": number(1 / (trip + COMPUTED)),
        "prompts at once that keep one core busy": number((trip + COMPUTED) / COMPUTED),
        f"a beam of {_WIDTH} x {_DEPTH}: round trips, rows": f"{_DEPTH}, {_WIDTH * _DEPTH}",
        f"a beam of {_WIDTH} x {_DEPTH}: tokens a second": number(1 / beam),
    }
