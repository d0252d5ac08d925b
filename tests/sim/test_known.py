"""What is lost for good is called lost, also when all who remember it have begun anew."""

import pytest

from giaann_p2p.sim.client import Client
from giaann_p2p.sim.storage import Kind, Storage
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.swarm.members.losses import losses
from giaann_p2p.swarm.replication.settings import Settings

GIANT = Kind(capacity=1 << 46, is_newcomer=True)
NO_COPIES = Settings(standing=60, cold_days=0)


def _joined(swarm: Swarm, name: str, kind: Kind) -> Storage:
    swarm.storages.append(Storage(swarm, name, 0.0, kind))
    return swarm.storages[-1]


def _lost(swarm: Swarm, peer: Storage) -> list[int]:
    return losses(peer.around.directory, peer.now).shards


@pytest.mark.slow
def test_lost_stays_lost_when_all_peers_restart() -> None:
    """Three giants own everything, until the others keep nothing; then the giants are lost."""
    swarm = Swarm(1, settings=NO_COPIES)
    old = [_joined(swarm, f"old{n}", Kind()) for n in range(3)]
    client = Client(swarm, "client0", b"a job of a test.", [], 0.0)
    swarm.clients.append(client)
    swarm.clock.run_until(30.0)
    client.push([1, 2, 3])
    swarm.clock.run_until(400.0)  # by then it is noted down
    giants = [_joined(swarm, f"giant{n}", GIANT) for n in range(3)]
    swarm.clock.run_until(700.0)
    assert [len(peer.store.shards) + len(peer.store.cold.copies) for peer in old] == [0, 0, 0]
    assert _lost(swarm, old[0]) == []
    for giant in giants:
        giant.crash(lost=True)
    swarm.clock.run_until(800.0)
    everything = [*range(swarm.lessons.layout.shards)]
    assert _lost(swarm, old[0]) == everything
    for peer in old:
        peer.crash()
    for peer in old:
        peer.restart()
    swarm.clock.run_until(815.0)
    assert not any(len(peer.core.known.missing.shards) for peer in old)  # too early to tell
    swarm.clock.run_until(900.0)
    assert _lost(swarm, old[0]) == everything
