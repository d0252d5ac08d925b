"""Records of storage peers of a small swarm, and those who sign them."""

from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.record import Announcement, Missing, namings, signed
from giaann_p2p.swarm.wire.shardset import packed
from tests.helpers_swarm import shards

LAYOUT = Layout(shards=8)
RULES = Rules(LAYOUT.shards)
SWARM = bytes(32)
NOW = 1.8e9
PEERS = [Identity.from_seed(bytes([n]) * 32) for n in range(1, 6)]
ALL = tuple(range(8))
NONE_MISSING = Missing()


def said(
    who: Identity,
    ready: tuple[int, ...] = ALL,
    *,
    capacity: int = 1 << 30,
    durable: bool = True,
    cold: tuple[int, ...] = (),
    missing: Missing = NONE_MISSING,
    wrong: Identity | None = None,
) -> bytes:
    """Return what a storage peer says of itself, signed."""
    record = Announcement(
        swarm_id=SWARM,
        peer=who.peer,
        role="storage",
        incarnation=1,
        sequence=1,
        issued=int(NOW),
        capacity=capacity,
        ready=some(*ready),
        cold=some(*cold),
        missing=missing,
        wrong=namings({wrong.peer: shards(*ALL)} if wrong else {}, LAYOUT.shards),
        durable=durable,
    )
    return signed(who, record)


def some(*which: int) -> bytes:
    """Return a set of shards as records have it."""
    return packed(shards(*which), 8)
