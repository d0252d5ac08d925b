"""Which delta of a chunk counts: the one that enough peers came to, each by itself.

1. A peer has one word on a chunk, the last one that it gave.
2. As many as the swarm or its user asks for have to agree; if a chunk is checked, or if there are
   two opinions of it, two at least, and more than are of any other.
3. Who is asked does not know what others said. Where there is nobody else to ask, what one peer
   says does if it was only to be checked, and if nobody has said anything else.
"""

from typing import NamedTuple

from giaann_p2p.errors import MessageError
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import Came
from giaann_p2p.swarm.trust import Trust
from giaann_p2p.swarm.voucher import Voucher, is_true

_PAIR = 2


class Verdict(NamedTuple):
    """What a chunk comes to."""

    vouchers: list[Voucher]
    liars: list[Peer]
    """Who came to something else."""


class Jury:
    """Of one job."""

    def __init__(
        self, swarm_id: bytes, job: bytes, redundancy: int, share: float, trust: Trust
    ) -> None:
        """Have a share of the chunks checked, and more of those whom nobody knows."""
        self._swarm_id, self._job = swarm_id, job
        self._redundancy, self._share, self._trust = redundancy, share, trust
        self._said: dict[int, dict[Peer, Came]] = {}
        self._checked: set[int] = set()
        self.checks = 0
        """Chunks so far that were learned by more than one peer."""

    def __repr__(self) -> str:
        return f"<Jury: words on {len(self._said)} chunks>"

    def hear(self, peer: Peer, came: Came) -> None:
        """Take in what a peer came to; MessageError if it does not stand for it."""
        said = came.voucher
        if said.author != peer or not is_true(
            said, self._swarm_id, self._job, came.chunk, came.root
        ):
            raise MessageError("came: this is not signed by who tells it")
        words = self._said.setdefault(came.chunk, {})
        if not words and self._trust.draws(peer, self._job, came.chunk, self._share):
            self._checked.add(came.chunk)
        words[peer] = came

    def is_disputed(self, chunk: int) -> bool:
        """Tell whether there are two opinions."""
        return len({came.root for came in self._said[chunk].values()}) > 1

    def verdict(self, peer: Peer, chunk: int, is_last: bool) -> Verdict | None:
        """Tell whether what a peer came to counts; None if it is not known yet.

        `is_last`: there is nobody else who could be asked.
        """
        words = self._said[chunk]
        right = [one for one, came in words.items() if came.root == words[peer].root]
        liars = [one for one in words if one not in right]
        agreed = len(right) >= self._needed(chunk, bool(liars)) and len(right) > len(liars)
        waived = is_last and not liars and self._redundancy == 1
        if not (agreed or waived):
            return None
        for liar in liars:
            self._trust.lied(liar)
            self.forget(liar)
        right.sort(key=lambda one: one != peer)
        return Verdict([words[one].voucher for one in right[: self._redundancy]], liars)

    def forget(self, peer: Peer) -> None:
        """Let a liar's words on other chunks count for nothing."""
        for words in self._said.values():
            words.pop(peer, None)

    def close(self, chunk: int) -> None:
        """Take in that a chunk is committed."""
        words = self._said.pop(chunk, {})
        self._checked.discard(chunk)
        if len(words) < _PAIR:
            return
        self.checks += 1
        agreed = len({came.root for came in words.values()}) == 1
        for peer in words:  # one who came late may have come to something else
            (self._trust.was_right if agreed else self._trust.in_doubt)(peer)

    def _needed(self, chunk: int, disputed: bool) -> int:
        least = _PAIR if disputed or chunk in self._checked else 1
        return max(self._redundancy, least)
