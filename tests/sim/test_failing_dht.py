"""A DHT that loses most records for a while makes few shards move, although all peers are live."""

import random

import pytest

from giaann_p2p.errors import MessageError, PeerError
from giaann_p2p.sim.client import Client
from giaann_p2p.sim.node import Node
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.swarm.members import mass_expiry
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import Fetched, Offered, Part, decode

PEERS, CHUNKS = 40, 20
SETTLED, FAILING, AFTER = 150.0, 60.0, 60.0
LOST = 0.9
"""The part of all records that is lost while the DHT fails."""


class FailingDht:
    """Loses records at random, and counts the bytes of shards that peers send each other."""

    def __init__(self, swarm: Swarm) -> None:
        self.moved = 0
        self.fewest = len(swarm.storages)
        """The fewest storage peers that any of them saw live."""
        self._rng, self._swarm = random.Random("lost"), swarm
        self._publish, self._reply = swarm.publish, swarm.network._reply
        swarm.network._reply = self._counted
        swarm.publish = self._lost

    def _lost(self, node: Node, record: bytes) -> None:
        if self._rng.random() > LOST:
            self._publish(node, record)

    def _counted(self, sender: Peer, to: Peer, once: object, answer: bytes | PeerError) -> None:
        if isinstance(answer, bytes) and _moves(answer):
            self.moved += len(answer)
        self._reply(sender, to, once, answer)

    def run(self, seconds: float) -> None:
        """Let time pass, and look at what peers see."""
        swarm, until = self._swarm, self._swarm.clock.now + seconds
        while swarm.clock.now < until:
            swarm.clock.run_until(swarm.clock.now + 5)
            for node in swarm.storages:
                seen = node.around.directory.members(node.now)
                self.fewest = min(self.fewest, len(seen))

    def ends(self) -> None:
        """Lose no more records."""
        self._swarm.publish = self._publish


def _moves(answer: bytes) -> bool:
    try:
        return isinstance(decode(answer), Fetched | Offered | Part)
    except MessageError:
        return False


def failed(seed: int) -> FailingDht:
    swarm = Swarm(seed)
    for _ in range(PEERS):
        swarm.add_storage()
    job = bytes([seed]) * 16
    swarm.clients.append(Client(swarm, "client0", job, list(range(CHUNKS)), 0.0))
    swarm.clock.run_until(SETTLED)
    assert swarm.problems() == []
    dht = FailingDht(swarm)
    dht.run(FAILING)
    dht.ends()
    dht.run(AFTER)
    assert swarm.problems() == []
    return dht


@pytest.mark.slow
def test_peers_whose_records_are_lost_together_are_not_given_up_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a_part_at_a_time = failed(1)
    monkeypatch.setattr(mass_expiry, "_FEW", PEERS)
    all_at_once = failed(1)
    assert a_part_at_a_time.fewest >= all_at_once.fewest + PEERS / 4
    assert a_part_at_a_time.moved < all_at_once.moved / 2
