"""Flow control: a window of bytes in flight for each peer, and timeouts that fit the peer's speed.

The capacity of a line is unknown, so the window starts small and adapts, as TCP's does:

1. The bytes in flight from a peer must fit into its window; a single question is always allowed.
2. An early answer widens the window by the answer's size, so the window doubles each round trip
   (slow start). Once the window has been halved, it grows by a quarter of the size only.
3. A late answer, or a timeout, halves the window. Other late answers to questions that were sent
   before the halving do not halve it again.
4. An answer is early or late compared with the quickest answer so far, because a busy peer needs
   that much time even for a small answer.
5. For up to a window's worth of bytes, the timeout is the base timeout plus the quickest answer's
   duration. Beyond a window, the base timeout grows in proportion to the bytes in flight; it also
   doubles with each timeout in a row.
"""

from dataclasses import dataclass
from math import inf

from giaann_p2p.swarm.wire.identity import Peer

FIRST = 1 << 16
"""Initial window of a peer, in bytes."""
_QUESTIONS = 4
"""Number of questions that share a window if the size of their answers is unknown."""
_SLOWLY = 4
"""Divisor of growth: once a window has been halved, an early answer widens it by the answer's size
divided by this number."""
LEAST = 1 << 14
"""Narrowest window, in bytes."""
MOST = 1 << 22
"""Widest window, in bytes."""
MOST_WAIT = 60.0
"""Longest timeout in seconds, unless the base timeout is longer."""
_SOON, _LATE = 0.125, 0.375
"""Limits for early and late answers: the delay beyond the quickest answer, as a fraction of the
base timeout."""
_MOST_DOUBLED = 4
"""Maximum number of times that a peer's timeout is doubled."""
_IN_TIME = 0.9
"""Fraction of its timeout that a failed question must have waited to count as timed out. It is
below 1 because clocks round."""
_MOST_KNOWN = 256
"""Maximum number of peers with a window; the peers that were idle for longest are forgotten."""


@dataclass(slots=True)
class _Line:
    """The state of the flow from one peer. Invariant: LEAST <= window <= MOST."""

    window: int = FIRST
    """Size of the window, in bytes."""
    under_way: int = 0
    """Expected size of all answers in flight, in bytes."""
    quickest: float = inf
    """Duration of the quickest answer so far, in seconds; infinite before the first answer."""
    narrowed: float = -inf
    """Time at which the window was last halved; minus infinity if it never was."""
    silences: int = 0
    """Number of timeouts since the last answer with data."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in flight."""

    line: _Line
    size: int
    """Expected size of the answer, in bytes."""
    when: float
    """Time at which the question was sent."""
    wait: float
    """Timeout of the question, in seconds."""


class Flow:
    """The window and the timeouts of each peer; `wait` is the base timeout, in seconds."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._lines: dict[Peer, _Line] = {}

    def __repr__(self) -> str:
        under_way = sum(line.under_way for line in self._lines.values())
        return f"<Flow: {under_way:,} bytes in flight from {len(self._lines)} peers>"

    def window(self, peer: Peer) -> int:
        """Return the number of bytes that may be in flight from a peer."""
        line = self._lines.get(peer)
        return line.window if line else FIRST

    def share(self, peer: Peer) -> int:
        """Return how many bytes to reserve for an answer of unknown size."""
        return self.window(peer) // _QUESTIONS

    def fits(self, peer: Peer, size: int) -> bool:
        """Return whether `size` more bytes may be requested from a peer."""
        line = self._lines.get(peer)
        return not line or not line.under_way or line.under_way + size <= line.window

    def ask(self, peer: Peer, size: int, now: float) -> Asked:
        """Record a question whose answer has about `size` bytes, and choose its timeout."""
        line = self._line(peer)
        line.under_way += size
        patience = max(1.0, line.under_way / line.window) * 2 ** min(line.silences, _MOST_DOUBLED)
        wait = self._wait * patience + (line.quickest if line.quickest < inf else 0.0)
        return Asked(line, size, now, max(self._wait, min(wait, MOST_WAIT)))

    def came(self, asked: Asked, size: int, now: float) -> None:
        """Record an answer with `size` bytes of data; with 0, the window stays as it is."""
        line, took = asked.line, now - asked.when
        line.under_way -= asked.size
        if not size:
            return
        line.silences = 0
        line.quickest = min(line.quickest, took)
        beyond = (took - line.quickest) / self._wait
        if beyond <= _SOON:
            more = size if line.narrowed == -inf else size // _SLOWLY
            line.window = min(line.window + more, MOST)
        elif beyond > _LATE:
            _narrow(asked, now)

    def failed(self, asked: Asked, now: float) -> None:
        """Record that a question got no answer; halve the window if it waited until its timeout."""
        asked.line.under_way -= asked.size
        if now - asked.when >= _IN_TIME * asked.wait and _narrow(asked, now):
            asked.line.silences += 1

    def _line(self, peer: Peer) -> _Line:
        line = self._lines.pop(peer, None) or _Line()
        self._lines[peer] = line  # the dictionary is ordered by the time of the last question
        if len(self._lines) > _MOST_KNOWN:
            idle = (one for one, known in self._lines.items() if not known.under_way)
            if (oldest := next(idle, None)) is not None:
                del self._lines[oldest]
        return line


def _narrow(asked: Asked, now: float) -> bool:
    """Halve the window of a question's peer, unless that happened after the question was sent.

    Return whether the window was halved now.
    """
    line = asked.line
    if asked.when < line.narrowed:
        return False
    line.window, line.narrowed = max(line.window // 2, LEAST), now
    return True
