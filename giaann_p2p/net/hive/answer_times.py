"""When nodes of the DHT last answered this peer's calls, and how long it waits for the next answer.

On an overloaded machine all nodes are slow. If they counted as silent, looks would ask others that
keep fewer records, and searches for these would add to the load. So the timeout of a call follows
the usual time of an answer, and a node that has answered lately is slow, not gone.
"""

from collections import deque
from math import inf
from statistics import median_low

from giaann_p2p.swarm.wire.identity import Peer

_COUNTED = 32
"""Number of latest answers whose median is the usual time. One node of five that answers as late as
it can makes no difference to it."""
_TIMES = 5.0
"""How many times longer than usual an answer may take."""


class AnswerTimes:
    """Notes the answers of nodes, those of the last `most` nodes by peer."""

    def __init__(self, shortest: float, longest: float, most: int) -> None:
        """Create notes without answers; the timeout is between `shortest` and `longest` seconds."""
        self.last = -inf
        """When any node last answered."""
        self._shortest, self._longest, self._most = shortest, longest, most
        self._took = deque[float](maxlen=_COUNTED)
        self._by_peer: dict[Peer, float] = {}  # when each node last answered, the oldest first

    def __repr__(self) -> str:
        return f"<AnswerTimes of {len(self._by_peer):,} nodes, {self.timeout:.1f} s allowed>"

    @property
    def timeout(self) -> float:
        """The seconds to wait for a node's answer."""
        usual = median_low(self._took) if self._took else 0.0
        return max(self._shortest, min(self._longest, _TIMES * usual))

    def answered(self, peer: Peer, asked: float, now: float) -> None:
        """Note that a node answered now what it was asked at some time."""
        self._took.append(now - asked)
        self.last = now
        self._by_peer.pop(peer, None)
        self._by_peer[peer] = now
        if len(self._by_peer) > self._most:
            del self._by_peer[next(iter(self._by_peer))]

    def has_answered(self, peer: Peer, since: float) -> bool:
        """Return whether a node has answered since some time."""
        return self._by_peer.get(peer, -inf) >= since
