"""Rates per second: of the swarm, as its peers announce them, and of this gateway.

Reads and writes are the sum of what storage peers announce in their records, which they renew
every few seconds. Tokens and prompts are those of this gateway alone, because records do not have
those of other gateways.
"""

from giaann_p2p.gateway.metrics import Metrics
from giaann_p2p.gateway.views import PeersNow


class Rates:
    """Turns counters into rates per second."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._last: tuple[float, int, int] | None = None

    def now(self, t: float, peers: PeersNow | None) -> dict[str, float]:
        """Return the rates per second since the last call, at the time `t` in seconds."""
        tokens, prompts = self._metrics.tokens, self._metrics.prompts
        before, self._last = self._last or (t, tokens, prompts), (t, tokens, prompts)
        seconds = max(t - before[0], 0.001)
        there = [one for one in peers.peers if not one.silent] if peers else []
        return {
            "t": round(t, 3),
            "reads": sum(one.reads_per_s for one in there),
            "writes": sum(one.writes_per_s for one in there),
            "tokens": round((tokens - before[1]) / seconds, 1),
            "prompts": round((prompts - before[2]) / seconds, 1),
        }
