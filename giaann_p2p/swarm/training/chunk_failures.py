"""What went wrong with a chunk, and what follows from it: rules 3 and 6 of schedule.py."""

from dataclasses import dataclass, field

from giaann_p2p.swarm.pace import Pace

_MOST_REASON = 200
_MOST_DOUBLINGS = 5


@dataclass
class Past:
    """See the module."""

    lapses: int = 0
    """Leases that ran out."""
    losers: set[bytes] = field(default_factory=set)
    """Workers that fell silent or left with it."""
    failed: list[bytes] = field(default_factory=list)
    """Workers that failed on it, each time that they did."""
    reasons: list[str] = field(default_factory=list)
    rests_until: float = 0.0
    vouched: set[bytes] = field(default_factory=set)
    """Workers that have learned it, and told what it came to."""

    @property
    def longer(self) -> int:
        """How many times longer than usual its leases are."""
        return 1 << min(self.lapses, _MOST_DOUBLINGS)

    def fail(self, worker: bytes, reason: str, now: float, pace: Pace) -> None:
        """Take in that a worker failed on it."""
        self.failed.append(worker)
        self.reasons.append(reason[:_MOST_REASON])
        self.rests_until = now + pace.rest * 2 ** (len(self.failed) - 1)

    def verdict(self, pace: Pace) -> tuple[str, ...]:
        """Return why it is to be given up; nothing if it is not."""
        if len(set(self.failed)) >= pace.failures or len(self.failed) >= 2 * pace.failures:
            return tuple(self.reasons)
        if len(self.losers) >= pace.losses:
            lost = f"{len(self.losers)} workers fell silent or left while they were at it"
            return (*self.reasons, lost)
        return ()
