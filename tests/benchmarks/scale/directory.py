"""What the directory costs: records that are told and read again and again."""

import numpy as np

from giaann_p2p.node.members.lookout import interval
from giaann_p2p.node.options import Options
from giaann_p2p.swarm.members.directory import MOST_RECORDS
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.pulse import (
    BARE_BYTES,
    MOST_PULSES,
    PULSE_SECONDS,
    joined,
    pulse_of,
    split,
)
from giaann_p2p.swarm.wire.record import (
    BUCKETS,
    LIFETIME,
    Announcement,
    Load,
    bucket_of,
    next_sequence,
    read,
    signed,
)
from giaann_p2p.swarm.wire.shardset import packed
from tests.benchmarks.scale.swarms import (
    GIB,
    SHARDS,
    fitting,
    identities,
    members,
    placement,
    spread,
)
from tests.benchmarks.scale.tables import Cells, number, size

SWARM = bytes(range(32))
NOW = 1_800_000_000
A_MINUTE = 60 * 3 // LIFETIME
"""How often a peer posts its record or a pulse: each third of a lifetime."""
_ASKED = 2
"""DHT nodes that a look asks for each bucket; `net.hive.board` has that number."""
_NEWS = 12
"""The seconds whose news a look brings; `net.hive.board` has that number, too."""
_RENEWED = 60 / (MOST_PULSES * PULSE_SECONDS)
"""How many records a peer signs a minute at rest, because the chains of pulses end."""
HOLDERS = 5
"""DHT nodes that hold a value; hivemind's own number."""
BESIDE = 2 + 32 + 9
"""Bytes of a record's subkey and of its end in the DHT, in MessagePack."""
BARE = BARE_BYTES + 2
"""Bytes of a bare pulse in an answer."""
_SAMPLE = 100
_SEED = b"twelve bytes"
_ADDRESSES = tuple(
    f"/ip4/{host}/tcp/4100/p2p/12D3KooWBmAwcd4PJNJvfV89HwE48nwkRmAgo8Vy3uQEyNNHBox2"
    for host in ("203.0.113.7", "192.168.178.20")
)


def record(peers: int, shards: int, at: int, pulse: int = 0) -> bytes:
    """Return the record of a peer all of whose shards are ready, with one of its pulses."""
    identity, placed = identities(peers)[at], placement(peers, shards)
    announcement = Announcement(
        swarm_id=SWARM,
        peer=identity.peer,
        role="storage",
        incarnation=(1 << 63) + at,
        sequence=next_sequence(NOW),
        issued=NOW,
        capacity=members(peers)[identity.peer],
        used=GIB + at,
        ready=packed(placed.shards_of(identity.peer), shards),
        load=Load(3, 1200, 40, 25),
        addresses=_ADDRESSES,
        anchor=pulse_of(_SEED, identity.peer, 0).link,
    )
    _, alone = split(signed(identity, announcement))
    return joined(pulse_of(_SEED, identity.peer, pulse), alone)


def record_bytes(peers: int, shards: int) -> float:
    """Return how long a record is in the DHT, on average."""
    records = [record(peers, shards, at) for at in spread(peers, _SAMPLE)]
    for data in records[:3]:
        read(data, NOW, SWARM, Rules(shards))  # a real reader takes it
    return float(np.mean([len(data) for data in records])) + BESIDE


def records(peers: int) -> Cells:
    """Return how long a record is."""
    return {f"N = {n:,}": size(record_bytes(peers, n)) for n in SHARDS}


def traffic(peers: int) -> Cells:
    """Return what is posted and read in a minute."""
    one = record_bytes(peers, fitting(peers))
    posts = HOLDERS * (A_MINUTE * (BARE_BYTES + BESIDE) + _RENEWED * one)
    looks = 60 / interval(Options(), peers)
    times = max(_ASKED, _ASKED * looks * _NEWS / 60)  # that each new record comes, in several looks
    heard = peers * (_ASKED * looks * BARE + times * _RENEWED * one)
    buckets = np.bincount([bucket_of(each.peer) for each in identities(peers)], minlength=BUCKETS)
    share = int(buckets.max()) / peers
    news = _ASKED * looks * one * peers
    return {
        "N": f"{fitting(peers):,}",
        "a peer posts, times a minute": number(A_MINUTE),
        f"a peer sends for that, to {HOLDERS} nodes": size(posts),
        "a peer looks, times a minute": number(looks),
        "a peer receives for that, a minute": size(heard),
        "the same if all have news at each post": size(news),
        "fullest bucket (4 MiB are too much)": size(share * peers * one),
        "a node that holds the fullest bucket sends, a minute": size(
            share * heard * peers / HOLDERS
        ),
        "records that a directory has no room for": f"{max(0, peers - MOST_RECORDS):,}",
    }
