"""Decides which delta of a chunk counts: the one that enough peers computed independently.

1. Each peer has one vote on a chunk: its latest result.
2. At least `redundancy` peers must agree (the swarm or its user sets that number), and at least two
   if the chunk is drawn for a check or if results differ. They must also outnumber the peers that
   disagree.
3. Voters do not know each other's votes. If no other peer can be asked, a single result suffices,
   provided that redundancy is 1 and no peer has disagreed.
"""

from typing import NamedTuple

from giaann_p2p.errors import MessageError
from giaann_p2p.swarm.training.trust import Trust
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.training_messages import Result
from giaann_p2p.swarm.wire.voucher import Voucher, is_true

_PAIR = 2


class Verdict(NamedTuple):
    """The decision on which delta of a chunk counts."""

    vouchers: list[Voucher]
    """The signatures of the peers that agreed on that delta."""
    liars: list[Peer]
    """The peers that reported a different delta."""


class DeltaAgreement:
    """The compute peers' votes on which deltas of one job's open chunks count."""

    def __init__(
        self, swarm_id: bytes, job: bytes, redundancy: int, share: float, trust: Trust
    ) -> None:
        """Begin; at least a `share` of the chunks is checked, more for newcomers (see `Trust`)."""
        self._swarm_id, self._job = swarm_id, job
        self._redundancy, self._share, self._trust = redundancy, share, trust
        self._said: dict[int, dict[Peer, Result]] = {}
        self._checked: set[int] = set()
        self.checks = 0
        """Number of committed chunks that more than one peer has learned, so far."""

    def __repr__(self) -> str:
        return f"<DeltaAgreement: votes on {len(self._said)} chunks>"

    def hear(self, peer: Peer, result: Result) -> None:
        """Record a peer's result for a chunk; MessageError unless the peer signed it."""
        said = result.voucher
        if said.author != peer or not is_true(
            said, self._swarm_id, self._job, result.chunk, result.root
        ):
            raise MessageError("voucher: this result is not signed by the peer that reports it")
        words = self._said.setdefault(result.chunk, {})
        if not words and self._trust.draws(peer, self._job, result.chunk, self._share):
            self._checked.add(result.chunk)
        words[peer] = result

    def is_disputed(self, chunk: int) -> bool:
        """Return whether peers have reported different results for a chunk."""
        return len({result.root for result in self._said[chunk].values()}) > 1

    def verdict(self, peer: Peer, chunk: int, is_last: bool) -> Verdict | None:
        """Return the decision on a chunk if `peer`'s result for it wins; None until it does.

        `is_last` means that no other peer can be asked to learn the chunk.
        """
        words = self._said[chunk]
        right = [one for one, result in words.items() if result.root == words[peer].root]
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
        """Discard all votes of a peer that lied, on every chunk."""
        for words in self._said.values():
            words.pop(peer, None)

    def close(self, chunk: int) -> None:
        """Close the vote on a committed chunk.

        If several peers learned the chunk, trust in all of them grows if their results agree, and
        is reset to that of a newcomer if they differ.
        """
        words = self._said.pop(chunk, {})
        self._checked.discard(chunk)
        if len(words) < _PAIR:
            return
        self.checks += 1
        agreed = len({result.root for result in words.values()}) == 1
        for peer in words:  # a late vote may differ from the committed delta
            (self._trust.was_right if agreed else self._trust.in_doubt)(peer)

    def _needed(self, chunk: int, disputed: bool) -> int:
        least = _PAIR if disputed or chunk in self._checked else 1
        return max(self._redundancy, least)
