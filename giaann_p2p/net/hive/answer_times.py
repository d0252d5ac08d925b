"""How long nodes of the DHT take to answer, and so how long this peer waits for the next answer.

On an overloaded machine all nodes are slow. If they counted as silent, looks would ask others that
keep fewer records, and searches for these would add to the load. So the timeout of a call follows
the usual time of an answer, and a node that has answered lately is slow, not gone.
"""

from itertools import islice
from statistics import median_low
from typing import NamedTuple

from giaann_p2p.swarm.wire.identity import Peer

_COUNTED = 32
"""Number of nodes, those called last, whose median time is the usual one. Each counts once, so a
few nodes that answer as late as they can make no difference."""
_TIMES = 5.0
"""How many times longer than usual an answer may take."""
_SLOW_FOR, _SLOW_TIMES = 60.0, 5
"""Seconds after its last answer, and the number of calls since without an answer, until a slow node
counts as gone."""


class _Node(NamedTuple):
    """A node that has answered."""

    answered: float
    """When it last did."""
    took: float
    """The seconds that its last calls took, since and with the one that it answered last."""
    silences: int
    """The number of calls since its last answer that it did not answer."""


class AnswerTimes:
    """The times of the last calls to nodes, of those called last."""

    def __init__(self, shortest: float, longest: float, most: int) -> None:
        """Create notes without answers; the timeout is between `shortest` and `longest` seconds.

        They are of `most` nodes at most.
        """
        self._shortest, self._longest, self._most = shortest, longest, most
        self._nodes: dict[Peer, _Node] = {}  # those called last come last

    def __repr__(self) -> str:
        return f"<AnswerTimes of {len(self._nodes):,} nodes, {self.timeout:.1f} s allowed>"

    @property
    def timeout(self) -> float:
        """The seconds to wait for a node's answer."""
        took = [node.took for node in islice(reversed(self._nodes.values()), _COUNTED)]
        usual = median_low(took) if took else 0.0
        return max(self._shortest, min(self._longest, _TIMES * usual))

    def answered(self, peer: Peer, took: float, now: float) -> None:
        """Note that a node answered now."""
        self._note(peer, _Node(now, took, 0))

    def silent(self, peer: Peer, took: float) -> None:
        """Note that a node gave no valid answer; the call took some seconds.

        After a timeout the answer would have taken longer, so the timeout grows if most nodes are
        too slow for it.
        """
        node = self._nodes.get(peer)
        if node is not None:
            self._note(peer, _Node(node.answered, max(took, node.took), node.silences + 1))

    def is_slow(self, peer: Peer, now: float) -> bool:
        """Return whether a node that did not answer is only slow, because it has lately."""
        node = self._nodes.get(peer)
        if node is None:
            return False
        return now < node.answered + _SLOW_FOR and node.silences < _SLOW_TIMES

    def _note(self, peer: Peer, node: _Node) -> None:
        self._nodes.pop(peer, None)
        self._nodes[peer] = node
        if len(self._nodes) > self._most:
            del self._nodes[next(iter(self._nodes))]
