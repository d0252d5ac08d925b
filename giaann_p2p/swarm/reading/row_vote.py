"""Verification of rows: which rows are compared between peers, and when a vote accepts a row.

A share of all rows is *sampled*, by hashes of the neuron, the question's number and the reader's
secret salt. So no peer can predict which of its rows will be compared, nor with which peer. The
comparison runs in the background, and does not delay the answer.

With a share of 1 every row is put to the *vote* before it is returned. A row that no majority
supports is never returned; the question fails instead. Replicas may honestly differ briefly, while
an update has reached one but not the other. Then they are asked again, and soon a majority returns
the same row.

But peers may never return quite the same version of a row that changes all the time. So a peer
whose own row has changed several times also supports each row that its first answer may have grown
into, and that may have grown into its last answer. Other peers do not. Otherwise a liar could
insert a row that never existed between the two rows of an honest peer that was behind and caught
up; if the third owner is away, that row would be accepted.

A peer that is silent, or does not serve the shard yet, has no vote, but still counts for the
majority, which is more than half of all owners that the shard should have. Otherwise an attacker
that cuts a reader off from the other owners would be a majority by itself.

Limit: if more than half of a shard's owners tell the same lie, or if one of two owners lies, the
rows do not show which peer is right. With three replicas, that takes two liars that agree.
"""

import hashlib
import struct
from collections.abc import Collection, Sequence
from typing import NamedTuple

from giaann_p2p.errors import UsageError
from giaann_p2p.model.rows import Answer, Neuron, Row
from giaann_p2p.swarm.members.majority import majority
from giaann_p2p.swarm.reading.row_match import grown, same
from giaann_p2p.swarm.wire.identity import Peer

SALT_BYTES = 16
"""Minimum length of a reader's secret salt, in bytes."""
USUAL = 0.02
"""Default share of all rows that are compared between peers, from 0 to 1."""
_HASHES = 1 << 64
_STRIKES = 2
"""Number of failed calls to a peer after which a vote no longer waits for that peer."""
_OFTEN = 4
"""Number of changes of a peer's row after which the peer also supports versions between its first
and last answer. Seeing that many changes takes one answer more, about a second."""


class Verify(NamedTuple):
    """A reader's setting for the verification of rows: the share to compare, and a secret salt."""

    share: float = 0.0
    """Share of all rows that are compared: 1 puts all of them to a vote, 0 compares none."""
    salt: bytes = b""
    """Random bytes that only this reader knows."""

    @property
    def all(self) -> bool:
        """Whether every row is put to a vote."""
        return self.share >= 1

    @property
    def sampled(self) -> bool:
        """Whether some rows are compared in the background."""
        return 0 < self.share < 1


NOTHING = Verify()


def checked(verify: Verify) -> Verify:
    """Validate a setting for the verification of rows, and return it; UsageError if it is wrong."""
    if not 0 <= verify.share <= 1:
        raise UsageError(f"verify: the share of rows must be from 0 to 1; it is {verify.share}")
    if 0 < verify.share < 1 and len(verify.salt) < SALT_BYTES:
        raise UsageError(
            f"verify: the salt must have {SALT_BYTES} random bytes or more, so that nobody can"
            f" predict the sample; it has {len(verify.salt)}"
        )
    return verify


def sample(verify: Verify, number: int, neurons: Sequence[Neuron]) -> list[Neuron]:
    """Return the neurons of a question whose rows are to be compared with another peer's."""
    below, numbers = int(verify.share * _HASHES), _numbers(verify, number)
    return [neuron for neuron in neurons if _hash(numbers, *neuron) < below]


def partner(verify: Verify, number: int, shard: int, peers: Collection[Peer]) -> Peer | None:
    """Return which of some peers to compare a shard's rows with; None if there are no peers."""
    if not peers:
        return None
    return sorted(peers)[_hash(_numbers(verify, number), shard, 0) % len(peers)]


def _numbers(verify: Verify, number: int) -> tuple[int, int, int]:
    """Return three secret numbers, from which the sample of a question's rows is drawn."""
    data, key = struct.pack("<Q", number), verify.salt[: hashlib.blake2b.MAX_KEY_SIZE]
    one, other, third = struct.unpack(
        "<3Q", hashlib.blake2b(data, digest_size=24, key=key).digest()
    )
    return one | 1, other | 1, third


def _hash(numbers: tuple[int, int, int], one: int, other: int) -> int:
    """Return a cheap 64-bit hash: multiply and add make the high bits uniform enough to sample."""
    return (numbers[0] * one + numbers[1] * other + numbers[2]) % _HASHES


