"""Placement: which storage peers own each shard, by bounded weighted rendezvous hashing.

Every peer computes the placement by itself, and all must get the same result, bit for bit.

1. A peer's share of the replicas is proportional to its capacity, up to one replica of every shard,
   and up to `MOST_MEANS` times the mean share, because capacity is only claimed.
2. A peer orders all shards by a permutation that its id seeds, and asks for the shard in place r at
   the time E(r) / weight. A shard's owners are the first R peers that ask for it. E(r), the sum of
   1/N + 1/(N - 1) + ... over r places, is the mean of the r-th least of N exponential draws. So on
   average this is weighted rendezvous hashing, with a third of the spread of independent draws.
3. A peer owns at most `BOUND` times its share. Beyond that, it rejects the shards that it asked for
   last, and the next peers in line get them. The result does not depend on the order of rejections:
   it is the unique stable matching that is best for shards.
4. A shard that too many peers reject goes to those that asked for it first, in spite of their
   bounds, because replication matters more than balance.
5. A swarm may raise its number of replicas (see `edition`). Then the owners by the manifest stay
   owners, and each further replica goes to the first peer in line that has none yet. So the owners
   by a lower number of replicas remain owners by a higher one: raising it takes no shard from a
   peer, and peers that know different numbers agree on all owners by the lower one.
6. A swarm may double its number of shards. Then a peer orders the shards of the manifest by its
   permutation, and asks for the children of each one after the other, in an order of its own. So
   children stay with the owners of their parent, unless a bound or a smaller share separates them.
   If they were placed independently, nearly all shards of a large swarm would move. The price: the
   draw stays as coarse as by the manifest, so if peers own fewer than some fifty parents each, a
   join moves up to twice as much.

A join or leave changes all shares slightly and in proportion, and with them what each peer rejects,
so hardly more shards move than must (measure it with `python -m tests.benchmarks.placement`). That
requires some 200 shards per peer; with 200 peers and 60 shards each, a fifth more move than must.

Two peers whose results differed in one bit would disagree on owners. So this code uses no
logarithm, which every libm rounds differently, and no sum of floats, which numpy computes in an
order that depends on the processor. It uses integers, single +, * and / of float64, which IEEE 754
rounds alike everywhere, and sorts of distinct keys.
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
from giaann_p2p.swarm.wire.identity import PEER_BYTES, Peer
from giaann_p2p.swarm.wire.record import MOST_CAPACITY
from giaann_p2p.swarm.wire.shardset import recounted

Owners = npt.NDArray[np.uint16]
"""Owners of shards, as indices into the ascending list of peers."""
Excluded = Mapping[int, frozenset[Peer]]
"""The peers that may not own a shard, by shard (see `exclusion`)."""
Floats = npt.NDArray[np.float64]

MOST_PEERS = 1 << 16
BOUND = 1.085
"""Maximum number of shards that a peer owns, in multiples of its share. A lower value moves more
shards when a peer joins, a higher one fills peers less evenly. Rounding of capacities adds to the
unevenness."""
MOST_MEANS = 16
"""Maximum share of a peer, in multiples of the mean share, whatever capacity the peer declares. So
a hundredth of a swarm's peers gets at most a sixth of the replicas by exaggerating. Trade-off: a
lower value limits that more, but uses honest large peers less, and fills small peers instead. It
matters only in swarms of more than 16 R peers. A multiple of the median would defend no better, and
would move many shards whenever the median changes from one common size to the next."""
_CAPACITY_BITS = 7
_FURTHER_ROUNDS = 16
"""Maximum number of rounds in which peers reject requests. Respecting all bounds might take
thousands of rounds if few peers have room for a further replica; after this many, hardly any peer
exceeds its bound, and only by a few percent."""
_NEVER = np.uint32(0xFFFFFFFF)
_ONE = 1 << 40
_ROUNDS = 4
_WORDS = 2 * _ROUNDS + 1
_BLOCK = 1 << 18
_EMPTY = np.empty(0, np.uint16)


class Moved(NamedTuple):
    """The shards that a peer gains (and must fetch) and loses (and may drop), ascending."""

    gains: Shards
    loses: Shards


class Placement:
    """The owners of every shard.

    Invariant: a placement depends on the members only, not on the order in which they are given.
    """

    def __init__(
        self,
        peers: tuple[Peer, ...],
        shares: Floats,
        matrix: Owners,
        replicas: int,
        excluded: Excluded | None = None,
        founded: int = 0,
        first: int = 0,
    ) -> None:
        self.peers = peers
        """All members, ascending."""
        self.replicas, self.founded = replicas, founded or replicas
        """Number of owners that a shard should have now, and that it should have by the manifest;
        it has fewer if there are fewer peers."""
        self.first = first or len(matrix)
        """Number of shards by the manifest."""
        self.shares = shares
        """Shape [P]: how many shards each peer should own, usually a fraction."""
        self.owner_matrix = matrix
        """Shape [N, R]: each shard's owners, best first, as indices into `peers`."""
        self._excluded = excluded or {}
        for array in (shares, matrix):
            array.flags.writeable = False

    @classmethod
    def of(
        cls,
        members: Mapping[Peer, int] | Sequence[tuple[Peer, int]],
        shards: int,
        replicas: int,
        founded: int = 0,
        first: int = 0,
    ) -> "Placement":
        """Place shards on members, given by their ids and capacities in bytes.

        Capacities are rounded down to their seven leading bits. So a small change of a peer's
        capacity usually moves no shard, and no capacity is overrated.

        `founded` is the number of replicas by the swarm's manifest, if it was lower than now; the
        owners by that number come first, then one by one those by higher numbers (rule 5). `first`
        is the number of shards by the manifest, if it was lower than now (rule 6).
        """
        pairs = members.items() if isinstance(members, Mapping) else members
        peers = tuple(sorted(pairs))
        _check(peers, shards, replicas)
        return _placed(peers, shards, replicas, min(founded or replicas, replicas), first or shards)

    def __repr__(self) -> str:
        shards, replicas = self.owner_matrix.shape
        return f"<Placement: {shards:,} shards x {replicas} on {len(self.peers):,} peers>"

    def owners(self, shard: int) -> tuple[Peer, ...]:
        """Return a shard's owners, best first."""
        return tuple(self.peers[at] for at in self.owner_matrix[shard].tolist())

    def excluded(self, shard: int) -> frozenset[Peer]:
        """Return the peers that may not own a shard, because their replica of it is wrong."""
        return self._excluded.get(shard, frozenset())

    def shards_of(self, peer: Peer) -> Shards:
        """Return the shards that a peer owns, ascending; none if it is not a member."""
        at = self._places.get(peer)
        if at is None:
            return _EMPTY
        owned, ends = self._owned
        return owned[ends[at] : ends[at + 1]]

    def moves(self, other: "Placement") -> dict[Peer, Moved]:
        """Return what each peer gains and loses when `other` replaces this placement.

        If `other` has more shards, the owners of a shard here count as owners of its children.
        """
        found, (count, then) = {}, (len(self.owner_matrix), len(other.owner_matrix))
        for peer in sorted({*self.peers, *other.peers}):
            before, after = recounted(self.shards_of(peer), count, then), other.shards_of(peer)
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
        """The shards of all peers, concatenated, and the offset at which those of each peer begin.

        The last offset is the end.
        """
        flat = self.owner_matrix.ravel()
        order = np.argsort(flat, kind="stable")
        owned = (order // max(1, self.owner_matrix.shape[1])).astype(np.uint16)
        owned.flags.writeable = False
        return owned, np.searchsorted(flat[order], np.arange(len(self.peers) + 1))


def _check(members: tuple[tuple[Peer, int], ...], shards: int, replicas: int) -> None:
    if not 1 <= shards <= MOST_SHARDS or shards & (shards - 1):
        raise UsageError(
            f"the number of shards must be a power of two up to {MOST_SHARDS}, not {shards}"
        )
    if replicas < 1:
        raise UsageError(f"a shard must have at least one replica, not {replicas}")
    if len(members) > MOST_PEERS:
        raise UsageError(f"shards can be placed on {MOST_PEERS:,} peers, not on {len(members):,}")
    for peer, capacity in members:
        if len(peer) != PEER_BYTES:
            raise UsageError(f"a peer's id has {PEER_BYTES} bytes, not {len(peer)}")
        if capacity < 1:
            raise UsageError(f"{peer.hex()} cannot own anything with a capacity of {capacity}")
    if len({peer for peer, _ in members}) < len(members):
        raise UsageError("a peer is listed twice, perhaps with two capacities; list it once")


# Many callers ask for the same members, above all in a simulator with many peers.
@lru_cache(maxsize=32)
def _placed(
    members: tuple[tuple[Peer, int], ...], shards: int, replicas: int, founded: int, first: int
) -> Placement:
    peers = tuple(peer for peer, _ in members)
    shares = _shares([_rounded(capacity) for _, capacity in members], shards, replicas)
    least = min(replicas, len(peers))
    taken: Owners = np.empty((shards, 0), np.uint16)  # shape [N, R]: the owners so far, best first
    if replicas > founded:
        taken = _placed(members, shards, replicas - 1, founded, first).owner_matrix
    if (lacks := least - taken.shape[1]) > 0:
        taken = np.hstack([taken, _further(taken, lacks, shares, peers, first)])
    return Placement(peers, shares, taken, replicas, founded=founded, first=first)


def _further(
    taken: Owners, more: int, shares: Floats, peers: tuple[Peer, ...], first: int
) -> Owners:
    """Return `more` owners of each shard besides those that it has already, best first."""
    shards, so_far = taken.shape
    seeds = np.frombuffer(b"".join(map(_seed, peers)), "<u4").reshape(len(peers), _WORDS)
    owned = np.bincount(taken.ravel(), minlength=len(peers))
    room = np.maximum(_bounds(shares, shards) - owned, 0)
    asking = _Asking(shares, seeds, shards, first)
    until = (so_far + more + 5.0 + shards.bit_length()) / (so_far + more)
    while True:
        asked, is_all = asking.until(until)
        asked = _without(asked, taken)
        held = _match(asked, room, shards, more, _FURTHER_ROUNDS)
        lacking = np.flatnonzero(np.bincount(asked.shard[held], minlength=shards) < more)
        if is_all or not len(lacking):
            break
        until *= 2
    for shard in lacking.tolist():
        _fill(held, asked, shard, more)
    return asked.peer[held].reshape(shards, more)


def _rounded(capacity: int) -> int:
    low = max(0, min(capacity, MOST_CAPACITY).bit_length() - _CAPACITY_BITS)
    return min(capacity, MOST_CAPACITY) >> low << low


@lru_cache(maxsize=1 << 14)
def _seed(peer: Peer) -> bytes:
    return hashlib.blake2b(peer, digest_size=4 * _WORDS, person=b"giaann placing").digest()


def _shares(capacities: list[int], shards: int, replicas: int) -> Floats:
    """Return how many shards each peer should own, by its capacity and up to the cap for a peer.

    Sums are of integers, in units of 1/P shard for P peers, so that all machines agree.
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
    """Return the maximum number of shards of each peer, never below its share, rounded up."""
    return np.minimum(np.maximum(np.ceil(shares), np.floor(shares * BOUND)), shards).astype(int)


@lru_cache(maxsize=8)
def _times(shards: int) -> Floats:
    """Return E(0) to E(N) of the module's docstring: integers, in units of 2^-40, as float64."""
    steps = _ONE // np.arange(shards, 0, -1, dtype=np.int64)
    return np.concatenate([[0], np.cumsum(steps)]).astype(np.float64)


class _Asked(NamedTuple):
    """The requests of peers for shards, sorted by shard, then by time."""

    shard: Shards
    time: npt.NDArray[np.uint32]
    """Times of the requests, as the bits of a float32: positive floats sort like their bits."""
    peer: Owners


def _without(asked: _Asked, taken: Owners) -> _Asked:
    """Return the requests, except those for shards that the asking peer owns already."""
    owns = np.zeros(len(asked.shard), np.bool_)
    for owner in taken.T:
        owns |= owner[asked.shard] == asked.peer
    return _Asked(asked.shard[~owns], asked.time[~owns], asked.peer[~owns]) if owns.any() else asked


class _Asking:
    """Computes the peers' requests for shards."""

    def __init__(
        self, shares: Floats, seeds: npt.NDArray[np.uint32], shards: int, first: int
    ) -> None:
        self._times, self._seeds, self._shards = _times(shards), seeds, shards
        self._first, self._doublings = first, (shards // first).bit_length() - 1
        # A peer that should own the fraction p of all shards has asked for them by the time 1 if
        # its weight is -ln(1 - p), which is about E(share).
        whole = np.minimum(shares.astype(np.int64), shards - 1)  # shape [P]
        below, above = self._times[whole], self._times[whole + 1]
        self._weights = below + (shares - whole) * (above - below)
        self._phases = seeds[:, -1] / float(1 << 32)
        self._steps = np.diff(self._times)

    def until(self, time: float) -> tuple[_Asked, bool]:
        """Return the requests up to a time, and whether there are no later ones."""
        ends = time * self._weights  # shape [P]
        counts = np.searchsorted(self._times[:-1], ends)
        last = np.maximum(counts - 1, 0)
        counts -= self._times[last] + self._phases * self._steps[last] > ends
        keys: Ids = np.empty(counts.sum(), np.uint64)
        # Process some peers at a time, so that `keys` is the only long array.
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
        """Return shard, time and peer of each request of some peers, packed into 64 bits."""
        starts = np.cumsum(counts) - counts
        place = np.arange(counts.sum()) - np.repeat(starts, counts)  # shape [A]
        # Each peer has its own phase between two places; equal peers would often tie otherwise.
        asked = self._times[place] + np.repeat(self._phases[peers], counts) * self._steps[place]
        time = (asked / np.repeat(self._weights[peers], counts)).astype(np.float32)
        shard = self._ordered(place, peers, counts)
        keys = shard.astype(np.uint64) << np.uint64(48)
        keys |= time.view(np.uint32).astype(np.uint64) << np.uint64(16)
        keys |= np.repeat(peers, counts).astype(np.uint64)
        return keys

    def _ordered(self, place: Ints, peers: Ints, counts: Ints) -> npt.NDArray[np.uint32]:
        """Return the shards at some places of each peer's permutation.

        Each step maps the shards one to one, so the result is a permutation, too. It permutes the
        shards of the manifest; the lowest bits of a place select one of the children.
        """
        bits = self._first.bit_length() - 1
        half, mask = np.uint32(max(1, bits // 2)), np.uint32(self._first - 1)
        shard = (place >> self._doublings).astype(np.uint32)
        for factor in range(0, 2 * _ROUNDS, 2):
            odd, offset = self._seeds[peers, factor] | np.uint32(1), self._seeds[peers, factor + 1]
            shard *= np.repeat(odd, counts)
            shard += np.repeat(offset, counts)
            flips = shard >> np.uint32(16) if self._doublings else shard
            shard &= mask
            shard ^= shard >> half
        for level in range(self._doublings):
            which = (place >> (self._doublings - 1 - level)).astype(np.uint32)
            which ^= flips >> np.uint32(level)
            shard |= (which & np.uint32(1)) << np.uint32(bits + level)
        return shard


def _match(
    asked: _Asked, bounds: Ints, shards: int, replicas: int, rounds: int = 0
) -> npt.NDArray[np.bool_]:
    """Return which requests are granted, one flag each: R per shard, no peer over its bound.

    After this number of `rounds` it stops, even if peers are over their bounds; 0 for no limit.
    """
    last = np.full(len(bounds), _NEVER)  # shape [P]: each peer rejects later requests than this
    firsts = np.searchsorted(asked.shard, np.arange(shards))
    has_room = bounds > 0  # shape [P]
    is_any_full = not has_room.all()
    done = 0
    while True:
        stands = asked.time <= last[asked.peer]
        if is_any_full:
            stands &= has_room[asked.peer]
        held = _first(stands, asked.shard, firsts, replicas)
        owned = np.bincount(asked.peer[held], minlength=len(bounds))
        over = owned > bounds
        done += 1
        if not over.any() or done == rounds:
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
    """Return a flag per request: whether it is among the first R of its shard that still stand."""
    so_far = np.cumsum(stands, dtype=np.int32)  # shape [A]
    before = np.concatenate([so_far, so_far[-1:]])[firsts] - np.append(stands, False)[firsts]
    held: npt.NDArray[np.bool_] = stands & (so_far - before[shard] <= replicas)
    return held


def _fill(held: npt.NDArray[np.bool_], asked: _Asked, shard: int, replicas: int) -> None:
    """Give a shard that lacks owners to the peers that asked for it first, despite their bounds."""
    first, end = np.searchsorted(asked.shard, [shard, shard + 1])
    others = first + np.flatnonzero(~held[first:end])
    held[others[: replicas - np.count_nonzero(held[first:end])]] = True
