"""How far peers are trusted to learn: their work is checked, less often the longer it was right.

To check a chunk is to have it learned by somebody else, too. What was learned is brought to its
owners only when its coordinator says so, and who learned it does not know whether it is checked: so
nobody can be honest only then.

1. A newcomer's first chunk is checked, its second one by a chance of 1/4, then 1/9, and so on, and
   never by less than `share`: a peer that lies now and then is found out in the end.
2. Which ones, nobody can tell who does not have the seed.
3. To bring what was learned is a worker's word, too. Whoever says that a chunk is with its owners,
   and none of them knows of it in the end, learns nothing more, as if it had lied.
"""

import hashlib
from collections import Counter

from giaann_p2p.swarm.identity import Peer

_PART = 8
_ALL = float(1 << 8 * _PART)


class Trust:
    """In all who learn for somebody."""

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
        """Whose word was not what others came to, and how often."""
        return dict(self._liars)

    def draws(self, peer: Peer, job: bytes, chunk: int, share: float) -> bool:
        """Tell whether a peer's work on a chunk is to be checked; nobody's is if share is 0."""
        said = b"".join([peer, job, chunk.to_bytes(4, "little")])
        drawn = hashlib.blake2b(said, digest_size=_PART, key=self._seed).digest()
        chance = max(share, 1 / (1 + self._right[peer]) ** 2) if share else 0.0
        return int.from_bytes(drawn, "little") / _ALL < chance

    def was_right(self, peer: Peer) -> None:
        """Take in that others came to the same as a peer."""
        self._right[peer] += 1

    def in_doubt(self, peer: Peer) -> None:
        """Take in that a peer or another one was wrong: it is checked as a newcomer is."""
        self._right.pop(peer, None)

    def lied(self, peer: Peer) -> None:
        """Take in that others came to something else than a peer."""
        self.in_doubt(peer)
        self._liars[peer] = self._liars.get(peer, 0) + 1

    def brought_nothing(self, peer: Peer) -> None:
        """Take in that owners know nothing of what a peer said it had brought to them."""
        self.in_doubt(peer)
        self._idle.add(peer)

    def sends_away(self, peer: Peer) -> bool:
        """Tell whether a peer is to learn nothing more."""
        return peer in self._liars or peer in self._idle

    def is_liar(self, peer: Peer) -> bool:
        """Tell whether a peer came to something else than others."""
        return peer in self._liars
