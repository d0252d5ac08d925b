"""A test of the tests: whatever mistake is planted, the simulator finds it.

With GIAANN_SEEDS set all of them are planted, else the first few.
"""

import os

import pytest

from giaann_p2p.sim.run import run
from tests.sim.bugs import BUGS, Bug

PLANTED = BUGS if os.environ.get("GIAANN_SEEDS") else BUGS[:3]
MOST_SEEDS = 100


def problems(seed: int) -> list[str]:
    """Return what the simulator has to say; a mistake may also make the code fall over itself."""
    try:
        return run(seed, most=700).problems
    except Exception as error:  # noqa: BLE001  (whatever a mistake leads to)
        return [repr(error)]


@pytest.mark.slow
@pytest.mark.parametrize("bug", PLANTED, ids=[bug.name for bug in PLANTED])
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)
    assert any(problems(seed) for seed in range(MOST_SEEDS)), f"nobody saw: {bug.name}"
