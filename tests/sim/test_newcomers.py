"""Newcomers with boundless room join, take all shards, and vanish: nothing that counted is lost.

GIAANN_SEEDS=300 plays a third as many of these histories; by default few.
"""

import os

import pytest

from giaann_p2p.model.workers import in_processes
from giaann_p2p.sim.client import Client
from giaann_p2p.sim.run import Outcome, run
from giaann_p2p.sim.scenario import Scenario
from giaann_p2p.sim.storage import Kind, Storage
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.swarm.replication.settings import Settings
from tests.sim import HANGS
from tests.sim.bugs import NEWCOMER_BUGS, Bug

SEEDS = int(os.environ.get("GIAANN_SEEDS", "12")) // 3
MOST_SEEDS = 8
GIANT = Kind(capacity=1 << 46, is_newcomer=True)


def _run(seed: int) -> Outcome:
    return run(seed, newcomers=True)


@pytest.mark.slow
@pytest.mark.timeout(HANGS)
def test_newcomers_take_nothing_along() -> None:
    played = in_processes(_run, iter(range(SEEDS)), os.cpu_count() or 1, 2)
    outcomes = list(played)
    failed = [f"seed {one.seed}: {one.problems}" for one in outcomes if one.problems]
    assert not failed, "\n".join(failed)
    assert sum(one.committed for one in outcomes) == 50 * SEEDS


@pytest.mark.slow
def test_what_left_before_all_owners_were_lost_is_gone_with_them() -> None:
    """In this history two of three holders leave, one is lost, and then all owners at once."""
    assert _run(1033).problems == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2012, 2014, 2048])
def test_newcomers_take_nothing_along_in_the_first_minutes_either(seed: int) -> None:
    """A writer was cut off with newcomers when it had known the others for 24 s; peers began anew
    when they had known the others for half a minute or two."""
    assert _run(seed).problems == []


def _cut_off(without_disk: bool) -> list[str]:
    """Let a client learn something while it reaches newcomers alone, or beside them those of
    standing that have no disk; then let all these vanish. Return what is broken."""
    swarm = Swarm(1)
    in_memory = Kind(memory_only=True)
    kinds = [Kind(), Kind(), in_memory, in_memory] if without_disk else [Kind()] * 4
    old = [_joined(swarm, f"old{n}", kind) for n, kind in enumerate(kinds)]
    client = Client(swarm, "client0", b"a job of a test.", [], 0.0)
    swarm.clients.append(client)
    swarm.clock.run_until(300.0)
    new = [_joined(swarm, f"newcomer{n}", GIANT) for n in range(3)]
    swarm.clock.run_until(335.0)
    away = [peer for peer in old if not peer.kind.memory_only]
    near = [client, *new, *(peer for peer in old if peer.kind.memory_only)]
    cut = {(one.peer, other.peer) for one in away for other in near}
    swarm.network.cut |= cut | {(other, one) for one, other in cut}
    client.push([1, 2, 3])
    swarm.clock.run_until(355.0 if without_disk else 410.0)
    for peer in new:
        peer.crash(lost=True)
    for peer in old:
        if peer.kind.memory_only:
            peer.crash()
            peer.restart()
    swarm.network.cut.clear()
    problems = swarm.problems()
    while problems and swarm.clock.now < 900.0:
        swarm.clock.run_until(swarm.clock.now + 5.0)
        problems = swarm.problems()
    return problems


def _joined(swarm: Swarm, name: str, kind: Kind) -> Storage:
    swarm.storages.append(Storage(swarm, name, 0.0, kind))
    return swarm.storages[-1]


@pytest.mark.slow
@pytest.mark.parametrize("without_disk", [False, True])
def test_who_is_cut_off_with_newcomers_commits_nothing_that_goes_with_them(
    without_disk: bool,
) -> None:
    assert _cut_off(without_disk) == []


@pytest.mark.slow
@pytest.mark.parametrize("bug", NEWCOMER_BUGS, ids=[bug.name for bug in NEWCOMER_BUGS])
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.plant(monkeypatch)
    found = _cut_off(False) or _cut_off(True)
    found = found or any(run(seed, newcomers=True).problems for seed in range(MOST_SEEDS))
    assert found, f"nobody saw: {bug.name}"


@pytest.mark.slow
def test_a_day_later_newcomers_have_their_share_and_the_others_let_go() -> None:
    """Within a minute they serve reads; the others let go once all owners have standing."""
    scenario = Scenario(settings=Settings(standing=600))
    for line in ("storages 5", "client push 0-9", "run 60", "join", "join", "join", "run 60"):
        scenario.do(line)
    storages = scenario.swarm.storages
    placement = storages[0].around.placement(storages[0].now)
    young = [peer for peer in storages if peer.name in ("peer5", "peer6", "peer7")]
    for peer in young:
        assert peer.core.replicas.held.tolist() == placement.shards_of(peer.peer).tolist()
        assert len(peer.core.replicas.held) > 0
    held = sum(len(peer.store.shards) for peer in storages)
    replicas = 3 * scenario.swarm.lessons.layout.shards
    assert held > replicas  # the others hold theirs beside them
    scenario.do("run 900")
    assert sum(len(peer.store.shards) for peer in storages) == replicas
    assert any(peer.store.cold.copies for peer in storages)
    assert scenario.do("check") == ["all promises kept"]
