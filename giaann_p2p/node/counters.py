"""Counters that peers keep of their own work, for export: plain numbers that only grow."""

from bisect import bisect_left
from dataclasses import dataclass, field

BOUNDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Upper bounds of the histogram buckets, in seconds; one more bucket counts everything above."""


class Histogram:
    """A histogram of durations."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0
        """Sum of all durations, in seconds."""

    def __repr__(self) -> str:
        count = sum(self.counts)
        return f"<Histogram: {count:,} times, {self.seconds / max(1, count):.6f} s on average>"

    def took(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


@dataclass
class RequestCounters:
    """Counters of other peers' requests, for every role."""

    refused: int = 0
    """Requests that were answered with a refusal."""
    unreadable: int = 0
    """Requests that could not be decoded."""
    bytes_in: int = 0
    """Bytes of requests."""
    bytes_out: int = 0
    """Bytes of answers to requests."""


@dataclass
class Counters(RequestCounters):
    """A storage peer's counters."""

    pushes: int = 0
    """Updates received."""
    pushed: int = 0
    """Updates acknowledged, which are on the disk."""
    reads: int = 0
    rows: int = 0
    """Rows returned by reads."""
    connections: int = 0
    """Connections in these rows."""
    questions: int = 0
    """Requests of all other kinds."""
    busy: int = 0
    """Refusals because this peer was overloaded."""
    repairs: int = 0
    """Deltas and whole shards fetched from other peers and stored."""
    push_seconds: Histogram = field(default_factory=Histogram)
    read_seconds: Histogram = field(default_factory=Histogram)


@dataclass
class WorkCounters(RequestCounters):
    """A compute peer's counters."""

    orders: int = 0
    """Chunks accepted."""
    chunks: int = 0
    """Chunks learned, whether committed later or not."""
    sentences: int = 0
    """Sentences in these chunks."""
    sequences: int = 0
    """Sentences in these chunks that held something to learn."""
    failed: int = 0
    """Chunks that could not be learned."""
    prompts: int = 0
    """Requests to continue a prompt."""
    learn_seconds: Histogram = field(default_factory=Histogram)
