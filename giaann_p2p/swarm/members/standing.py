"""Standing: how long this peer has seen each other storage peer, which sets newcomers apart.

A peer's own claims do not count here, because any peer can announce any capacity and any age. Each
peer keeps a book of its own instead, and saves it across restarts. A peer that joins gets
*standing* once it has been seen for a day, or for half as long as the oldest peer in the book,
whichever is shorter. So peers that begin a swarm together have it within seconds.

Standing decides two things about data (see `held_beside` and `Writer`): each shard has its replicas
at peers with standing, beside those of newcomers, and an update is committed only when a holder
with standing has it. So peers that join and vanish, however large and in however young a swarm,
take no data with them. It also decides how fast an author may teach, but not while the whole book
is younger than `founding` seconds: in the first minutes of a swarm, many new authors are normal,
and not a flood.

A peer that is caught lying loses no seconds. But it does not count as a keeper of anything while
audits by most owners of a shard, with standing themselves, find its replica wrong (see
`PeersView.keeps`). A failed proof does not count, because it is one peer's word against another's,
and either may have the bad disk. A lost vote on rows does not count either, because newcomers that
own most replicas of a shard would win the vote against the shard's keepers.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.wire.actions import Note
from giaann_p2p.swarm.wire.identity import PEER_BYTES, Peer
from giaann_p2p.swarm.wire.record import LIFETIME, MOST_LIFETIME

DAY = 24 * 3600.0
"""Maximum number of seconds until a peer that joins has standing."""
FOUNDING = 600.0
"""Age of the book of standing, in seconds, below which all peers may teach at the full rate."""
NOTE = "standing"
"""Key under which a store saves the book of standing."""
NOTED_EVERY = 300.0
"""Maximum number of seconds between two saves of the book of standing."""
_NOTED_FIRST, _NOTED_PART = 10.0, 4
"""Seconds between the first two saves; and the divisor of the book's age that gives the seconds
between later saves. Frequent saves in a young swarm let a restarted peer tell earlier peers from
the ones that joined meanwhile."""
MOST_PEERS = 1 << 14
"""Maximum number of peers in a book of standing. The peer that was seen for the shortest time is
evicted first, so a flood of strangers never evicts a peer with standing."""
MOST_BYTES = 64 * MOST_PEERS
"""Maximum length of an encoded book of standing, in bytes."""
_TIME = Peer(b"")
"""Marks the entry with the time at which a book was saved; earlier releases ignore that entry."""
_Seconds = Annotated[int, msgspec.Meta(ge=0, lt=1 << 48)]


class Standing:
    """One peer's book: for how many seconds it has seen each storage peer.

    Invariant: the seconds of a peer only grow while it is in the book.
    """

    def __init__(
        self,
        me: Peer,
        needed: float = DAY,
        founding: float = FOUNDING,
        seen: Mapping[Peer, float] | None = None,
    ) -> None:
        """Open a book of standing; `seen` holds the seconds for which earlier runs saw each peer.

        `needed` and `founding` are in seconds; their defaults are DAY and FOUNDING.
        """
        self.me = me
        self._needed, self._founding = needed, founding
        self._seen: dict[Peer, float] = dict(seen or {})
        self.oldest = max(self._seen.values(), default=0.0)
        """Longest time for which any peer, this one included, has been seen, in seconds."""
        self._last: dict[Peer, float] = {}  # time at which each peer was last heard, in this run
        self._now = 0.0  # time at which any peer was last heard, in this run
        self._saved = 0.0  # time at which the book was saved in an earlier run
        self._before: set[Peer] = set()  # peers of earlier runs, until they are heard in this one
        self._until = 0.0  # a peer of earlier runs heard by this time was never away
        self._noted = 0.0  # `oldest` at the last note

    def __len__(self) -> int:
        return len(self._seen)

    def __repr__(self) -> str:
        return f"<Standing: {len(self):,} peers, the oldest seen for {self.oldest:,.0f} s>"

    @property
    def threshold(self) -> float:
        """Seconds for which a peer must have been seen to have standing."""
        return min(self._needed, self.oldest / 2)

    @property
    def is_young(self) -> bool:
        """Whether nobody has been seen for longer than the first minutes of a swarm."""
        return self.oldest < self._founding

    def heard(self, peer: Peer, now: float) -> None:
        """Note a peer's record, and credit it with the time since its last one.

        A gap of more than MOST_LIFETIME seconds does not count, because the peer was away.
        """
        gap = now - self._last.get(peer, now)
        seen = self._seen.get(peer, 0.0) + (gap if 0 <= gap <= MOST_LIFETIME else 0.0)
        if self._before:
            seen += self._meanwhile(peer, now)
        self._last[peer] = self._now = now
        self._seen[peer], self.oldest = seen, max(self.oldest, seen)
        if len(self._seen) > MOST_PEERS:
            self._forget(min(self._seen, key=self._seen.__getitem__))

    def _meanwhile(self, peer: Peer, now: float) -> float:
        """Return the seconds to credit to a peer that was seen before and after this one's restart.

        It was probably alive meanwhile, unlike peers that joined in that time. But its seconds at
        most double, so a peer that was seen only once does not gain a month.
        """
        if not self._last:
            self._until = now + LIFETIME
        elif now > self._until:
            self._before.clear()  # the peers not heard by now were away, too
        if peer not in self._before:
            return 0.0
        self._before.remove(peer)
        return max(0.0, min(now - self._saved, self._seen.get(peer, 0.0)))

    def has(self, peer: Peer) -> bool:
        """Return whether a peer has standing; this peer itself always does."""
        return peer == self.me or self.seconds(peer) >= self.threshold

    def seconds(self, peer: Peer) -> float:
        """Return for how many seconds a peer has been seen.

        The time since its last record counts, too, while that record is valid. Otherwise the random
        order in which records arrive would decide which peers have standing in the first seconds.
        """
        since = self._now - self._last.get(peer, self._now)
        return self._seen.get(peer, 0.0) + (min(since, LIFETIME) if since > 0 else 0.0)

    def copy(self) -> "Standing":
        """Return a copy of the book of standing, which another thread may read."""
        seen = {peer: self.seconds(peer) for peer in self._seen}
        return Standing(self.me, self._needed, self._founding, seen)

    def restore(self, data: bytes) -> None:
        """Add the seconds of a book that `packed` returned in an earlier run.

        UsageError if the book is malformed.
        """
        for peer, seconds in _unpacked(data):
            if peer == _TIME:
                self._saved = seconds
            else:
                self._seen[peer] = self._seen.get(peer, 0.0) + seconds
                self._before.add(peer)
        if not self._saved:  # an earlier release saved no time
            self._before.clear()
        self._noted = self.oldest = max(self._seen.values(), default=0.0)

    def packed(self) -> bytes:
        """Encode the book of standing, so that it can be saved across a restart."""
        seen = [(peer, int(s)) for peer, s in self._seen.items()]
        return msgspec.msgpack.encode([(_TIME, max(0, int(self._now))), *seen])

    def note(self) -> list[Note]:
        """Return an order to save the book if that is due; otherwise an empty list."""
        pause = min(NOTED_EVERY, max(_NOTED_FIRST, self._noted / _NOTED_PART))
        if self.oldest < self._noted + pause:
            return []
        self._noted = self.oldest
        return [Note(NOTE, self.packed())]

    def _forget(self, peer: Peer) -> None:
        del self._seen[peer]
        self._last.pop(peer, None)


def _unpacked(data: bytes) -> Iterator[tuple[Peer, float]]:
    try:
        pairs = msgspec.msgpack.decode(data, type=list[tuple[bytes, _Seconds]])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"the book of known peers cannot be read: {error}") from None
    for peer, seconds in pairs[: MOST_PEERS + 1]:
        if len(peer) == PEER_BYTES or peer == _TIME:
            yield Peer(peer), float(seconds)
