"""Load balancing: reads of a shard are shared among its replicas that are about equally quick.

If each reader kept to the quickest replica, that one would serve nearly all reads of a shard, and
soon be no quicker than the others. So among the peers that may be asked:
1. a peer's expected wait is its usual latency. The wait is longer while the peer hangs, which means
   that a call to it is late, and for a second after the peer answered that it is busy;
2. a peer without samples is taken to be as quick as the quickest one, so that it is tried;
3. those whose wait is about the shortest share the reads: a peer that hangs comes last, and one
   with fewer open calls comes first. Ties are broken by the peer's turn: a hash of the question,
   the peer and the reader. All parts of a question that may go to the same peers take the same
   turn, so they travel in one message.
"""

import hashlib
from collections.abc import Sequence

from giaann_p2p.swarm.reading.latency import Latencies
from giaann_p2p.swarm.wire.identity import Peer

_ALIKE, _ALIKE_SECONDS = 2.0, 0.005
"""A peer is about as quick as the quickest one if its wait is at most this multiple of the
shortest, plus these seconds. More would share the reads more evenly, and answer them more
slowly."""
_BUSY = 1.0
"""Seconds for which a peer that refused as busy counts as slow, and its expected wait until
then."""


class Loads:
    """The reader's open calls to each peer, and which peers answered that they are busy."""

    def __init__(self, latencies: Latencies, reader: Peer) -> None:
        self._latencies, self._reader = latencies, reader
        self._open: dict[Peer, list[float]] = {}
        """When each open call to a peer was made, the earliest first; no entry without a call."""
        self._busy: dict[Peer, float] = {}
        """The time until which a peer counts as slow; it may have passed."""

    def began(self, peer: Peer, now: float) -> None:
        """Note that a call to a peer was made."""
        self._open.setdefault(peer, []).append(now)

    def ended(self, peer: Peer, began: float, now: float, *, busy: bool) -> None:
        """Note that a call made at the time `began` ended; `busy` if the peer refused for now."""
        calls = self._open[peer]
        calls.remove(began)
        if not calls:
            del self._open[peer]
        took = now - began
        if busy:
            self._busy = {one: until for one, until in self._busy.items() if until > now}
            self._busy[peer] = now + _BUSY
        if not busy or took > self._latencies.usual(peer, now):  # a quick refusal shows no latency
            self._latencies.took(peer, took, now)

    def open(self, peer: Peer) -> int:
        """Return the number of open calls to a peer."""
        return len(self._open.get(peer, ()))

    def choice(self, peers: Sequence[Peer], question: int, now: float) -> Peer:
        """Return which of some peers to ask for rows of a question; there must be at least one."""
        usual = self._latencies.usual_of(peers, now)
        waits = {peer: self._wait(peer, usual[peer], now) for peer in peers}
        most = _ALIKE * min(waits.values()) + _ALIKE_SECONDS
        alike = [peer for peer in peers if waits[peer] <= most]

        def order(peer: Peer) -> tuple[bool, int, bytes]:
            return self._hangs(peer, now), self.open(peer), self._turn(question, peer)

        return min(alike, key=order)

    def _wait(self, peer: Peer, usual: float, now: float) -> float:
        """Return the expected seconds until a peer answers."""
        if self._hangs(peer, now):
            usual = max(usual, now - self._open[peer][0])
        return max(usual, _BUSY) if self._busy.get(peer, now) > now else usual

    def _hangs(self, peer: Peer, now: float) -> bool:
        """Return whether the answer to an open call to a peer is late."""
        calls = self._open.get(peer)
        return calls is not None and now - calls[0] >= self._latencies.late(peer, now)

    def _turn(self, question: int, peer: Peer) -> bytes:
        """Return a peer's turn; a CRC would give one of three replicas half of the turns."""
        data = b"%d %b %b" % (question, self._reader, peer)
        return hashlib.blake2b(data, digest_size=8).digest()
