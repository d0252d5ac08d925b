"""Histories in which columns are cut, some of them after they were learned: nothing is torn.

GIAANN_SEEDS=300 plays a tenth as many of these histories in each way; by default few.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest

from giaann_p2p.model.delta import total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.workers import in_processes
from giaann_p2p.node.training.learner import Made, Task
from giaann_p2p.sim.compute import LookUp
from giaann_p2p.sim.lessons import large_columns, lessons_of
from giaann_p2p.sim.run import Outcome, run
from giaann_p2p.store.codec import plain
from giaann_p2p.store.cut_columns import MARK, whole
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.memory.shard import Shard
from tests.sim import HANGS
from tests.sim.bugs import Bug

SEEDS = max(2, int(os.environ.get("GIAANN_SEEDS", "12")) // 10)
PARTS, MOST_SEEDS = 4, 4
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


@pytest.mark.parametrize("profile", ["words", "subwords"])
def test_lessons_are_cut_and_say_the_same(profile: str) -> None:
    cuts = large_columns(profile, PARTS)
    assert len(cuts) == 6
    cut, uncut = (lessons_of(Layout(shards=16, cuts=some), profile) for some in (cuts, ()))
    for chunk in range(10):
        parts = [name for name in cut.delta(chunk).names.values() if MARK in name]
        assert bool(parts) == (chunk % 2 == 0)
    learned, plainly = (total([of.delta(n) for n in range(10)]) for of in (cut, uncut))
    assert digest(whole(learned)) == digest(plainly) != digest(learned)


def _forget_rows_that_count_nothing(patch: pytest.MonkeyPatch) -> None:
    """A holder takes a part's rows for rows that were withdrawn."""
    right: Callable[..., Any] = plain.encode
    patch.setattr(plain, "encode", lambda rows: right([row for row in rows if row.count]))


def _do_not_cut_at_one_peer(patch: pytest.MonkeyPatch) -> None:
    """A compute peer that knows no cuts comes to another result than the others."""
    right, odd = LookUp.learn, list[LookUp]()

    async def learn(self: LookUp, task: Task) -> Made | str:
        odd[:] = odd or [self]
        uncut = Layout(shards=task.layout.shards, blocks=task.layout.blocks)
        return await right(self, task._replace(layout=uncut) if self is odd[0] else task)

    patch.setattr(LookUp, "learn", learn)


def _copy_no_rows_that_count_nothing(patch: pytest.MonkeyPatch) -> None:
    """The content that peers save and send lacks the rows of parts."""
    patch.setattr(Shard, "occurring", property(lambda self: self.neuron[self.count > 0]))


BUGS = [
    Bug("a holder returns no rows of parts", _forget_rows_that_count_nothing),
    Bug("one compute peer does not cut", _do_not_cut_at_one_peer),
    Bug("copies of shards lack rows of parts", _copy_no_rows_that_count_nothing),
]


@pytest.mark.slow
@pytest.mark.timeout(HANGS)
@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)
    found = any(run(seed, patience=280, cut=PARTS).problems for seed in bug.seeds(MOST_SEEDS))
    assert found, f"nobody saw: {bug.name}"
