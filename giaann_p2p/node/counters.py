"""A peer's counters of its own work, exported as metrics: plain numbers that only grow."""

from bisect import bisect_left
from dataclasses import dataclass, field

BOUNDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Upper bounds of a histogram's buckets, in seconds; one more bucket counts everything above."""


class Histogram:
    """A histogram of durations, with the buckets of `BOUNDS`."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        """Number of durations in each bucket; the last bucket has no upper bound."""
        self.seconds = 0.0
        """Sum of all counted durations, in seconds."""

    def __repr__(self) -> str:
        count = sum(self.counts)
        return f"<Histogram: {count:,} times, {self.seconds / max(1, count):.6f} s on average>"

    def took(self, seconds: float) -> None:
        """Count one duration, given in seconds."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


@dataclass
class RequestCounters:
    """Counters of the requests that a peer of any role receives from other peers."""

    refused: int = 0
    """Requests that this peer answered with a refusal."""
    unreadable: int = 0
    """Requests that this peer could not decode."""
    bytes_in: int = 0
    """Bytes of requests received."""
    bytes_out: int = 0
    """Bytes of answers sent to requests."""


@dataclass
class Counters(RequestCounters):
    """A storage peer's counters."""

    pushes: int = 0
    """Updates received from pushing peers, whether accepted or refused."""
    pushed: int = 0
    """Pushed updates that this peer acknowledged, because they are on its disk."""
    reads: int = 0
    """Requests for rows."""
    rows: int = 0
    """Rows returned to the peers that read them."""
    connections: int = 0
    """Connections in the rows returned to the peers that read them."""
    questions: int = 0
    """Requests that are neither pushes nor reads."""
    busy: int = 0
    """Requests refused because this peer was overloaded."""
    repairs: int = 0
    """Deltas and whole shards that this peer fetched from other peers to store them."""
    push_seconds: Histogram = field(default_factory=Histogram)
    """Durations from a push to its answer."""
    read_seconds: Histogram = field(default_factory=Histogram)
    """Durations from a read to its answer."""


@dataclass
class WorkCounters(RequestCounters):
    """A compute peer's counters."""

    orders: int = 0
    """Leases of chunks that this peer accepted."""
    chunks: int = 0
    """Chunks that this peer learned, whether they were committed later or not."""
    sentences: int = 0
    """Sentences in the chunks that this peer learned."""
    sequences: int = 0
    """Sentences with something to learn, in the chunks that this peer learned."""
    failed: int = 0
    """Chunks that this peer accepted but could not learn."""
    prompts: int = 0
    """Requests to continue a prompt."""
    learn_seconds: Histogram = field(default_factory=Histogram)
    """Durations from a chunk's lease until it is learned, or has failed."""
