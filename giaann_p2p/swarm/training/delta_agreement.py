"""Which delta of a chunk counts: the one that enough peers computed independently.

1. A peer has one vote on a chunk, its latest.
2. `redundancy` peers must agree (a setting of the swarm or its user); at least two if the chunk is
   drawn for a check or disputed. They must also outnumber the peers that disagree.
3. Voters do not know each other's votes. If no other peer can be asked, a single result suffices if
   redundancy is 1 and no peer has disagreed.
"""

from typing import NamedTuple

from giaann_p2p.errors import MessageError
from giaann_p2p.swarm.training.trust import Trust
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import Came
from giaann_p2p.swarm.wire.voucher import Voucher, is_true

_PAIR = 2


class Verdict(NamedTuple):
    """The decision on a chunk."""

    vouchers: list[Voucher]
    """Signatures of the peers that agreed."""
    liars: list[Peer]
    """Peers that computed a different delta."""


class DeltaAgreement:
    """The votes on the open chunks of one job."""

    def __init__(
        self, swarm_id: bytes, job: bytes, redundancy: int, share: float, trust: Trust
    ) -> None:
        """Begin; check at least a `share` of the chunks, and more of newcomers' (see `Trust`)."""
        self._swarm_id, self._job = swarm_id, job
        self._redundancy, self._share, self._trust = redundancy, share, trust
        self._said: dict[int, dict[Peer, Came]] = {}
        self._checked: set[int] = set()
        self.checks = 0
        """Number of committed chunks that more than one peer has learned."""

    def __repr__(self) -> str:
        return f"<DeltaAgreement: words on {len(self._said)} chunks>"

    def hear(self, peer: Peer, came: Came) -> None:
        """Record a peer's result for a chunk; MessageError unless that peer signed it."""
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
        """Return whether peers reported different results for a chunk."""
        return len({came.root for came in self._said[chunk].values()}) > 1

    def verdict(self, peer: Peer, chunk: int, is_last: bool) -> Verdict | None:
        """Return the decision for a peer's result; None while more votes are needed.

        `is_last`: no other peer can be asked.
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
        """Discard all votes of a liar, those on other chunks included."""
        for words in self._said.values():
            words.pop(peer, None)

    def close(self, chunk: int) -> None:
        """Close a committed chunk; confirm the peers that learned it, or reset their trust."""
        words = self._said.pop(chunk, {})
        self._checked.discard(chunk)
        if len(words) < _PAIR:
            return
        self.checks += 1
        agreed = len({came.root for came in words.values()}) == 1
        for peer in words:  # a late vote may differ from the committed delta
            (self._trust.was_right if agreed else self._trust.in_doubt)(peer)

    def _needed(self, chunk: int, disputed: bool) -> int:
        least = _PAIR if disputed or chunk in self._checked else 1
        return max(self._redundancy, least)
