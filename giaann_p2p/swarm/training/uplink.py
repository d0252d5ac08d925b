"""Timeouts of large pushes: at first for a thin line, then by how long the peer's last push took.

A small push has a fixed timeout. With the same timeout, a large one would fail over a thin line
each time: its bytes would be sent again and again, and its chunk would never be committed. So its
timeout grows in proportion to its bytes. Once a peer has taken a large push, the next timeout is a
multiple of the time that this push took per byte, so that a dead peer is noticed soon on a fast
line. If a push is not answered in time, the line may have become thinner, and the next timeout is
longer again.

1. Each peer has a pace of its own. A peer nearby, or a hostile one, answers at once over any line,
   and would otherwise make the timeouts of the others too short.
2. A peer whose pace is unknown counts as one on a thin line. If a push to such a peer was late, the
   timeouts of all such peers grow, until a push is taken.
3. Only a push that was taken shows a pace: a refusal may come before the rows do.
4. Several large pushes at once would share a thin line, and all of them would be late. So a push
   over a thin or unknown line waits for the pushes under way there, but not for long: their peers
   may be dead, and the line fast. It waits longer if more are under way, because they share the
   line.

Pushes to a suspected peer are left out of all this: its silence shows nothing about the line.
"""

from typing import NamedTuple

from giaann_p2p.swarm.wire.identity import Peer

LARGE = 128 << 10
"""Size in bytes up to which a push is small."""
_THIN = 8 / 0.5e6
"""Seconds that a byte takes over a thin line, which has 0.5 Mbit/s."""
_SLOWEST, _FASTEST = 4 * _THIN, 1e-6
"""Maximum and minimum number of seconds that a byte may take, however long earlier pushes took. The
minimum leaves the holder some time to process each byte."""
_SPARE = 4
"""Timeout of a large push, as a multiple of the last one's time per byte. More: fewer bytes are
sent twice when the line or a peer is busy. Less: a dead peer is noticed sooner."""
_NEARLY = 0.9
"""Share of its timeout after which a failed push counts as late. An earlier failure shows nothing
about the line, because the peer was not reached, or refused."""
_HELD = 20.0
"""Maximum number of seconds that other pushes wait for a push that has a thin line to itself; they
wait longer if that push shares the line, or if the line is thinner. More: fewer bytes of large
chunks are sent twice over a thin line. Less: a dead peer stalls a chunk for less time."""
_MOST = 4096
"""Maximum number of peers whose pace is remembered; the oldest one is forgotten first."""


class Sending(NamedTuple):
    """A push that is under way."""

    peer: Peer
    size: int
    since: float
    within: float
    """Timeout of the push, in seconds."""
    held: float
    """Maximum number of seconds that other pushes wait for it."""
    tells: bool
    """Whether the end of the push will show how fast the line is."""


class Uplink:
    """The paces of this peer's large pushes: the seconds that each of their bytes may take.

    Invariant: _FASTEST <= pace <= _SLOWEST for each peer, and _THIN <= _unknown <= _SLOWEST.
    """

    def __init__(self) -> None:
        self._paces: dict[Peer, float] = {}
        self._unknown = _THIN
        """The pace of all peers that have none of their own yet."""
        self._under_way: list[Sending] = []
        """The large pushes under way whose ends will show how fast a thin or unknown line is."""

    def __repr__(self) -> str:
        unknown = f"{1e6 * self._unknown:.3g} s a megabyte to others"
        return f"<Uplink: {len(self._under_way)} under way, {len(self._paces)} paces, {unknown}>"

    def is_fast(self, peer: Peer) -> bool:
        """Return whether the line to a peer is known, and so fast that pushes may share it."""
        return self._pace(peer) <= _THIN / 2

    def is_slow(self, peer: Peer) -> bool:
        """Return whether the line to a peer is known, and not fast."""
        return peer in self._paces and not self.is_fast(peer)

    def is_taken(self, size: float, peer: Peer, now: float) -> bool:
        """Return whether a push of about `size` bytes should wait for one that is under way."""
        if size <= LARGE or self.is_fast(peer):
            return False
        return any(now < sending.since + sending.held for sending in self._under_way)

    def more(self, size: float, peer: Peer) -> float:
        """Return by how many seconds the timeout of a push exceeds that of a small one."""
        return size * self._pace(peer) if size > LARGE else 0.0

    def more_from(self, size: float, peer: Peer, courier: Peer, sharing: int = 1) -> float:
        """Return by how many seconds a fetch from a courier may take longer than a small one.

        The courier's line counts as thin, and `sharing` peers share it. But if this peer can send
        the rows sooner, it need not wait for a courier that may serve nobody. Whether it can
        follows from its last push to the peer, or else from that to the courier, although a
        hostile courier may have taken that push in a hurry.
        """
        thin = sharing * size * _THIN if sharing * size > LARGE else 0.0
        if peer in self._paces:
            return min(thin, self.more(size, peer))
        return min(thin, max(_HELD, self.more(size, courier)))

    def begin(
        self, peer: Peer, size: int, within: float, now: float, is_suspected: bool
    ) -> Sending:
        """Begin a push of `size` bytes; `within` is the timeout of a small one."""
        more, tells = self.more(size, peer), size > LARGE and not is_suspected
        held = _HELD * (len(self._under_way) + 1) * max(1.0, self._pace(peer) / _THIN)
        sending = Sending(peer, size, now, within + more, held, tells)
        if tells and not self.is_fast(peer):
            self._under_way.append(sending)
        return sending

    def end(self, sending: Sending, now: float, was_taken: bool) -> bool:
        """Handle a push that was taken, refused or given up; return whether others may proceed."""
        if not sending.tells:
            return False
        peer, seconds = sending.peer, now - sending.since
        if was_taken:
            pace = min(_SLOWEST, max(_FASTEST, _SPARE * seconds / sending.size))
            self._unknown = max(_THIN, min(self._unknown, pace))
            self._learn(peer, pace)
        elif seconds >= _NEARLY * sending.within:
            pace = min(_SLOWEST, max(_THIN, 2 * self._pace(peer)))
            if peer not in self._paces:  # so one silent peer cannot raise it again and again
                self._unknown = pace
            self._learn(peer, pace)
        if sending not in self._under_way:
            return False
        self._under_way.remove(sending)
        return True

    def _pace(self, peer: Peer) -> float:
        return self._paces.get(peer, self._unknown)

    def _learn(self, peer: Peer, pace: float) -> None:
        self._paces.pop(peer, None)
        self._paces[peer] = pace
        if len(self._paces) > _MOST:
            del self._paces[next(iter(self._paces))]
