"""Which storage peers own each shard: rendezvous hashing that everyone computes alone, bit by bit.

1. A peer's share of the replicas goes by its capacity, up to one replica of every shard, and up to
   `MOST_MEANS` times the mean share: capacity is only claimed.
2. A peer puts all shards in an order of its own, which its id seeds, and asks for the one in place
   r at the time E(r) / weight. A shard's owners are the R first who ask for it. E(r), the sum of
   1/N + 1/(N - 1) + ... over r places, is the mean of the r-th least of N exponential draws: on
   average that is weighted rendezvous hashing, with a third of the spread of independent draws.
3. A peer owns at most `BOUND` of its share. Beyond it, it turns down what it asked for last, and
   that goes to whoever asked next. What comes of this depends on no order in which peers turn
   something down: it is the one stable matching that suits shards best.
4. Whom all turn down goes to those who asked first, bound or not: replicas go before balance.

A join or leave shifts all shares a little and in proportion, and with them what each peer turns
down, so that hardly more moves than must: `python -m tests.benchmarks.placement` shows it. That
takes shards enough, some 200 a peer: 200 peers with 60 each move a fifth more than must be moved.

Peers that differed in one bit would dispute over shards. So there is no logarithm here, which
every libm rounds in its own way, and no sum of floats, which numpy takes in an order that depends
on the processor: only whole numbers, single +, * and / of float64, which IEEE 754 rounds alike
everywhere, and sorts of keys that are all different.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from giaann_p2p.errors import UsageError
from giaann_p2p.model.sequence import Ids, Ints
from giaann_p2p.store.layout import MOST_SHARDS, Shards
from giaann_p2p.swarm.identity import PEER_BYTES, Peer

Owners = npt.NDArray[np.uint16]
"""Indices of peers."""
Barred = Mapping[int, frozenset[Peer]]
"""By shard, who does not own it though its turn would be: see `barring`."""
Floats = npt.NDArray[np.float64]

MOST_PEERS = 1 << 16
MOST_CAPACITY = 1 << 47
"""Bytes that count, 128 TiB: whoever declares more gets no more for it."""
BOUND = 1.085
"""The most that a peer owns, in shares; lower moves more on a join, higher fills peers less evenly.
What rounding a capacity can add is on top."""
MOST_MEANS = 16
"""The most that a peer is to own, in mean shares, whatever it declares: a hundredth of a swarm's
peers gets no more than a sixth of it by bragging. Lower: less, but honest peers that are that much
larger than others are used less, and fill the small ones. It takes more than 16 R peers to make a
difference. A multiple of the median would defend no better, and would move many shards whenever the
median goes from one common size to the next."""
_CAPACITY_BITS = 7
_NEVER = np.uint32(0xFFFFFFFF)
_ONE = 1 << 40
_ROUNDS = 4
_WORDS = 2 * _ROUNDS + 1
_BLOCK = 1 << 18
_EMPTY = np.empty(0, np.uint16)


class Moved(NamedTuple):
    """What a peer has to fetch and may drop, ascending."""

    gains: Shards
    loses: Shards


class Placement:
    """The owners of every shard; the same for the same members, in whatever order they come."""

    def __init__(
        self,
        peers: tuple[Peer, ...],
        shares: Floats,
        matrix: Owners,
        replicas: int,
        barred: Barred | None = None,
    ) -> None:
        self.peers = peers
        """All members, ascending."""
        self.replicas = replicas
        """How many owners a shard is to have: it has fewer where there are fewer peers."""
        self.shares = shares
        """[P] how many shards each is to own; as a rule no whole number."""
        self.owner_matrix = matrix
        """[N, R] each shard's owners, best first, by their places among `peers`."""
        self._barred = barred or {}
        for array in (shares, matrix):
            array.flags.writeable = False

    @classmethod
    def of(
        cls, members: Mapping[Peer, int] | Sequence[tuple[Peer, int]], shards: int, replicas: int
    ) -> "Placement":
        """Place shards on members, who are told by their ids with their capacities in bytes.

        Capacities count by their seven leading bits, rounded down: one that is declared anew and
        is nearly the same moves nothing as a rule, and none counts for more than it has.
        """
        pairs = members.items() if isinstance(members, Mapping) else members
        peers = tuple(sorted(pairs))
        _check(peers, shards, replicas)
        return _placed(peers, shards, replicas)

    def __repr__(self) -> str:
        shards, replicas = self.owner_matrix.shape
        return f"<Placement: {shards:,} shards x {replicas} on {len(self.peers):,} peers>"

    def owners(self, shard: int) -> tuple[Peer, ...]:
        """Return a shard's owners, best first."""
        return tuple(self.peers[at] for at in self.owner_matrix[shard].tolist())

    def barred(self, shard: int) -> frozenset[Peer]:
        """Return who is left out of a shard's owners, for what it holds of it is wrong."""
        return self._barred.get(shard, frozenset())

    def owners_of(self, shards: Shards) -> Owners:
        """Return the owners of many shards, [k, R] as in the matrix."""
        return self.owner_matrix[shards]

    def shards_of(self, peer: Peer) -> Shards:
        """Return what a peer owns, ascending; nothing if it is no member."""
        at = self._places.get(peer)
        if at is None:
            return _EMPTY
        owned, ends = self._owned
        return owned[ends[at] : ends[at + 1]]

    def moves(self, other: "Placement") -> dict[Peer, Moved]:
        """Return what every peer gains and loses if `other` takes the place of this placement."""
        found = {}
        for peer in sorted({*self.peers, *other.peers}):
            before, after = self.shards_of(peer), other.shards_of(peer)
            if not np.array_equal(before, after):
                gains = np.setdiff1d(after, before, assume_unique=True)
                loses = np.setdiff1d(before, after, assume_unique=True)
                found[peer] = Moved(gains, loses)
        return found

    @cached_property
    def _places(self) -> dict[Peer, int]:
        return {peer: at for at, peer in enumerate(self.peers)}

    @cached_property
    def _owned(self) -> tuple[Shards, Ints]:
        """All peers' shards behind one another, and where each peer's start and the last's end."""
        flat = self.owner_matrix.ravel()
        order = np.argsort(flat, kind="stable")
        owned = (order // max(1, self.owner_matrix.shape[1])).astype(np.uint16)
        owned.flags.writeable = False
        return owned, np.searchsorted(flat[order], np.arange(len(self.peers) + 1))


def _check(members: tuple[tuple[Peer, int], ...], shards: int, replicas: int) -> None:
    if not 1 <= shards <= MOST_SHARDS or shards & (shards - 1):
        raise UsageError(f"shards must be a power of two up to {MOST_SHARDS}; it is {shards}")
    if replicas < 1:
        raise UsageError(f"a shard has at least one replica, not {replicas}")
    if len(members) > MOST_PEERS:
        raise UsageError(f"shards can be placed on {MOST_PEERS:,} peers, not on {len(members):,}")
    for peer, capacity in members:
        if len(peer) != PEER_BYTES:
            raise UsageError(f"a peer is named by {PEER_BYTES} bytes, not {len(peer)}")
        if capacity < 1:
            raise UsageError(f"{peer.hex()} cannot own anything with a capacity of {capacity}")
    if len({peer for peer, _ in members}) < len(members):
        raise UsageError("a peer is there twice, perhaps with two capacities; name it once")


# Many ask about the same members, foremost where a simulator lets many peers compute it.
@lru_cache(maxsize=32)
def _placed(members: tuple[tuple[Peer, int], ...], shards: int, replicas: int) -> Placement:
    peers = tuple(peer for peer, _ in members)
    shares = _shares([_rounded(capacity) for _, capacity in members], shards, replicas)
    seeds = np.frombuffer(b"".join(map(_seed, peers)), "<u4").reshape(len(peers), _WORDS)
    least = min(replicas, len(peers))
    if least == 0:
        return Placement(peers, shares, np.empty((shards, 0), np.uint16), replicas)
    bounds = _bounds(shares, shards)
    asking, until = _Asking(shares, seeds, shards), (replicas + 5.0 + shards.bit_length()) / least
    while True:
        asked, is_all = asking.until(until)
        held = _match(asked, bounds, shards, least)
        lacking = np.flatnonzero(np.bincount(asked.shard[held], minlength=shards) < least)
        if is_all or not len(lacking):
            break
        until *= 2
    for shard in lacking.tolist():
        _fill(held, asked, shard, least)
    return Placement(peers, shares, asked.peer[held].reshape(shards, least), replicas)


def _rounded(capacity: int) -> int:
    low = max(0, min(capacity, MOST_CAPACITY).bit_length() - _CAPACITY_BITS)
    return min(capacity, MOST_CAPACITY) >> low << low


@lru_cache(maxsize=1 << 14)
def _seed(peer: Peer) -> bytes:
    return hashlib.blake2b(peer, digest_size=4 * _WORDS, person=b"giaann placing").digest()


def _shares(capacities: list[int], shards: int, replicas: int) -> Floats:
    """Return how many shards each peer is to own; those with a share beyond the most own the most.

    It is counted in shards of which as many make one as there are peers: so they are whole numbers.
    """
    full, peers = set[int](), len(capacities)
    order = sorted(range(peers), key=capacities.__getitem__, reverse=True)
    most = min(shards * peers, MOST_MEANS * replicas * shards)
    left, rest = replicas * shards * peers, sum(capacities)
    for at in order:
        if left * capacities[at] < most * rest:
            break
        full.add(at)
        left, rest = left - most, rest - capacities[at]
    weights = np.array(capacities, np.int64).astype(np.float64)
    shares = weights * (float(left) / float(peers)) / float(rest) if rest else weights
    shares[list(full)] = float(most) / float(max(1, peers))
    return shares


def _bounds(shares: Floats, shards: int) -> Ints:
    """Return the most that each peer owns: at least its share, rounded up."""
    return np.minimum(np.maximum(np.ceil(shares), np.floor(shares * BOUND)), shards).astype(int)


@lru_cache(maxsize=8)
def _times(shards: int) -> Floats:
    """Return E(0) to E(N), in units of 2^-40: whole numbers, and exact."""
    steps = _ONE // np.arange(shards, 0, -1, dtype=np.int64)
    return np.concatenate([[0], np.cumsum(steps)]).astype(np.float64)


class _Asked(NamedTuple):
    """Who asks for what and when, in the order of shards, and of times for each shard."""

    shard: Shards
    time: npt.NDArray[np.uint32]
    """The bits of a float32: positive ones stand in the order of their bits."""
    peer: Owners


class _Asking:
    """What peers ask for."""

    def __init__(self, shares: Floats, seeds: npt.NDArray[np.uint32], shards: int) -> None:
        self._times, self._seeds, self._shards = _times(shards), seeds, shards
        # A peer that is to own the part p of all shards asks for them up to the time 1 if its
        # weight is -ln(1 - p), and that is about E(share).
        whole = np.minimum(shares.astype(np.int64), shards - 1)  # [P]
        below, above = self._times[whole], self._times[whole + 1]
        self._weights = below + (shares - whole) * (above - below)
        self._phases = seeds[:, -1] / float(1 << 32)
        self._steps = np.diff(self._times)

    def until(self, time: float) -> tuple[_Asked, bool]:
        """Return what is asked for up to a time, and whether that is all there ever will be."""
        ends = time * self._weights  # [P]
        counts = np.searchsorted(self._times[:-1], ends)
        last = np.maximum(counts - 1, 0)
        counts -= self._times[last] + self._phases * self._steps[last] > ends
        keys: Ids = np.empty(counts.sum(), np.uint64)
        # Some peers at a time: no array but the one of keys is long.
        blocks = np.flatnonzero(np.diff(np.cumsum(counts) // _BLOCK)) + 1
        done = 0
        for part in np.split(np.arange(len(counts)), blocks):
            asked = self._keys(part, counts[part])
            keys[done : done + len(asked)] = asked
            done += len(asked)
        keys.sort()
        shard = (keys >> np.uint64(48)).astype(np.uint16)
        time_bits = (keys >> np.uint64(16)).astype(np.uint32)
        is_all = len(keys) == len(counts) * self._shards
        return _Asked(shard, time_bits, keys.astype(np.uint16)), is_all

    def _keys(self, peers: Ints, counts: Ints) -> Ids:
        """Return shard, time and peer of all that some peers ask for, in 64 bits each."""
        starts = np.cumsum(counts) - counts
        place = np.arange(counts.sum()) - np.repeat(starts, counts)  # [A]
        # A peer asks at its own moment between two places: else those alike would often tie.
        asked = self._times[place] + np.repeat(self._phases[peers], counts) * self._steps[place]
        time = (asked / np.repeat(self._weights[peers], counts)).astype(np.float32)
        shard = self._ordered(place, peers, counts)
        keys = shard.astype(np.uint64) << np.uint64(48)
        keys |= time.view(np.uint32).astype(np.uint64) << np.uint64(16)
        keys |= np.repeat(peers, counts).astype(np.uint64)
        return keys

    def _ordered(self, place: Ints, peers: Ints, counts: Ints) -> npt.NDArray[np.uint32]:
        """Return the shards in some places of peers' orders: a permutation, each step is one."""
        bits = self._shards.bit_length() - 1
        half, mask = np.uint32(max(1, bits // 2)), np.uint32(self._shards - 1)
        shard = place.astype(np.uint32)
        for factor in range(0, 2 * _ROUNDS, 2):
            odd, offset = self._seeds[peers, factor] | np.uint32(1), self._seeds[peers, factor + 1]
            shard *= np.repeat(odd, counts)
            shard += np.repeat(offset, counts)
            shard &= mask
            shard ^= shard >> half
        return shard


def _match(asked: _Asked, bounds: Ints, shards: int, replicas: int) -> npt.NDArray[np.bool_]:
    """Tell who gets what they ask for, with nobody beyond a bound."""
    last = np.full(len(bounds), _NEVER)  # [P] whatever a peer asks for later, it turns down
    firsts = np.searchsorted(asked.shard, np.arange(shards))
    while True:
        held = _first(asked.time <= last[asked.peer], asked.shard, firsts, replicas)
        owned = np.bincount(asked.peer[held], minlength=len(bounds))
        over = owned > bounds
        if not over.any():
            return held
        at = np.flatnonzero(held & over[asked.peer])
        asks = asked.peer[at].astype(np.uint64) << np.uint64(32) | asked.time[at]
        asks.sort()
        full = np.flatnonzero(over)
        starts = np.cumsum(owned[full]) - owned[full]
        last[full] = asks[starts + bounds[full] - 1].astype(np.uint32)


def _first(
    stands: npt.NDArray[np.bool_], shard: Shards, firsts: Ints, replicas: int
) -> npt.NDArray[np.bool_]:
    """Tell which are the R first of their shard among those that stand."""
    so_far = np.cumsum(stands, dtype=np.int32)  # [A]
    before = np.concatenate([so_far, so_far[-1:]])[firsts] - np.append(stands, False)[firsts]
    held: npt.NDArray[np.bool_] = stands & (so_far - before[shard] <= replicas)
    return held


def _fill(held: npt.NDArray[np.bool_], asked: _Asked, shard: int, replicas: int) -> None:
    """Give a shard that lacks owners to those who asked first, whatever their bounds."""
    first, end = np.searchsorted(asked.shard, [shard, shard + 1])
    others = first + np.flatnonzero(~held[first:end])
    held[others[: replicas - np.count_nonzero(held[first:end])]] = True
