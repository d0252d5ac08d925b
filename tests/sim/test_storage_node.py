"""Histories whose storage peers run the real node: all promises are kept there, too.

GIAANN_SEEDS=300 plays a tenth as many of these histories; by default two.
"""

import errno
import os

import pytest

from giaann_p2p.model.workers import in_processes
from giaann_p2p.sim.run import Outcome, run
from giaann_p2p.sim.scenario import Scenario
from giaann_p2p.sim.storage_node import StorageMachine
from tests.sim.bugs import WRITER_BUGS, Bug

SEEDS = max(2, int(os.environ.get("GIAANN_SEEDS", "0")) // 10)


def _run(seed: int) -> Outcome:
    return run(seed, real=True)


@pytest.mark.slow
@pytest.mark.timeout(240 + 20 * SEEDS)
def test_all_promises_are_kept() -> None:
    outcomes = list(in_processes(_run, iter(range(SEEDS)), os.cpu_count() or 1, 2))
    failed = [
        f"giaann sim --seed {one.seed} --real --trace: {one.problems}"
        for one in outcomes
        if one.problems
    ]
    assert not failed, "\n".join(failed)
    assert sum(one.committed for one in outcomes) == 50 * SEEDS
    assert sum(one.answered for one in outcomes) > 20 * SEEDS


@pytest.mark.slow
def test_newcomers_take_nothing_along() -> None:
    outcome = run(0, newcomers=True, real=True)
    assert outcome.problems == []
    assert outcome.committed == 50


@pytest.mark.slow
def test_a_seed_decides_everything() -> None:
    one, again = (run(2, 5, 1, 1, 4, trouble=90.0, everything=True, real=True) for _ in range(2))
    assert one == again
    assert one.problems == []
    assert len(one.trace) > 100


def _bad_disks() -> list[str]:
    """Let disks refuse their first writes, then be slow, and all machines crash meanwhile."""
    scenario = Scenario(7)
    scenario.swarm.real = True
    scenario.do("storages 4")
    peers = scenario.swarm.storages
    assert all(isinstance(peer, StorageMachine) for peer in peers)
    scenario.do("run 0.5")
    for peer in peers:
        peer.disk.fail_at(1, errno.ENOSPC, times=2)
    scenario.do("run 60")
    for peer in peers:
        scenario.do(f"slow disk {peer.name} 3")
    for line in ("client push 0-9", "run 4", "crash all", "restart all"):
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
