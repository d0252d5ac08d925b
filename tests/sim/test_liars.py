"""Strangers that announce boundless room, and say "ready, the same" of every shard, get no drop.

That nothing is lost with the proofs, `scenarios/liars.txt` shows; here it is shown that it would be
without them.
"""

from pathlib import Path

import pytest

from giaann_p2p.sim.scenario import Scenario
from tests.sim.bugs import HEARSAY

SCRIPT = Path(__file__).parent / "scenarios" / "liars.txt"


@pytest.mark.slow
def test_without_proofs_what_was_learned_would_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    HEARSAY.plant(monkeypatch)
    scenario = Scenario()
    for line in SCRIPT.read_text().splitlines():
        if not line.startswith(">"):
            told = scenario.do(line)
    assert "all promises kept" not in told
    faults = scenario.swarm.promises.faults
    assert any("dropped shard" in fault and "which 0 others have" in fault for fault in faults)


@pytest.mark.slow
def test_a_swarm_goes_on_around_liars() -> None:
    """Who joins, leaves or is lost meanwhile costs nothing either."""
    scenario = Scenario()
    for line in (
        *("storages 8", "client push 0-9", "run 60", "liars 2", "run 60"),
        *("join", "leave peer1", "run 60", "lose peer2", "run 120"),
    ):
        scenario.do(line)
    assert scenario.swarm.promises.faults == []
    kept = [peer for peer in scenario.swarm.storages if peer.keeps]
    for shard in range(scenario.swarm.lessons.layout.shards):
        sets = [peer.store.sets([shard]).get(shard) for peer in kept]
        assert sum(held is not None and len(held) == 10 for held in sets) >= 2
    for line in ("crash liar0 liar1", "settle 300"):
        scenario.do(line)
    assert scenario.do("check") == ["all promises kept"]
