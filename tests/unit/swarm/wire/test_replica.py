"""A shard's life: every turn that there is, and that there is no other."""

from itertools import product

import pytest

from giaann_p2p.swarm.wire.replica import ReplicaState, Turn, turned

TURNS = [
    (ReplicaState.ABSENT, Turn.WANTED, ReplicaState.SYNCING),
    (ReplicaState.ABSENT, Turn.OFFERED, ReplicaState.SYNCING),
    (ReplicaState.SYNCING, Turn.CAUGHT_UP, ReplicaState.READY),
    (ReplicaState.SYNCING, Turn.COVERED, ReplicaState.ABSENT),
    (ReplicaState.READY, Turn.UNWANTED, ReplicaState.DRAINING),
    (ReplicaState.DRAINING, Turn.WANTED, ReplicaState.READY),
    (ReplicaState.DRAINING, Turn.COVERED, ReplicaState.ABSENT),
]
KNOWN = {(before, turn) for before, turn, _ in TURNS}


@pytest.mark.parametrize(("before", "turn", "after"), TURNS)
def test_a_turn(before: ReplicaState, turn: Turn, after: ReplicaState) -> None:
    assert turned(before, turn) is after


@pytest.mark.parametrize(
    ("state", "turn"), [pair for pair in product(ReplicaState, Turn) if pair not in KNOWN]
)
def test_no_other_turn_can_be(state: ReplicaState, turn: Turn) -> None:
    with pytest.raises(ValueError, match=f"{state.name.lower()} cannot be {turn.value}"):
        turned(state, turn)


def test_who_serves_and_which_letters_travel() -> None:
    assert [(state.value, state.serves) for state in ReplicaState] == [
        ("a", False),
        ("s", False),
        ("r", True),
        ("d", True),
    ]
