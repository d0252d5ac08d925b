"""Which rows a reader asks a second peer for, and when enough peers have told the same.

A share of all rows is *sampled*: drawn from hashes of the neuron, the question's number and the
reader's salt, which nobody else knows. So no peer can tell which of its rows will be compared, nor
with whose. The comparison runs beside the answer, which waits for nothing.

With a share of 1 every row is put to the *vote* before it is returned, and one that no majority
stands behind never is: rather the question fails. Replicas may honestly differ for a moment, while
an update has reached one and not yet the other. Then they are asked again, and soon a majority has
told the same row. Of a row that changes all the time, peers may never say quite the same. So who
was asked often enough in vain stands behind a row that lies between two of its own, too: what it
said first has grown into that row, and that into what it said last. Not before: for between two
rows of an honest peer a liar finds one that never was.

Who is silent has no vote, but lends it to nobody: a majority is one of all owners that there
should be, but those who say that they do not serve the shard. Else whoever cut a reader off from
the others had a majority by itself.

What this cannot do: where more than half of a shard's owners lie alike, or one of two, nobody can
tell from the rows who is right. With three replicas, it takes two liars that agree.
"""

import hashlib
import struct
from collections.abc import Collection, Sequence
from typing import NamedTuple

from giaann_p2p.errors import UsageError
from giaann_p2p.model.rows import Answer, Neuron, Row
from giaann_p2p.swarm.electors import majority
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.likeness import grown, same

SALT_BYTES = 16
USUAL = 0.02
"""Share of the rows that is compared unless somebody wants it otherwise."""
_HASHES = 1 << 64
_STRIKES = 2
"""How often in vain a peer is asked before its word is waited for no longer."""
_OFTEN = 5
"""How often a peer is asked before it stands behind rows that it did not tell: about a second."""


class Verify(NamedTuple):
    """How much of what is read is compared."""

    share: float = 0.0
    """Of all rows: 1 puts all of them to the vote, 0 compares none."""
    salt: bytes = b""
    """Bytes of chance that nobody else knows."""

    @property
    def all(self) -> bool:
        """Whether every row is put to the vote."""
        return self.share >= 1

    @property
    def sampled(self) -> bool:
        """Whether some rows are compared, beside the answer."""
        return 0 < self.share < 1


NOTHING = Verify()


def checked(verify: Verify) -> Verify:
    """Return it; UsageError names what cannot be."""
    if not 0 <= verify.share <= 1:
        raise UsageError(f"verify: the share of rows must be from 0 to 1; it is {verify.share}")
    if 0 < verify.share < 1 and len(verify.salt) < SALT_BYTES:
        raise UsageError(
            f"verify: to draw rows that nobody foresees takes {SALT_BYTES} bytes of chance as salt;"
            f" there are {len(verify.salt)}"
        )
    return verify


def sample(verify: Verify, number: int, neurons: Sequence[Neuron]) -> list[Neuron]:
    """Return those of a question's neurons that are to be compared."""
    below, numbers = int(verify.share * _HASHES), _numbers(verify, number)
    return [neuron for neuron in neurons if _hash(numbers, *neuron) < below]


def partner(verify: Verify, number: int, shard: int, peers: Collection[Peer]) -> Peer | None:
    """Return with whom a peer's rows are compared; None if there is nobody."""
    if not peers:
        return None
    return sorted(peers)[_hash(_numbers(verify, number), shard, 0) % len(peers)]


def _numbers(verify: Verify, number: int) -> tuple[int, int, int]:
    """Return what a question's draws are made with: numbers that nobody else can know."""
    data, key = struct.pack("<Q", number), verify.salt[: hashlib.blake2b.MAX_KEY_SIZE]
    one, other, third = struct.unpack(
        "<3Q", hashlib.blake2b(data, digest_size=24, key=key).digest()
    )
    return one | 1, other | 1, third


def _hash(numbers: tuple[int, int, int], one: int, other: int) -> int:
    """Multiply and add: its high bits are even enough, and it takes a fraction of a hash's time."""
    return (numbers[0] * one + numbers[1] * other + numbers[2]) % _HASHES


class Said(NamedTuple):
    """What a peer said of some neurons, when it was asked first and when last."""

    first: Answer
    last: Answer
    times: int
    """How often it was asked."""


class Ballot:
    """A vote on the rows of some neurons of one shard."""

    def __init__(
        self, voters: Collection[Peer], doubted: Collection[Peer], replicas: int = 0
    ) -> None:
        self._voters, self._strikes = set(voters), dict.fromkeys(doubted, 1)
        self._replicas = max(replicas, len(voters))
        self._moved: set[Peer] = set()
        self.said: dict[Peer, Said] = {}

    def heard(self, peer: Peer, rows: Answer) -> None:
        """Note an answer."""
        self._moved.discard(peer)
        known = self.said.get(peer)
        if known is None:
            self.said[peer] = Said(rows, rows, 1)
        else:
            self.said[peer] = Said(known.first, rows, known.times + 1)

    def silent(self, peer: Peer) -> None:
        """Note that a peer did not answer, or nothing that counts."""
        self._strikes[peer] = self._strikes.get(peer, 0) + 1

    def moved(self, peer: Peer) -> None:
        """Note that a peer does not serve the shard."""
        self._strikes[peer] = _STRIKES
        self._moved.add(peer)

    @property
    def electorate(self) -> set[Peer]:
        """Whose word counts: all voters that may still answer; nobody being left, who told."""
        left = {
            peer
            for peer in self._voters
            if peer in self.said or self._strikes.get(peer, 0) < _STRIKES
        }
        return left or set(self.said)

    @property
    def need(self) -> int:
        """How many must stand behind a row: silence is no consent, and makes no majority less."""
        return majority(self._replicas - len(self._moved & self._voters) or len(self.electorate))

    def result(self) -> Answer | None:
        """Return the rows; None as long as no majority stands behind one of them."""
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
        """What voters said first."""
        return {peer: said.first for peer, said in self.said.items() if peer in self._voters}

    def disputed(self) -> list[int]:
        """Return which of the rows voters told differently."""
        told = list(self.first.values())
        return differing(*told) if told else []


def differing(one: Answer, *others: Answer) -> list[int]:
    """Return where answers to the same question are not the same."""
    return [at for at, row in enumerate(one) if not all(same(row, other[at]) for other in others)]


def _elected(votes: list[Said], at: int, need: int) -> list[Row | None]:
    """Return the one row that enough stand behind, the latest that there is, or nothing."""
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
    told = said.times >= _OFTEN or same(first, row)
    return told and grown(first, row) and grown(row, last)
