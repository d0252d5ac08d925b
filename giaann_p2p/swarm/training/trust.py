"""Trust in compute peers: their work is checked at random, less often as more of it proves right.

A chunk is checked by having another peer learn it, too. A delta is pushed only when the coordinator
orders it, and a worker does not know whether its chunk is checked. So a worker cannot behave well
only when it is watched.

1. A newcomer's first chunk is always checked. The chance falls to 1/4, then 1/9, and so on as its
   work proves right, but never below `share`, so a peer that lies occasionally is found in the end.
2. The random draw depends on a secret seed, so no other peer can predict it.
3. A commit is a worker's claim, too. If a worker claims to have committed a chunk, but in the end
   no owner has the chunk, the worker gets no more chunks, as if it had lied.
"""

import hashlib
from collections import Counter

from giaann_p2p.swarm.wire.identity import Peer

_PART = 8
_ALL = float(1 << 8 * _PART)


class Trust:
    """One coordinator's trust in each of its workers; `seed` must be secret."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._right = Counter[Peer]()
        self._liars: dict[Peer, int] = {}
        self._idle: set[Peer] = set()

    def __repr__(self) -> str:
        idle = f", {len(self._idle)} brought nothing" if self._idle else ""
        return f"<Trust: {len(self._right)} peers were right, {len(self._liars)} lied{idle}>"

    @property
    def liars(self) -> dict[Peer, int]:
        """The peers whose results others contradicted, each with how often that happened."""
        return dict(self._liars)

    def draws(self, peer: Peer, job: bytes, chunk: int, share: float) -> bool:
        """Return whether to check a peer's work on a chunk; always False if `share` is 0."""
        said = b"".join([peer, job, chunk.to_bytes(4, "little")])
        drawn = hashlib.blake2b(said, digest_size=_PART, key=self._seed).digest()
        chance = max(share, 1 / (1 + self._right[peer]) ** 2) if share else 0.0
        return int.from_bytes(drawn, "little") / _ALL < chance

    def was_right(self, peer: Peer) -> None:
        """Record that others confirmed a peer's result."""
        self._right[peer] += 1

    def in_doubt(self, peer: Peer) -> None:
        """Treat a peer like a newcomer again, because one of its results is in doubt."""
        self._right.pop(peer, None)

    def lied(self, peer: Peer) -> None:
        """Record that others contradicted a peer's result."""
        self.in_doubt(peer)
        self._liars[peer] = self._liars.get(peer, 0) + 1

    def brought_nothing(self, peer: Peer) -> None:
        """Record that no owner has a chunk that a peer claims to have committed."""
        self.in_doubt(peer)
        self._idle.add(peer)

    def sends_away(self, peer: Peer) -> bool:
        """Return whether a peer gets no more chunks, because it lied or committed nothing."""
        return peer in self._liars or peer in self._idle
