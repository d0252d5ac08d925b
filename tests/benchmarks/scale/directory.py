"""What the directory costs: records that are told and read again and again."""

from typing import NamedTuple

import numpy as np

from giaann_p2p.net.hive.looks import ASKED, Looks
from giaann_p2p.net.hive.shelf import BOTH, KEY_BYTES
from giaann_p2p.node.members.lookout import interval
from giaann_p2p.node.options import Options
from giaann_p2p.swarm.members.directory import MOST_RECORDS
from giaann_p2p.swarm.members.own_record import USED_EVERY
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.patch import made
from giaann_p2p.swarm.wire.pulse import (
    BARE_BYTES,
    MOST_PULSES,
    PULSE_SECONDS,
    SHORT_BYTES,
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
_RENEWED = 60 / (MOST_PULSES * PULSE_SECONDS)
"""How many records a peer signs a minute at rest, because the chains of pulses end."""
HOLDERS = 5
"""DHT nodes that hold a value; hivemind's own number."""
BESIDE = 2 + 32 + 9
"""Bytes of a record's subkey and of its end in the DHT, in MessagePack."""
BARE = BARE_BYTES + 2
"""Bytes of a bare pulse in an answer."""
_SHORT = SHORT_BYTES - 1
"""Bytes of a short pulse in a batch, which names its bucket once."""
_AN_HOUR = 3600.0
_SAMPLE = 100
_SEEDS = b"twelve bytes", b"twelve more."
_ADDRESSES = tuple(
    f"/ip4/{host}/tcp/4100/p2p/12D3KooWBmAwcd4PJNJvfV89HwE48nwkRmAgo8Vy3uQEyNNHBox2"
    for host in ("203.0.113.7", "192.168.178.20")
)


def record(peers: int, shards: int, at: int, pulse: int = 0, later: int = 0) -> bytes:
    """Return the record of a peer all of whose shards are ready, with one of its pulses.

    `later` is 1 for the next record, of a peer that has learned a little since.
    """
    identity, placed = identities(peers)[at], placement(peers, shards)
    announcement = Announcement(
        swarm_id=SWARM,
        peer=identity.peer,
        role="storage",
        incarnation=(1 << 63) + at,
        sequence=next_sequence(NOW + 1200.1 * later),
        issued=NOW + 1200 * later,
        capacity=members(peers)[identity.peer],
        used=GIB + at + (later << 16),
        ready=packed(placed.shards_of(identity.peer), shards),
        load=Load(3 + 4 * later, 1200, 40, 25 + 50 * later),
        addresses=_ADDRESSES,
        anchor=pulse_of(_SEEDS[later], identity.peer, 0).link,
    )
    _, alone = split(signed(identity, announcement))
    return joined(pulse_of(_SEEDS[later], identity.peer, pulse), alone)


def record_bytes(peers: int, shards: int) -> float:
    """Return how long a record is in the DHT, on average."""
    records = [record(peers, shards, at) for at in spread(peers, _SAMPLE)]
    for data in records[:3]:
        read(data, NOW, SWARM, Rules(shards))  # a real reader takes it
    return float(np.mean([len(data) for data in records])) + BESIDE


def records(peers: int) -> Cells:
    """Return how long a record is."""
    return {f"N = {n:,}": size(record_bytes(peers, n)) for n in SHARDS}


def patch_bytes(peers: int, shards: int) -> float:
    """Return how long the next record of a peer is in an answer, as a patch, on average."""
    pairs = [[record(peers, shards, at, later=n) for n in (0, 1)] for at in spread(peers, _SAMPLE)]
    return float(np.mean([len(made(0, old, new)) for old, new in pairs])) + 2


class Heard(NamedTuple):
    """What a peer hears of another in a minute of looks."""

    pulses: float
    """Bytes of pulses at rest."""
    times: float
    """How often each new record comes, in several looks."""
    as_patches: bool
    """Whether it comes as a patch."""


def heard_by(peers: int) -> Heard:
    """Return what looks in a swarm of so many peers ask for, by their own decisions."""
    looks = Looks([bytes([bucket] * KEY_BYTES) for bucket in range(BUCKETS)])
    pulses, seconds, codes = 0.0, 0.0, set[int]()
    looks.looked(0.0, 0.0, complete=True)
    looks.missed(peers, lambda due: (), ())
    every = interval(Options(), peers)
    for now in np.arange(every, _AN_HOUR + every, every).tolist():
        code, further = looks.news(now), looks.further(now)
        codes.add(code)
        seconds += ASKED * code
        pulses += ASKED * BARE if code >= BOTH else _SHORT * sum(further.values()) / BUCKETS
        looks.looked(now, now, complete=True)
    minutes = _AN_HOUR / 60
    times = max(ASKED, seconds / minutes / 60)
    return Heard(pulses / minutes, times, max(codes) < BOTH)


def traffic(peers: int) -> Cells:
    """Return what is posted and read in a minute."""
    shards = fitting(peers)
    one = record_bytes(peers, shards)
    posts = HOLDERS * (A_MINUTE * (BARE_BYTES + BESIDE) + _RENEWED * one)
    looks, by_looks = 60 / interval(Options(), peers), heard_by(peers)
    new = patch_bytes(peers, shards) if by_looks.as_patches else one
    heard = peers * (by_looks.pulses + by_looks.times * _RENEWED * new)
    buckets = np.bincount([bucket_of(each.peer) for each in identities(peers)], minlength=BUCKETS)
    share = int(buckets.max()) / peers
    news = peers * new * (by_looks.times * A_MINUTE if by_looks.as_patches else ASKED * looks)
    grown = heard + peers * by_looks.times * 60 / USED_EVERY * new
    return {
        "N": f"{shards:,}",
        "a peer posts, times a minute": number(A_MINUTE),
        f"a peer sends for that, to {HOLDERS} nodes": size(posts),
        "a peer looks, times a minute": number(looks),
        "a peer receives for that, a minute": size(heard),
        "the same while all learn, and only their use of memory changes": size(grown),
        "the same if all have other news at each post": size(news),
        "fullest bucket (4 MiB are too much)": size(share * peers * one),
        "a node that holds the fullest bucket sends, a minute": size(
            share * heard * peers / HOLDERS
        ),
        "records that a directory has no room for": f"{max(0, peers - MOST_RECORDS):,}",
    }
