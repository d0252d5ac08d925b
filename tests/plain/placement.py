"""Placement in plain Python, as its rules read: shards ask peer after peer, peers turn down.

It is the yardstick for the fast one, so it shares no code with it.
"""

import hashlib
import math
import random
import struct
from fractions import Fraction

ONE = 1 << 40
Members = dict[bytes, int]


def rounded(capacity: int) -> int:
    """Keep the seven leading bits."""
    step = 1
    while capacity // step >= 128:
        step *= 2
    return capacity // step * step


def shares(members: Members, shards: int, replicas: int) -> dict[bytes, float]:
    """Return how many shards each peer is to own."""
    weights = {peer: rounded(min(capacity, 1 << 47)) for peer, capacity in members.items()}
    full: set[bytes] = set()
    most = min(Fraction(shards), Fraction(16 * replicas * shards, max(1, len(members))))
    while True:
        left = replicas * shards - len(full) * most
        rest = sum(weights[peer] for peer in weights if peer not in full)
        more = {p for p in weights if p not in full and left * weights[p] >= most * rest}
        if not more:
            break
        full |= {max(more, key=lambda peer: weights[peer])}
    each = float(left)
    return {p: float(most) if p in full else float(w) * each / rest for p, w in weights.items()}


def place(
    members: Members, shards: int, replicas: int, rng: random.Random, first: int = 0
) -> list[list[bytes]]:
    """Return each shard's owners, best first; `first` shards there were by the manifest."""
    share = shares(members, shards, replicas)
    peers = sorted(members)
    times = {peer: _times(peer, share[peer], shards, first or shards) for peer in peers}
    bound = {p: min(shards, max(math.ceil(s), math.floor(s * 1.085))) for p, s in share.items()}
    least = min(replicas, len(peers))
    # Each shard goes through its list of peers, from the one that asks first.
    lists = [sorted(peers, key=lambda p, s=s: (times[p][s], p)) for s in range(shards)]
    asked = [0] * shards  # so many of its list each shard has tried
    owned: dict[bytes, set[int]] = {peer: set() for peer in peers}
    owners: list[set[bytes]] = [set() for _ in range(shards)]
    free = set(range(shards))
    while free:
        shard = rng.choice(sorted(free))  # in any order: it makes no difference
        if len(owners[shard]) == least or asked[shard] == len(peers):
            free.discard(shard)
            continue
        peer = lists[shard][asked[shard]]
        asked[shard] += 1
        owned[peer].add(shard)
        owners[shard].add(peer)
        if len(owned[peer]) > bound[peer]:
            worst = max(owned[peer], key=lambda s, p=peer: times[p][s])
            owned[peer].discard(worst)
            owners[worst].discard(peer)
            free.add(worst)
    for shard in range(shards):  # whom all turned down
        others = [peer for peer in lists[shard] if peer not in owners[shard]]
        owners[shard] |= set(others[: least - len(owners[shard])])
    return [[peer for peer in lists[s] if peer in owners[s]] for s in range(shards)]


def _times(peer: bytes, share: float, shards: int, first: int) -> dict[int, float]:
    """Return when a peer asks for each shard."""
    expected = [0]
    for left in range(shards, 0, -1):
        expected.append(expected[-1] + ONE // left)
    whole = min(int(share), shards - 1)
    weight = expected[whole] + (share - whole) * (expected[whole + 1] - expected[whole])
    digest = hashlib.blake2b(peer, digest_size=36, person=b"giaann placing").digest()
    words = struct.unpack("<9I", digest)
    found = {}
    for place in range(shards):
        step = expected[place + 1] - expected[place]
        time = (expected[place] + words[8] / 2**32 * step) / weight
        (found[_ordered(place, words, shards, first)],) = struct.unpack(
            "<f", struct.pack("<f", time)
        )
    return found


def _ordered(place: int, words: tuple[int, ...], shards: int, first: int) -> int:
    half = max(1, (first.bit_length() - 1) // 2)
    children = shards // first
    shard = place // children
    for turn in range(4):
        mixed = (shard * (words[2 * turn] | 1) + words[2 * turn + 1]) % 2**32
        shard = mixed % first
        shard ^= shard >> half
    # From the first doubling to the last, each halves what is left of the place among children.
    place, step, flips = place % children, first, mixed >> 16
    while children > 1:
        children //= 2
        upper, place = divmod(place, children)
        if (upper + flips) % 2:
            shard += step
        step, flips = 2 * step, flips >> 1
    return shard