class Said(NamedTuple):
    """A peer's first and last answers in a vote on some rows."""

    first: Answer
    last: Answer
    changes: tuple[int, ...]
    """For each row, the number of answers in which it differed from the answer before."""


class Ballot:
    """A vote on the rows of some neurons of one shard."""

    def __init__(
        self,
        voters: Collection[Peer],
        doubted: Collection[Peer],
        replicas: int = 0,
        serving: Collection[Peer] = (),
    ) -> None:
        """Open a vote of the `voters`.

        `doubted`: peers that recently failed to answer. `replicas`: number of owners that the shard
        should have. `serving`: peers that announce the shard as ready.
        """
        self._serving = set(serving)
        self._voters, self._strikes = set(voters), dict.fromkeys(doubted, 1)
        self._replicas = max(replicas, len(voters))
        self._moved: set[Peer] = set()
        self.said: dict[Peer, Said] = {}

    def heard(self, peer: Peer, rows: Answer) -> None:
        """Note the rows that a peer returned for the vote."""
        self._moved.discard(peer)
        known = self.said.get(peer)
        if known is None:
            self.said[peer] = Said(rows, rows, (0,) * len(rows))
        else:
            pairs = zip(known.changes, known.last, rows, strict=True)
            changes = tuple(count + (not same(old, new)) for count, old, new in pairs)
            self.said[peer] = Said(known.first, rows, changes)

    def silent(self, peer: Peer) -> None:
        """Note that a peer gave no valid answer to a call for the rows of the vote."""
        self._strikes[peer] = self._strikes.get(peer, 0) + 1

    def moved(self, peer: Peer) -> None:
        """Note that a peer does not serve the shard whose rows are voted on."""
        self._strikes[peer] = _STRIKES
        self._moved.add(peer)

    @property
    def electorate(self) -> set[Peer]:
        """The peers whose votes count: all voters that have answered or may still answer.

        If there are none, all peers that have answered.
        """
        left = {
            peer
            for peer in self._voters | self._instead
            if peer in self.said or self._strikes.get(peer, 0) < _STRIKES
        }
        return left or set(self.said)

    @property
    def need(self) -> int:
        """Number of votes that a row needs: a majority of the owners that the shard should have.

        The number does not shrink while owners are silent, or still fetch the shard. Otherwise a
        liar would win alone while the others come back from a restart. If more peers vote, in place
        of owners, it is a majority of them: a few that lie must not win because they come first.
        """
        return majority(max(self._replicas, len(self.electorate)))

    @property
    def _instead(self) -> set[Peer]:
        """Peers that serve the shard without owning it, and vote in place of owners that lack it.

        They vote only if the owners that serve the shard are too few for a majority. Without them
        no row would win until enough newcomers among the owners have fetched the shard.
        """
        moved = self._moved & self._voters
        if not moved or len(self._voters - moved) >= majority(self._replicas):
            return set()
        return self._serving - self._voters - self._moved

    def result(self) -> Answer | None:
        """Return the rows that won the vote; None while a majority is lacking for any of them."""
        electorate = self.electorate
        votes = [said for peer, said in sorted(self.said.items()) if peer in electorate]
        need = self.need
        if len(votes) < need:
            return None
        rows: Answer = []
        for at in range(len(votes[0].last)):
            elected = _elected(votes, at, need)
            if not elected:
                return None
            rows += elected
        return rows

    @property
    def first(self) -> dict[Peer, Answer]:
        """The first answer of each voter that has answered."""
        return {peer: said.first for peer, said in self.said.items() if peer in self._voters}

    def disputed(self) -> list[int]:
        """Return the positions of the rows in which the voters' first answers differ."""
        told = list(self.first.values())
        return differing(*told) if told else []


def differing(one: Answer, *others: Answer) -> list[int]:
    """Return the positions of the rows in which answers to the same question differ."""
    return [at for at, row in enumerate(one) if not all(same(row, other[at]) for other in others)]


def _elected(votes: list[Said], at: int, need: int) -> list[Row | None]:
    """Return a list with the row that `need` votes support; empty if there is none.

    `at` is the position of the row in the answers. Rows of last answers are tried first.
    """
    for row in [said.last[at] for said in votes] + [said.first[at] for said in votes]:
        backing = 0
        for behind, said in enumerate(votes):
            backing += _stands_behind(said, at, row)
            if backing + len(votes) - behind - 1 < need:
                break
        if backing >= need:
            return [row]
    return []


def _stands_behind(said: Said, at: int, row: Row | None) -> bool:
    first, last = said.first[at], said.last[at]
    if last is row or same(last, row):
        return True
    told = said.changes[at] >= _OFTEN or same(first, row)
    return told and grown(first, row) and grown(row, last)
