"""Owners that reach the client but not each other, and crash: what no courier brought is not known.

A client sends a chunk's rows to one owner, from which the others are to fetch them.
"""

import pytest

from giaann_p2p.sim.scenario import Scenario
from tests.sim.bugs import COURIER_BUGS, Bug


def _cut_apart() -> list[str]:
    """Let a client push while no owner reaches another, and all crash; return what is broken."""
    scenario = Scenario(2)
    for line in ("storages 4", "run 60", "partition peer0 | peer1 | peer2 | peer3"):
        scenario.do(line)
    for line in ("client push 0-9", "run 8", "crash all", "mend", "restart all", "run 300"):
        scenario.do(line)
    assert {peer.name for peer in scenario.swarm.storages if peer.alive} >= {"peer0", "peer3"}
    return scenario.swarm.problems()


@pytest.mark.slow
def test_what_no_courier_brought_is_not_acknowledged() -> None:
    assert _cut_apart() == []


@pytest.mark.slow
@pytest.mark.parametrize("bug", COURIER_BUGS, ids=[bug.name for bug in COURIER_BUGS])
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)
    assert _cut_apart(), f"nobody saw: {bug.name}"
