"""What peers count of themselves, for whoever exports it: plain numbers that only grow."""

from bisect import bisect_left
from dataclasses import dataclass, field

BOUNDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Seconds up to which each bucket of a histogram counts; one more takes what is beyond."""


class Histogram:
    """How long something took."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0
        """All together."""

    def __repr__(self) -> str:
        count = sum(self.counts)
        return f"<Histogram: {count:,} times, {self.seconds / max(1, count):.6f} s on average>"

    def took(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


@dataclass
class Counters:
    """What a storage peer counts of itself."""

    pushes: int = 0
    """Updates that came."""
    pushed: int = 0
    """Of these, acknowledged: they are on the disk."""
    reads: int = 0
    rows: int = 0
    """Told in answer to reads."""
    connections: int = 0
    """Of these rows."""
    questions: int = 0
    """Of all other kinds."""
    refused: int = 0
    """Questions, pushes too, that were answered with a refusal."""
    busy: int = 0
    """Of these, for there was too much to do."""
    unreadable: int = 0
    """Requests that are no message."""
    bytes_in: int = 0
    """Of requests."""
    bytes_out: int = 0
    """Of what was answered to them."""
    repairs: int = 0
    """Deltas and whole shards that were fetched from others and taken in."""
    lost: int = 0
    """Connections that broke."""
    push_seconds: Histogram = field(default_factory=Histogram)
    read_seconds: Histogram = field(default_factory=Histogram)


@dataclass
class WorkCounters:
    """What a compute peer counts of itself."""

    orders: int = 0
    """Chunks that were taken."""
    chunks: int = 0
    """Chunks that were learned, whatever became of them then."""
    sentences: int = 0
    """In these."""
    sequences: int = 0
    """Of these, those that there was something to learn from."""
    failed: int = 0
    """Chunks that could not be learned."""
    prompts: int = 0
    """Questions what comes next."""
    refused: int = 0
    """Questions that were answered with a refusal."""
    unreadable: int = 0
    """Requests that are no message."""
    bytes_in: int = 0
    """Of requests."""
    bytes_out: int = 0
    """Of what was answered to them."""
    lost: int = 0
    """Connections that broke."""
    learn_seconds: Histogram = field(default_factory=Histogram)
