"""Random histories: whatever goes wrong, all promises are kept once it is mended.

GIAANN_SEEDS=300 lets as many happen, and a sixth as many in which subwords are learned; by default
it is few.
"""

import os
from collections import Counter

import pytest

from giaann_p2p.cli.present import replay_command, summary_lines
from giaann_p2p.sim.run import run
from giaann_p2p.sim.seeds import Size, play, summary
from giaann_p2p.store.applied import differing
from giaann_p2p.swarm.replication import set_comparison
from tests.sim import HANGS

SEEDS = int(os.environ.get("GIAANN_SEEDS", "6"))


@pytest.mark.slow
@pytest.mark.timeout(HANGS)
@pytest.mark.parametrize(("profile", "seeds"), [("words", SEEDS), ("subwords", SEEDS // 6)])
def test_all_promises_are_kept(profile: str, seeds: int) -> None:
    size = Size(profile=profile)
    played = list(play(range(seeds), size, os.cpu_count() or 1))
    total = summary(played, size, sum(seconds for _, seconds in played))
    print(summary_lines(total))
    failed = [
        f"{replay_command(outcome.seed, size)}: {outcome.problems}"
        for outcome, _ in played
        if outcome.problems
    ]
    assert not failed, "\n".join(failed)
    assert total.seeds == seeds
    assert total.committed == seeds * (size.clients + 1) * size.chunks
    assert total.answered > 20 * seeds


@pytest.mark.slow
@pytest.mark.parametrize("hostile", [0, 2])
def test_large_sets_are_compared_by_parts(hostile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories have few jobs, so let any set count as large."""
    monkeypatch.setattr(set_comparison, "MANY_JOBS", 0)
    told = Counter[str]()

    def counted(parts: bytes, others: bytes) -> list[int]:
        found = differing(parts, others)
        told["parts" if found else "nothing"] += 1
        return found

    monkeypatch.setattr(set_comparison, "differing", counted)
    outcome = run(3, hostile=hostile)
    assert outcome.problems == []
    assert outcome.committed > 0
    assert told["parts"] > 100
    assert told["nothing"] == 0


@pytest.mark.slow
def test_two_halves_that_began_apart_become_one_swarm() -> None:
    """Six peers form two swarms before they hear of each other, and each lets go of its deltas."""
    outcome = run(126, clients=2, computes=4)
    assert outcome.problems == []
    assert outcome.committed == 75


@pytest.mark.slow
def test_a_seed_decides_everything() -> None:
    one, again = (run(2, 5, 1, 1, 4, trouble=90.0, everything=True) for _ in range(2))
    assert one == again
    assert one.problems == []
    assert len(one.trace) > 100
