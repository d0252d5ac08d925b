"""The swarms of which the tables tell: their peers, and who owns what."""

import random
from functools import cache

from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.wire.identity import Identity, Peer

PEERS = (100, 1_000, 10_000)
SHARDS = (256, 4_096, 65_536)
REPLICAS = 3
QUORUM = 2
MODELS = {"1 GB": 10**9, "32 GB": 32 * 10**9, "1 TB": 10**12, "1 PB": 10**15}
"""Bytes of a model, before it is replicated."""
LINKS = (10e6, 50e6, 125e6)
"""Bytes a second that a peer can send, and as many that it can receive."""
LEAST_SHARDS = 16
"""So many a peer, on average, or peers are filled unevenly."""
GIB = 1 << 30


def fitting(peers: int) -> int:
    """Return the least number of shards that is enough for so many peers."""
    enough = (shards for shards in SHARDS if REPLICAS * shards >= LEAST_SHARDS * peers)
    return next(enough, SHARDS[-1])


@cache
def identities(peers: int) -> list[Identity]:
    """Return the keys of so many peers, the same each time."""
    rng = random.Random(peers)
    return [Identity.from_seed(rng.randbytes(32)) for _ in range(peers)]


@cache
def members(peers: int) -> dict[Peer, int]:
    """Return peers with unequal capacities: 1 to 8 GiB, drawn at random."""
    rng = random.Random(peers + 1)
    return {one.peer: round(rng.uniform(1, 8) * GIB) for one in identities(peers)}


@cache
def placement(peers: int, shards: int) -> Placement:
    """Return who owns what."""
    return Placement.of(members(peers), shards, REPLICAS)


def spread(peers: int, count: int) -> list[int]:
    """Return so many places among the peers, evenly apart."""
    return [at * peers // count for at in range(min(count, peers))]
