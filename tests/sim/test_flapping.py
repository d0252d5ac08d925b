"""A storage peer that joins and leaves each minute costs honest peers little.

Each time it takes a share of all shards over; what the others keep, cold or beside it, they need
not send each other when it is gone. What they send the one that joins is bounded by its share.
"""

from collections import Counter

import pytest

from giaann_p2p.errors import MessageError, PeerError
from giaann_p2p.sim.client import Client, Habit
from giaann_p2p.sim.storage import Kind, Storage
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import Fetched, Offered, Part, decode

MINUTE = 60.0
GROWN = 300.0
ROOM = 1 << 46
FLAPS = 6


class Moved:
    """Bytes of shards and deltas that the peers of a swarm send, by whether to each other."""

    def __init__(self, swarm: Swarm) -> None:
        self.bytes = Counter[bool]()
        self._honest = {peer.peer for peer in swarm.storages}
        self._reply = swarm.network._reply
        swarm.network._reply = self._counted

    def _counted(self, sender: Peer, to: Peer, once: object, answer: bytes | PeerError) -> None:
        if sender in self._honest and isinstance(answer, bytes) and _moves(answer):
            self.bytes[to in self._honest] += len(answer)
        self._reply(sender, to, once, answer)


def _moves(answer: bytes) -> bool:
    try:
        return isinstance(decode(answer), Fetched | Offered | Part)
    except MessageError:
        return False


def founded(seed: int, rules: Settings) -> Swarm:
    """Return a swarm of six that has learned something, and is older than newcomers."""
    swarm = Swarm(seed, settings=rules)
    for _ in range(6):
        swarm.add_storage()
    job, chunks = bytes([seed]) * 16, list(range(60))
    swarm.clients.append(Client(swarm, "client0", job, chunks, 0.0, Habit(since=1e9)))
    swarm.clock.run_until(GROWN)
    assert swarm.problems() == []
    return swarm


def run(swarm: Swarm, seconds: float) -> None:
    swarm.clock.run_until(swarm.clock.now + seconds)


def flapped(seed: int, rules: Settings) -> tuple[int, int]:
    """Let a peer come and go; return the bytes of all shards, and what honest peers sent each
    other."""
    swarm = founded(seed, rules)
    moved = Moved(swarm)
    one = Storage(swarm, "flapper", 0.0, Kind(capacity=ROOM, is_newcomer=True))
    one.lost = True  # nothing that it has counts
    swarm.storages.append(one)
    run(swarm, MINUTE)
    whole = moved.bytes[False]  # it has been sent each shard once
    for _ in range(FLAPS):
        one.crash()
        run(swarm, MINUTE)
        one.restart()
        run(swarm, MINUTE)
    one.crash()
    run(swarm, 2 * MINUTE)
    assert swarm.promises.faults == []
    return whole, moved.bytes[True]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_what_comes_and_goes_makes_others_send_little(seed: int) -> None:
    whole, sent = flapped(seed, Settings())
    assert sent < FLAPS * whole / 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_without_standing_and_cold_copies_they_would_send_all_again(seed: int) -> None:
    whole, sent = flapped(seed, Settings(standing=0, cold_bytes=0, cold_days=0))
    assert sent > FLAPS * whole / 2
