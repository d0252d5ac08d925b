"""The history of a chunk's failures: how long it rests, and when it is given up."""

from dataclasses import dataclass, field

from giaann_p2p.backoff import Backoff
from giaann_p2p.swarm.training.lease_settings import LeaseSettings

_MOST_REASON = 200
"""Maximum length of the reason kept for a failure, in characters."""
_MOST_DOUBLINGS = 5
"""Maximum number of times that the length of a chunk's leases is doubled."""


@dataclass
class ChunkHistory:
    """The history of one chunk: expired and lost leases, failures, and workers that learned it."""

    lapses: int = 0
    """Number of the chunk's leases that expired."""
    losers: set[bytes] = field(default_factory=set)
    """The workers that fell silent, or left, while they leased the chunk."""
    failed: list[bytes] = field(default_factory=list)
    """The workers that failed on the chunk, one entry for each failure."""
    reasons: list[str] = field(default_factory=list)
    """The reasons of the failures, in the order of `failed`."""
    rests_until: float = 0.0
    """Time from which the chunk may be leased again after a failure."""
    vouched: set[bytes] = field(default_factory=set)
    """The workers that have learned the chunk and reported a result."""

    @property
    def longer(self) -> int:
        """The factor, from 1 to 32, by which the chunk's leases are longer than usual."""
        return 1 << min(self.lapses, _MOST_DOUBLINGS)

    def fail(self, worker: bytes, reason: str, now: float, pace: LeaseSettings) -> None:
        """Record that a worker failed on the chunk; the chunk rests longer after each failure."""
        self.failed.append(worker)
        self.reasons.append(reason[:_MOST_REASON])
        self.rests_until = Backoff(pace.rest, failures=len(self.failed), since=now).until

    def verdict(self, pace: LeaseSettings) -> tuple[str, ...]:
        """Return the reasons to give the chunk up; an empty tuple if it is to be tried again."""
        if len(set(self.failed)) >= pace.failures or len(self.failed) >= 2 * pace.failures:
            return tuple(self.reasons)
        if len(self.losers) >= pace.losses:
            workers = "1 worker" if len(self.losers) == 1 else f"{len(self.losers)} workers"
            lost = f"{workers} fell silent or left while learning it"
            return (*self.reasons, lost)
        return ()
