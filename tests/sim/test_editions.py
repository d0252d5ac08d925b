"""The founder adds replicas and doubles shards amid all faults: nothing is lost, all follow.

GIAANN_SEEDS=300 plays a third as many of these histories; by default few.
"""

import os

import pytest

from giaann_p2p.model.workers import in_processes
from giaann_p2p.sim.resharding import PUSHED
from giaann_p2p.sim.run import Outcome, run
from tests.sim import HANGS
from tests.sim.bugs import EDITION_BUGS, Bug
from tests.sim.doubling_bugs import DOUBLING_BUGS

SEEDS = int(os.environ.get("GIAANN_SEEDS", "12")) // 3
MOST_SEEDS = 8
BUGS = [*EDITION_BUGS, *DOUBLING_BUGS]


def _run(seed: int) -> Outcome:
    return run(seed, reshard=True)


@pytest.mark.slow
@pytest.mark.timeout(HANGS)
def test_each_shard_gets_the_replicas_of_the_newest_edition() -> None:
    played = in_processes(_run, iter(range(SEEDS)), os.cpu_count() or 1, 2)
    outcomes = list(played)
    failed = [f"seed {one.seed}: {one.problems}" for one in outcomes if one.problems]
    assert not failed, "\n".join(failed)
    assert sum(one.committed for one in outcomes) == (50 + 2 * PUSHED) * SEEDS


@pytest.mark.slow
@pytest.mark.timeout(HANGS)
@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)
    found = any(run(seed, patience=280, reshard=True).problems for seed in bug.seeds(MOST_SEEDS))
    assert found, f"nobody saw: {bug.name}"
