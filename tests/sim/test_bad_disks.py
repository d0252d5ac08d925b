"""Disks that refuse writes, and then are slow, while all machines crash: no promise is broken."""

import errno

import pytest

from giaann_p2p.sim.scenario import Scenario
from tests.sim.bugs import WRITER_BUGS, Bug


def _bad_disks() -> list[str]:
    """Let disks refuse the first updates, then be slow, and all machines crash meanwhile."""
    scenario = Scenario(7)
    scenario.do("storages 4")
    peers = scenario.swarm.storages
    scenario.do("run 60.5")
    for peer in peers:
        peer.disk.fail_at(1, errno.ENOSPC, times=2)
        scenario.do(f"slow disk {peer.name} 3")
    for line in ("client push 0-9", "run 5", "crash all", "restart all"):
        scenario.do(line)
    for peer in peers:
        scenario.do(f"quick disk {peer.name}")
    scenario.do("run 300")
    assert {peer.name for peer in peers if peer.alive} == {"peer0", "peer1", "peer2", "peer3"}
    return scenario.swarm.problems()


def test_bad_disks_break_no_promise() -> None:
    assert _bad_disks() == []


@pytest.mark.slow
@pytest.mark.parametrize("bug", WRITER_BUGS, ids=[bug.name for bug in WRITER_BUGS])
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)
    assert _bad_disks(), f"nobody saw: {bug.name}"
