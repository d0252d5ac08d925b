"""Flow control: a window of bytes in flight for each peer, and timeouts that fit its pace.

The capacity of a line is unknown, so the window starts small and adapts, as TCP's does:

1. The bytes in flight from a peer must fit into its window; a single question is always allowed.
2. An early answer widens the window by its size, so it doubles each round trip (slow start); after
   the first narrowing, only by a quarter of the size.
3. A late answer, or a timeout, halves the window: once for all questions asked before that.
4. Early and late are measured beyond the quickest answer so far: a busy peer needs that time
   however little it is asked for.
5. The timeout for up to a window's worth is that of any answer plus the quickest; it grows in
   proportion to the bytes in flight beyond a window, and doubles after each timeout.
"""

from dataclasses import dataclass
from math import inf

from giaann_p2p.swarm.wire.identity import Peer

FIRST = 1 << 16
"""Window of a peer that has sent nothing yet, in bytes."""
_QUESTIONS = 4
"""Number of questions that share a window while their sizes are unknown."""
_SLOWLY = 4
"""Divisor of the growth of a window that was halved before."""
LEAST = 1 << 14
"""Narrowest window, in bytes."""
MOST = 1 << 22
"""Widest window, in bytes."""
MOST_WAIT = 60.0
"""Longest timeout in seconds, unless `wait` itself is longer."""
_SOON, _LATE = 0.125, 0.375
"""An answer is early up to, and late from, these fractions of `wait` beyond the quickest."""
_MOST_DOUBLED = 4
"""Maximum number of doublings of a timeout."""
_IN_TIME = 0.9
"""Fraction of a timeout from which a failure counts as a timeout, because clocks round."""
_MOST_KNOWN = 256
"""Maximum number of peers remembered; those idle for longest are forgotten."""


@dataclass(slots=True)
class _Line:
    """The flow from one peer. Invariant: LEAST <= window <= MOST."""

    window: int = FIRST
    """Window, in bytes."""
    under_way: int = 0
    """Number of bytes in flight."""
    quickest: float = inf
    """Duration of the quickest answer, in seconds."""
    narrowed: float = -inf
    """Time at which the window was last halved."""
    silences: int = 0
    """Number of timeouts in a row."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in flight."""

    line: _Line
    size: int
    when: float
    wait: float
    """Timeout of the question, in seconds."""


class Flow:
    """Windows and timeouts by peer; `wait` is the timeout in seconds of an ordinary answer."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._lines: dict[Peer, _Line] = {}

    def __repr__(self) -> str:
        under_way = sum(line.under_way for line in self._lines.values())
        return f"<Flow: {under_way:,} bytes under way from {len(self._lines)} peers>"

    def window(self, peer: Peer) -> int:
        """Return the number of bytes that may be in flight from a peer."""
        line = self._lines.get(peer)
        return line.window if line else FIRST

    def share(self, peer: Peer) -> int:
        """Return the bytes to reserve for a question whose answer's size is unknown."""
        return self.window(peer) // _QUESTIONS

    def fits(self, peer: Peer, size: int) -> bool:
        """Return whether `size` more bytes may be requested."""
        line = self._lines.get(peer)
        return not line or not line.under_way or line.under_way + size <= line.window

    def ask(self, peer: Peer, size: int, now: float) -> Asked:
        """Record a question for about `size` bytes, and set its timeout."""
        line = self._line(peer)
        line.under_way += size
        patience = max(1.0, line.under_way / line.window) * 2 ** min(line.silences, _MOST_DOUBLED)
        wait = self._wait * patience + (line.quickest if line.quickest < inf else 0.0)
        return Asked(line, size, now, max(self._wait, min(wait, MOST_WAIT)))

    def came(self, asked: Asked, size: int, now: float) -> None:
        """Record an answer of `size` bytes; an answer without data has 0, and is no measurement."""
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
        """Record that no answer came; a call given up before its timeout is no measurement."""
        asked.line.under_way -= asked.size
        if now - asked.when >= _IN_TIME * asked.wait and _narrow(asked, now):
            asked.line.silences += 1

    def _line(self, peer: Peer) -> _Line:
        line = self._lines.pop(peer, None) or _Line()
        self._lines[peer] = line  # ordered by the time of the last question
        if len(self._lines) > _MOST_KNOWN:
            idle = (one for one, known in self._lines.items() if not known.under_way)
            if (oldest := next(idle, None)) is not None:
                del self._lines[oldest]
        return line


def _narrow(asked: Asked, now: float) -> bool:
    """Halve a window, unless it was halved after this question was asked; return whether it was."""
    line = asked.line
    if asked.when < line.narrowed:
        return False
    line.window, line.narrowed = max(line.window // 2, LEAST), now
    return True
