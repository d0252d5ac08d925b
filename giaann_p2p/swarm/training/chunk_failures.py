"""The failures of a chunk, and their consequences: rules 3 and 6 of schedule.py."""

from dataclasses import dataclass, field

from giaann_p2p.backoff import Backoff
from giaann_p2p.swarm.training.lease_settings import LeaseSettings

_MOST_REASON = 200
"""Number of characters kept of a reason."""
_MOST_DOUBLINGS = 5
"""Maximum number of doublings of a chunk's leases."""


@dataclass
class ChunkFailures:
    """The history of one chunk: expired and lost leases, failures, and peers that learned it."""

    lapses: int = 0
    """Number of leases that expired."""
    losers: set[bytes] = field(default_factory=set)
    """Workers that fell silent, or left, while they leased the chunk."""
    failed: list[bytes] = field(default_factory=list)
    """Workers that failed on the chunk, one entry for each failure."""
    reasons: list[str] = field(default_factory=list)
    """Reasons of the failures, in the order of `failed`."""
    rests_until: float = 0.0
    """Time from which on the chunk may be leased again after a failure."""
    vouched: set[bytes] = field(default_factory=set)
    """Workers that have learned the chunk and reported the result."""

    @property
    def longer(self) -> int:
        """The factor by which the chunk's leases are longer than usual: 1 to 32."""
        return 1 << min(self.lapses, _MOST_DOUBLINGS)

    def fail(self, worker: bytes, reason: str, now: float, pace: LeaseSettings) -> None:
        """Record that a worker failed on the chunk."""
        self.failed.append(worker)
        self.reasons.append(reason[:_MOST_REASON])
        self.rests_until = Backoff(pace.rest, failures=len(self.failed), since=now).until

    def verdict(self, pace: LeaseSettings) -> tuple[str, ...]:
        """Return the reasons to give the chunk up; none if it is to be tried again."""
        if len(set(self.failed)) >= pace.failures or len(self.failed) >= 2 * pace.failures:
            return tuple(self.reasons)
        if len(self.losers) >= pace.losses:
            lost = f"{len(self.losers)} workers fell silent or left while they were at it"
            return (*self.reasons, lost)
        return ()
