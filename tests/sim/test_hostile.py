"""Twenty peers, of which six lie, forge, flood and shirk: what they say is not believed.

Reads are counted where nothing else goes wrong: every one that an honest client began once the
hostile peers had begun, until they fell silent. It counts as served if it got all of its rows
within its patience. And a test of the tests: without a defence its attack comes through.

GIAANN_SEEDS=300 lets a fifth as many histories happen, for each takes as long as five without
hostile peers, and switches all defences off in turn; by default it is few.
"""

import os
from collections import Counter

import pytest

from giaann_p2p.sim.hostile.stranger import Pretence
from giaann_p2p.sim.run import Outcome, run
from tests.sim import HANGS
from tests.sim.defences import (
    DEFENCES,
    Defence,
    attack,
    boasted,
    count,
    each,
    stranger,
    unlearned,
)

MANY = os.environ.get("GIAANN_SEEDS")
SEEDS = max(2, int(MANY or "2") // 5)
HOSTILE = 6
TRIED = DEFENCES if MANY else DEFENCES[:3] + DEFENCES[9:12] + DEFENCES[-3:]


def history(seed: int, calm: bool) -> Outcome:
    """Let twenty peers be: eight and two hold shards, three and two learn, of 14 and 6."""
    return run(
        seed,
        storages=8,
        clients=2,
        computes=3,
        chunks=12,
        trouble=130.0,
        hostile=HOSTILE,
        calm=calm,
    )


@pytest.mark.slow
@pytest.mark.timeout(HANGS)
def test_with_hostile_peers_all_reads_are_served_and_none_is_wrong() -> None:
    answered = unanswered = 0
    done = Counter[str]()
    for seed in range(SEEDS):
        outcome = history(seed, calm=True)
        assert outcome.problems == [], f"seed {seed}"
        check_unharmed(outcome)
        done.update(outcome.counts)
        answered += outcome.answered
        unanswered += outcome.unanswered
    check_attacked(done)
    assert answered > 100 * SEEDS
    assert answered >= 0.999 * (answered + unanswered)


@pytest.mark.slow
@pytest.mark.timeout(HANGS)
def test_with_hostile_peers_and_all_else_going_wrong_promises_are_kept() -> None:
    done = Counter[str]()
    for seed in range(1000, 1000 + (SEEDS + 1) // 2):
        outcome = history(seed, calm=False)
        assert outcome.problems == [], f"seed {seed}"
        assert outcome.committed == 3 * 12
        check_unharmed(outcome)
        done.update(outcome.counts)
    check_attacked(done)


def check_unharmed(outcome: Outcome) -> None:
    """Check that somebody meant harm, and nothing came of it."""
    done = outcome.counts
    assert done["sent: flood"] > 0
    assert done["strangers refused"] > 0
    assert done["records refused"] > 50
    assert done["rows believed"] > 100
    assert not any(harm in done for harm in HARM)


def check_attacked(done: Counter[str]) -> None:
    """Check that they did their worst; one that is barred at once has nothing to lie about."""
    for lie in ("Read", "Push", "Compare", "Fetch"):
        assert done[f"lies about {lie}"] > 0
    assert done["rows confirmed unseen"] > 0
    assert done["pushes refused"] > 0
    assert done["liars shunned"] > 0
    assert done["peers named"] > 0


HARM = (
    "a client believes a row that is wrong",
    "a record that was made up is believed",
    "an old record took the place of a newer one",
    "a directory holds more than there is",
    "an honest peer is barred",
)


@pytest.mark.slow
def test_strangers_are_told_nothing_whatever_they_show() -> None:
    everybody = [stranger(pretence) for pretence in Pretence]
    told, refused = attack(
        each(count("a stranger is told"), count("strangers refused")), *everybody
    )
    assert told == 0
    assert refused > 0


@pytest.mark.slow
def test_what_a_peer_says_it_brought_and_did_not_others_learn() -> None:
    boasts, found, left = boasted(
        each(count("boasts"), count("compute peers that brought nothing"), unlearned)
    )
    assert boasts > 5
    assert found == 1
    assert left == 0


@pytest.mark.slow
@pytest.mark.parametrize("defence", TRIED, ids=[one.name for one in TRIED])
def test_an_attack_comes_through_where_its_defence_is_off(
    defence: Defence, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert defence.attack() == 0
    defence.off(monkeypatch)
    assert defence.attack() > 0
