"""How fast jobs progress: the chunks that each one gained in the last half minute."""

from collections import deque
from collections.abc import Mapping

WINDOW = 30.0
"""Seconds over which a rate is measured."""


class JobRates:
    """The rates of jobs; one that has not grown lately takes only the memory of a number."""

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}
        self._gains: dict[bytes, deque[tuple[float, int]]] = {}
        self._began: float | None = None
        self._now = 0.0

    def look(self, counts: Mapping[bytes, int], now: float) -> None:
        """Record how many chunks each job has now; chunks of the first look count as older."""
        if self._began is None:
            self._began = now
        else:
            for job, count in counts.items():
                if (gain := count - self._counts.get(job, 0)) > 0:
                    self._gains.setdefault(job, deque()).append((now, gain))
        self._counts, self._now = dict(counts), now
        for job, gains in [*self._gains.items()]:
            while gains and gains[0][0] <= now - WINDOW:
                gains.popleft()
            if not gains:
                del self._gains[job]

    def rate(self, job: bytes) -> float:
        """Return the chunks per second that a job has gained lately; 0.0 if it has gained none."""
        gains = self._gains.get(job)
        if not gains or self._began is None:
            return 0.0
        return sum(gain for _, gain in gains) / min(WINDOW, max(1.0, self._now - self._began))
