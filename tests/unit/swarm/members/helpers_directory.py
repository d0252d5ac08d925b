"""Records for directories."""

from itertools import count

import msgspec
import numpy as np

from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.record import FRONT_BYTES, Announcement, signed
from giaann_p2p.swarm.wire.shardset import packed
from tests.unit.swarm.helpers_pulses import chained

SWARM, LAYOUT, NOW = bytes(range(32)), Layout(shards=16), 1_800_000_000.0
RULES = Rules(LAYOUT.shards)
WHO = [Identity.from_seed(bytes([n]) * 32) for n in range(1, 8)]
PEERS = [identity.peer for identity in WHO]
sequences = count(1)


def shards(*numbers: int) -> bytes:
    return packed(np.array(numbers, np.uint16), LAYOUT.shards)


def announced(who: Identity = WHO[0], now: float = NOW, **fields: object) -> Announcement:
    plain = Announcement(
        swarm_id=SWARM,
        peer=who.peer,
        role="storage",
        incarnation=1,
        sequence=next(sequences),
        issued=int(now),
        capacity=0 if fields.get("role") == "compute" else 100,
    )
    return msgspec.structs.replace(plain, **fields)


def record(who: Identity = WHO[0], now: float = NOW, **fields: object) -> bytes:
    return signed(who, announced(who, now, **fields))


def made() -> Directory:
    return Directory(SWARM, lambda: RULES)


def said_in(data: bytes) -> Announcement:
    return msgspec.msgpack.decode(data[FRONT_BYTES:], type=Announcement)


def living(who: Identity = WHO[0], now: float = NOW, **fields: object) -> bytes:
    """Return a record with a chain of pulses."""
    return chained(who, announced(who, now, **fields))
