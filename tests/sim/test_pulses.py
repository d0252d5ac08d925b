"""A forger shows pulses that a dead peer never showed, and old ones: nobody takes it for alive.

And a test of the tests: with either of the mistakes that are planted here, it would be.
"""

import pytest

from giaann_p2p.sim.hostile.forger import Forgery
from giaann_p2p.sim.hostile.watch import Watch
from giaann_p2p.sim.swarm import Swarm
from tests.sim.bugs import PULSE_BUGS, Bug
from tests.sim.defences import BEGINS, attack, forger

FORGERIES = Forgery.PULSE, Forgery.BORROWED, Forgery.STALE


def believers(*forgeries: Forgery) -> int:
    """Count who takes a peer for alive that died 70 seconds ago, while a forger is at work."""

    def believing(swarm: Swarm, watch: Watch) -> int:
        dead, *others = swarm.storages
        assert not dead.alive
        for one in others:
            there = one.around.directory.alive(one.now)
            assert {other.peer for other in others} <= there
        live = [one.around.directory.live(one.now) for one in others]
        return sum(any(said.peer == dead.peer for said in some) for some in live)

    def at_work(swarm: Swarm) -> object:
        swarm.clock.at(BEGINS + 10, lambda: swarm.storages[0].crash(lost=True))
        return forger(*forgeries)(swarm)

    return attack(believing, at_work, seconds=80.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("forgery", FORGERIES, ids=[one.name for one in FORGERIES])
def test_no_pulse_of_a_forger_keeps_a_dead_peer_alive(forgery: Forgery) -> None:
    assert believers(forgery) == 0


@pytest.mark.parametrize("bug", PULSE_BUGS, ids=[bug.name for bug in PULSE_BUGS])
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)
    assert believers(*FORGERIES) > 0
