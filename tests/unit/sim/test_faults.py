"""Each kind of fault does what it says, to a swarm that was well, and is mended in the end."""

from collections.abc import Callable

import pytest

from giaann_p2p.sim.client import Client
from giaann_p2p.sim.faults import KINDS, Faults
from giaann_p2p.sim.network import Weather
from giaann_p2p.sim.storage import QUICK_DISK
from giaann_p2p.sim.swarm import Swarm

END = 300.0
ENDED, MENDED = 155.0, 160.0
LASTING = ("join", "leave", "lose", "forge")
Does = Callable[[Swarm], bool]

DOES: dict[str, Does] = {
    "crash": lambda swarm: sum(not node.alive for node in swarm.storages) == 1,
    "stop": lambda swarm: sum(node.stopped for node in swarm.storages) == 1,
    "partition": lambda swarm: {(b, a) for a, b in swarm.network.cut} == swarm.network.cut != set(),
    "one way": lambda swarm: len(swarm.network.cut) == 1,
    "slow": lambda swarm: [n > 1 for n in swarm.network.slow.values()] == [True],
    "disk full": lambda swarm: sum(node.disk.capacity is not None for node in swarm.storages) == 1,
    "slow disk": lambda swarm: sum(node.disk_delay > QUICK_DISK for node in swarm.storages) == 1,
    "weather": lambda swarm: swarm.network.weather != Weather(),
    "join": lambda swarm: len(swarm.storages) == 7,
    "leave": lambda swarm: sum(node.core.leaving for node in swarm.storages) == 1,
    "lose": lambda swarm: sum(node.lost for node in swarm.storages) == 1,
    "forge": lambda swarm: any("slandered" in line for line in swarm.trace.lines),
    "client crash": lambda swarm: not swarm.clients[0].alive,
}


class Quiet(Faults):
    """Lets happen what it is told to, and nothing else."""

    def _next(self) -> None:
        pass


@pytest.fixture
def swarm() -> Swarm:
    swarm = Swarm(3, everything=True)
    for _ in range(6):
        swarm.add_storage()
    swarm.clients.append(Client(swarm, "client0", b"one job of many.", [0, 1], 0.0))
    swarm.clock.run_until(60)
    return swarm


def test_every_kind_is_tried() -> None:
    assert set(DOES) == {kind.name for kind in KINDS}


@pytest.mark.parametrize("kind", DOES)
def test_a_fault_does_what_it_says_and_ends_by_itself_or_is_mended(swarm: Swarm, kind: str) -> None:
    faults = Quiet(swarm, MENDED)
    assert not DOES[kind](swarm)
    faults.let(kind)
    assert DOES[kind](swarm)
    swarm.clock.run_until(ENDED)
    assert DOES[kind](swarm) is (kind in (*LASTING, "weather"))
    swarm.clock.run_until(MENDED + 200)
    assert swarm.problems() == []
    assert DOES[kind](swarm) is (kind in LASTING)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(set(DOES) - set(LASTING)))
def test_all_is_mended_at_once_in_the_end(swarm: Swarm, kind: str) -> None:
    faults = Quiet(swarm, 60.1)
    faults.let(kind)
    swarm.clock.run_until(60.1)
    assert not DOES[kind](swarm)


def test_nobody_believes_what_a_stranger_says_in_a_peers_name(swarm: Swarm) -> None:
    faults = Quiet(swarm, END)
    faults.let("forge")
    swarm.clock.run_until(70)
    refused = [line for line in swarm.trace.told if "did not sign this record" in line.what]
    assert len(refused) == 6  # five other peers, and a client
    assert not any(node.core.leaving for node in swarm.storages)
    assert swarm.problems() == []


@pytest.mark.slow
def test_no_more_is_lost_than_can_be_made_good(swarm: Swarm) -> None:
    faults = Quiet(swarm, END)
    for _ in range(2):
        swarm.add_storage()
    for until, lost in [(100, 1), (245, 1), (255, 2), (410, 3), (600, 3)]:
        swarm.clock.run_until(until)
        for _ in range(9):
            faults.let("lose")
        assert sum(node.lost for node in swarm.storages) == lost
    for _ in range(9):
        faults.let("leave")
    assert not any(node.core.leaving for node in swarm.storages)  # five remain
    assert swarm.problems() == []


def test_the_swarm_does_not_grow_without_end(swarm: Swarm) -> None:
    faults = Quiet(swarm, END)
    for _ in range(20):
        faults.let("join")
    assert len(swarm.storages) == 12


@pytest.mark.slow
def test_when_all_is_mended_nothing_goes_wrong_any_more(swarm: Swarm) -> None:
    faults = Faults(swarm, END)
    swarm.clock.run_until(END)
    told = len(swarm.trace.told)
    faults.heal()
    swarm.clock.run_until(END + 300)
    later = [line.what for line in swarm.trace.told][told:]
    assert not [what for what in later if "crashes" in what or "cut off" in what]
