"""One of three storage peers tells wrong rows: what the commands and Python make of it."""

import json

import pytest

from giaann_p2p import Brain, Swarm, Unreachable
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.spec import ModelSpec
from tests.cli.conftest import TEXT, Run
from tests.cli.conftest import giaann as giaann
from tests.e2e.conftest import NewSwarm
from tests.e2e.hostile.teller import ENTRIES, MORE, TELLER

PROMPT = "Many poets fought in the Spanish"
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_a_liar_is_found_and_named_and_nothing_of_it_is_used(
    new_swarm: NewSwarm, giaann: Run
) -> None:
    with new_swarm(storages=3, computes=1, shards=16, entries=ENTRIES) as swarm:
        liar = {peer.name: peer.peer for peer in swarm.peers()}[TELLER]
        with Swarm.join(swarm.link) as joined:
            assert all(report.complete for report in joined.train(TEXT))
        column_is_true_if_verified(giaann, swarm.link, liar)
        prompt_is_true_if_verified(giaann, swarm.link, liar)
        python_is_told(swarm.link, liar)
        without_a_majority_nothing_is_told(giaann, swarm)


def column_is_true_if_verified(giaann: Run, link: str, liar: str) -> None:
    """`bee` occurs twice."""
    done = giaann("column", "bee", "--join", link, "--json")
    assert done.returncode == 0, done.stderr
    wrong = json.loads(done.stdout)
    assert wrong["words"][0]["occurrences"] == 2 + MORE
    done = giaann("column", "bee", "--join", link, "--json", "--verify")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [word["occurrences"] for word in found["words"]] == [2, 1, 1, 1]
    assert {one["peer"] for one in found["lies"]} == {liar}
    assert all(
        one["told"]["occurrences"] == one["true"]["occurrences"] + MORE for one in found["lies"]
    )
    assert found["undecided"] == 0
    assert "storage peers returned different rows" in done.stderr
    assert f"peer {liar} returned wrong rows: " in done.stderr
    assert "every row that was used was confirmed by a majority of its owners" in done.stderr


def prompt_is_true_if_verified(giaann: Run, link: str, liar: str) -> None:
    brain = Brain(ModelSpec())
    brain.train(TEXT)
    done = giaann("prompt", PROMPT, "--join", link, "--verify", "--max-tokens", "5")
    assert (done.returncode, done.stdout) == (
        0,
        PROMPT + brain.generate(PROMPT, max_tokens=5).text + "\n",
    )
    assert f"peer {liar} returned wrong rows: " in done.stderr


def python_is_told(link: str, liar: str) -> None:
    with Swarm.join(link, verify=1) as swarm:
        for _ in range(2):
            assert swarm.column("bee").words[0].occurrences == 2
        lies = swarm.lies
        while not lies:
            assert swarm.column("bee").words[0].occurrences == 2
            lies = swarm.lies
        assert {lie.peer for lie in lies} == {liar}
    with Swarm.join(link, verify=0) as swarm:
        assert swarm.column("bee").words[0].occurrences == 2 + MORE


def without_a_majority_nothing_is_told(giaann: Run, swarm: LocalSwarm) -> None:
    """Of two that are left, one lies."""
    swarm.kill("storage-1")
    done = giaann("column", "bee", "--join", swarm.link, "--verify")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no majority of the replicas returned the same rows of" in done.stderr
    assert "`giaann fsck`" in done.stderr
    with Swarm.join(swarm.link, verify=1) as joined, pytest.raises(Unreachable, match="majority"):
        joined.generate(PROMPT)
