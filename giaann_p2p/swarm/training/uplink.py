"""How long a large push may take: at first as long as over a thin line, later as the last one did.

A small push has a fixed time. If a large one had no more, it would time out over a thin line each
time: its bytes would leave again and again, and its chunk would never be committed. So it has more
time in proportion to its bytes. Once one was answered, the next has a multiple of what that one
took per byte, so that a dead peer is noticed soon on a fast line. If one is not answered in time,
the line may have become thinner, and the next one has more time again.

Several large pushes at once would share a thin line, and all of them would be late. So while the
line is thin, or nothing is known of it, a large push should wait for the one under way. Pushes to a
suspected peer are left out of all this: its silence shows nothing about the line.
"""

from typing import NamedTuple

LARGE = 128 << 10
"""Size in bytes up to which a push is small."""
_THIN = 8 / 0.5e6
"""Seconds that a byte takes over a thin line, of 0.5 Mbit/s."""
_SLOWEST, _FASTEST = 4 * _THIN, 1e-6
"""Maximum and minimum number of seconds that a byte may take, whatever pushes took before. A holder
needs some time for each byte, too."""
_SPARE = 4
"""The time that a large push has, as a multiple of what the last one took per byte. More: fewer
bytes are sent twice when the line or a peer is busy. Less: a dead peer is noticed sooner."""
_NEARLY = 0.9
"""The part of its time after which a push that failed was late. One that failed earlier shows
nothing about the line, because its peer was not reached, or turned it away."""


def thin_line(size: float) -> float:
    """Return the seconds that `size` bytes take over a thin line; 0 if they are few."""
    return size * _THIN if size > LARGE else 0.0


class Sending(NamedTuple):
    """A push that is under way."""

    size: int
    since: float
    within: float
    """Timeout of the push, in seconds."""
    tells: bool
    """Whether its end will show how fast the line is."""


class Uplink:
    """The pace of this peer's large pushes. Invariant: _FASTEST <= _pace <= _SLOWEST."""

    def __init__(self) -> None:
        self._pace = _THIN
        """Seconds that each byte of a large push may take."""
        self._under_way = 0
        """Number of pushes under way that are large and tell of the line."""

    def __repr__(self) -> str:
        return f"<Uplink: {self._under_way} under way, {1e6 * self._pace:.3g} s a megabyte>"

    def is_taken(self, size: float) -> bool:
        """Return whether a push of about `size` bytes should wait for one that is under way."""
        return size > LARGE and self._under_way > 0 and self._pace > _THIN / 2

    def more(self, size: int) -> float:
        """Return the seconds that a push of `size` bytes has beyond those of a small one."""
        return size * self._pace if size > LARGE else 0.0

    def begin(self, size: int, within: float, now: float, is_suspected: bool) -> Sending:
        """Begin a push of `size` bytes; `within` is the timeout of a small one."""
        tells = size > LARGE and not is_suspected
        self._under_way += tells
        return Sending(size, now, within + self.more(size), tells)

    def end(self, sending: Sending, now: float, was_answered: bool) -> None:
        """Learn from a push that was answered, or given up."""
        if not sending.tells:
            return
        self._under_way -= 1
        seconds = now - sending.since
        if was_answered:
            self._pace = min(_SLOWEST, max(_FASTEST, _SPARE * seconds / sending.size))
        elif seconds >= _NEARLY * sending.within:
            self._pace = min(_SLOWEST, max(_THIN, 2 * self._pace))
