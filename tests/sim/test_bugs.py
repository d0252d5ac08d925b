"""A test of the tests: whatever mistake is planted, the simulator finds it.

With GIAANN_SEEDS set all of them are planted, else the first few.
"""

import os

import pytest

from giaann_p2p.sim.run import run
from tests.sim import HANGS
from tests.sim.bugs import BUGS, Bug
from tests.sim.reading_bugs import READING_BUGS

PLANTED = [*BUGS, *READING_BUGS] if os.environ.get("GIAANN_SEEDS") else [*BUGS[:3], READING_BUGS[0]]
MOST_SEEDS = 100


@pytest.mark.slow
@pytest.mark.timeout(HANGS)
@pytest.mark.parametrize("bug", PLANTED, ids=[bug.name for bug in PLANTED])
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)
    found = any(run(seed, patience=280).problems for seed in bug.seeds(MOST_SEEDS))
    assert found, f"nobody saw: {bug.name}"
