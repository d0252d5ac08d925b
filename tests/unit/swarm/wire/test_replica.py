"""A shard's life: every turn that there is, and that there is no other."""

from itertools import product

import pytest

from giaann_p2p.swarm.replica import State, Turn, turned

TURNS = [
    (State.ABSENT, Turn.WANTED, State.SYNCING),
    (State.SYNCING, Turn.CAUGHT_UP, State.READY),
    (State.SYNCING, Turn.COVERED, State.ABSENT),
    (State.READY, Turn.UNWANTED, State.DRAINING),
    (State.DRAINING, Turn.WANTED, State.READY),
    (State.DRAINING, Turn.COVERED, State.ABSENT),
]
KNOWN = {(before, turn) for before, turn, _ in TURNS}


@pytest.mark.parametrize(("before", "turn", "after"), TURNS)
def test_a_turn(before: State, turn: Turn, after: State) -> None:
    assert turned(before, turn) is after


@pytest.mark.parametrize(
    ("state", "turn"), [pair for pair in product(State, Turn) if pair not in KNOWN]
)
def test_no_other_turn_can_be(state: State, turn: Turn) -> None:
    with pytest.raises(ValueError, match=f"{state.name.lower()} cannot be {turn.value}"):
        turned(state, turn)


def test_who_serves_and_which_letters_travel() -> None:
    assert [(state.value, state.serves) for state in State] == [
        ("a", False),
        ("s", False),
        ("r", True),
        ("d", True),
    ]
