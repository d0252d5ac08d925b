"""Histories in which columns are cut, some of them after they were learned: nothing is torn.

GIAANN_SEEDS=300 plays a thirtieth as many of these histories in each way; by default few.
"""

import os
import random
from typing import Any

import pytest

from giaann_p2p.model.delta import total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.workers import in_processes
from giaann_p2p.sim.client import Client, Habit
from giaann_p2p.sim.hostile import cast
from giaann_p2p.sim.hostile.liar import Lie
from giaann_p2p.sim.hostile.watch import Watch
from giaann_p2p.sim.lessons import large_columns, lessons_of
from giaann_p2p.sim.run import Outcome, run
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.sim.world import Rules
from giaann_p2p.store import row_parts
from giaann_p2p.store.cut_columns import whole
from giaann_p2p.store.cuts import MARK
from giaann_p2p.store.layout import Layout
from tests.sim import HANGS
from tests.sim.bugs import Bug
from tests.sim.cut_bugs import BUGS, PARTS, Adding

SEEDS = max(2, int(os.environ.get("GIAANN_SEEDS", "12")) // 30)
MOST_SEEDS = 4
_BEGINS = 15.0
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "subwords": {"profile": "subwords"},
    "reshard": {"reshard": True},
    "hostile": {"hostile": 3},
    "newcomers": {"newcomers": True},
}


def _run(job: tuple[str, int]) -> Outcome:
    way, seed = job
    return run(seed, cut=PARTS, **WAYS[way])


@pytest.mark.slow
@pytest.mark.timeout(HANGS)
def test_cut_columns_keep_all_promises() -> None:
    jobs = [(way, seed) for seed in range(SEEDS) for way in WAYS]
    for job, one in zip(jobs, in_processes(_run, iter(jobs), os.cpu_count() or 1, 2), strict=True):
        assert not one.problems, f"{job}: {one.problems}"
        assert one.committed >= 50


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("profile", ["words", "subwords"])
def test_lessons_are_cut_and_say_the_same(profile: str, late: bool) -> None:
    cuts = large_columns(profile, PARTS)
    assert len(cuts) == 6
    cut, uncut = (lessons_of(Layout(shards=16, cuts=some), profile, late) for some in (cuts, ()))
    for chunk in range(10):
        parts = [name for name in cut.delta(chunk).names.values() if MARK in name]
        assert bool(parts) == (chunk % 2 == 0 or not late)
    learned, plainly = (total([of.delta(n) for n in range(10)]) for of in (cut, uncut))
    assert digest(whole(learned)) == digest(plainly) != digest(learned)


@pytest.mark.slow
@pytest.mark.timeout(HANGS)
@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)
    found = any(run(seed, patience=280, cut=PARTS).problems for seed in bug.seeds(MOST_SEEDS))
    assert found, f"nobody saw: {bug.name}"


def _reads_with_a_liar() -> tuple[int, set[str]]:
    """Read without comparing, from peers of which one adds foreign targets to parts."""
    swarm = Swarm(8, rules=Rules(shards=8, cut=PARTS), admission="token")
    watch = swarm.promises = Watch(swarm)
    for _ in range(4):
        swarm.add_storage()
    job = random.Random("8 job").randbytes(16)
    habit = Habit(0.5, _BEGINS)
    swarm.clients.append(Client(swarm, "client0", job, [0, 1, 2], 0.0, habit))
    cast.let(swarm, Adding(swarm, "liar", 0.0, frozenset({Lie.ROWS})), _BEGINS)
    swarm.clock.run_until(_BEGINS + 20.0)
    swarm.close()
    return watch.counts["lies about Read"], {fault for fault in watch.faults if "joined" in fault}


def test_targets_of_other_parts_that_a_liar_adds_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lies, faults = _reads_with_a_liar()
    assert lies > 5
    assert not faults
    monkeypatch.setattr(row_parts, "_with_targets", lambda row, chosen: row)
    assert "a row that a client joined says too much" in _reads_with_a_liar()[1]
