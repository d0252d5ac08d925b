"""How many bytes to ask of a peer at once, and how long to wait for them, by how long others took.

Nobody says how much a line carries. So little is asked for first, and more as it comes soon:

1. What was asked of a peer and is still to come is to fit into its window; one question always may.
2. What came soon makes the window wider by as much, so with every round twice as wide; but only by
   a quarter of it once the window was too wide.
3. What came late, or not in time, makes it half as wide: once for all that was asked before that.
4. Soon and late are meant beyond the quickest answer so far: what a busy peer needs anyway, it
   needs however little it is asked for.
5. A window's worth may take as long as any answer, beyond the quickest; more of it longer in
   proportion; twice as long after each time that nothing came.
"""

from dataclasses import dataclass
from math import inf

from giaann_p2p.swarm.identity import Peer

FIRST = 1 << 16
"""Bytes to be asked for of a peer of whom nothing has come yet."""
_QUESTIONS = 4
_SLOWLY = 4
LEAST = 1 << 14
MOST = 1 << 22
MOST_WAIT = 60.0
"""Seconds."""
_SOON, _LATE = 0.125, 0.375
"""Of the time that an answer may take."""
_MOST_DOUBLED = 4
_IN_TIME = 0.9
"""Of the time for an answer, from where on it is over: clocks round."""
_MOST_KNOWN = 256
"""Peers; they come and go."""


@dataclass(slots=True)
class _Line:
    """To a peer."""

    window: int = FIRST
    under_way: int = 0
    quickest: float = inf
    narrowed: float = -inf
    """When it was made narrower last."""
    silences: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """A question under way."""

    line: _Line
    size: int
    when: float
    wait: float
    """Seconds in which it is to be answered."""


class Flow:
    """`wait` is how long any answer may take."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._lines: dict[Peer, _Line] = {}

    def __repr__(self) -> str:
        under_way = sum(line.under_way for line in self._lines.values())
        return f"<Flow: {under_way:,} bytes under way from {len(self._lines)} peers>"

    def window(self, peer: Peer) -> int:
        """Return how many bytes may be under way from a peer."""
        line = self._lines.get(peer)
        return line.window if line else FIRST

    def share(self, peer: Peer) -> int:
        """Return what one of some questions should take, as long as nobody knows better."""
        return self.window(peer) // _QUESTIONS

    def fits(self, peer: Peer, size: int) -> bool:
        """Tell whether so many more bytes may be asked for."""
        line = self._lines.get(peer)
        return not line or not line.under_way or line.under_way + size <= line.window

    def ask(self, peer: Peer, size: int, now: float) -> Asked:
        """Note that so many bytes are asked for, about."""
        line = self._line(peer)
        line.under_way += size
        patience = max(1.0, line.under_way / line.window) * 2 ** min(line.silences, _MOST_DOUBLED)
        wait = self._wait * patience + (line.quickest if line.quickest < inf else 0.0)
        return Asked(line, size, now, max(self._wait, min(wait, MOST_WAIT)))

    def came(self, asked: Asked, size: int, now: float) -> None:
        """Note that so many bytes came; none if something else did, which tells nothing."""
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
        """Note that nothing came; what was given up before its time tells nothing."""
        asked.line.under_way -= asked.size
        if now - asked.when >= _IN_TIME * asked.wait and _narrow(asked, now):
            asked.line.silences += 1

    def _line(self, peer: Peer) -> _Line:
        line = self._lines.pop(peer, None) or _Line()
        self._lines[peer] = line  # the last ones asked are the last
        if len(self._lines) > _MOST_KNOWN:
            idle = (one for one, known in self._lines.items() if not known.under_way)
            if (oldest := next(idle, None)) is not None:
                del self._lines[oldest]
        return line


def _narrow(asked: Asked, now: float) -> bool:
    """Make a window half as wide, unless it was since this was asked for."""
    line = asked.line
    if asked.when < line.narrowed:
        return False
    line.window, line.narrowed = max(line.window // 2, LEAST), now
    return True
