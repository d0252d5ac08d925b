"""The state of a prompt, on examples small enough to reckon by hand."""

import math

import numpy as np
import pytest
import torch
from msgspec.structs import replace

from giaann_p2p.model import board as boards
from giaann_p2p.model.activation import Activation, Batch, Heard
from giaann_p2p.model.board import ONE, Board
from giaann_p2p.model.candidates import Candidates
from giaann_p2p.model.learn import learn
from giaann_p2p.model.manner import Timing, Variant
from giaann_p2p.model.rows import DeltaRows, Name, Neuron
from giaann_p2p.model.spec import UNITS, increment
from tests.helpers import SMALL, built, row_of
from tests.helpers_plain import batch_of
from tests.plain import sequence as plain

ROWS = DeltaRows(learn(built("a/ b/ c/ bee/N the/ of/ red/ hill/N"), SMALL))
A, B, C, BEE = (Name("bee", word) for word in ("a", "b", "c", None))
THE, OF, RED, HILL = Name("bee", "the"), Name("bee", "of"), Name("hill", "red"), Name("hill", None)
UNKNOWN = Name("bee", "zorp")

CPU = torch.device("cpu")
GAIN = round(math.tanh(1 / 200) * ONE)


def fired(
    names: list[Name], timing: Timing, variant: Variant | None = None, device: torch.device = CPU
) -> Activation:
    batch = Batch(SMALL, device)
    return settled(batch, names, timing, variant or Variant())


def settled(batch: Batch, names: list[Name], timing: Timing, variant: Variant) -> Activation:
    """Return a state of a batch that has fired some words of `ROWS`."""
    heard = Heard(batch.board(variant), [row_of(ROWS, name) for name in names])
    state = Activation(batch, heard, timing)
    batch.settle([state] if names else [])
    return state


def scores(found: Candidates) -> dict[Neuron, int]:
    return dict(zip(found.neurons(), found.score.tolist(), strict=True))


def test_nothing_can_follow_nothing() -> None:
    with pytest.raises(ValueError, match="nothing was fired"):
        fired([], Timing.EXACT).candidates()


def test_what_was_learned_word_for_word_adds_up(mind_device: torch.device) -> None:
    state = fired([A, B, C], Timing.EXACT, device=mind_device)
    # Hit in its three feature segments, one after another, and thrice in its column's segment.
    assert scores(state.candidates()) == {BEE.neuron: 3 * ONE + 3 * GAIN}
    assert state.candidates().strength.tolist() == [increment(1)]


@pytest.mark.parametrize(
    ("prompt", "timing", "heard"),
    [
        ([A, B, C], Timing.EXACT, True),
        ([A, B, UNKNOWN, C], Timing.EXACT, False),
        ([B, C], Timing.EXACT, False),
        ([A, B, UNKNOWN, C], Timing.SEQ, True),
        ([UNKNOWN, A, B, C], Timing.EXACT, True),
        ([B, A, C], Timing.SEQ, False),
        ([B, C], Timing.SEQ, False),
        ([B, A, C], Timing.NONE, True),
        ([C], Timing.NONE, True),
        ([C], Timing.BIASED, True),
        ([UNKNOWN], Timing.NONE, False),
    ],
)
def test_what_a_timing_demands(prompt: list[Name], timing: Timing, heard: bool) -> None:
    assert (len(fired(prompt, timing).candidates()) > 0) == heard


def test_graded_activations_add_up() -> None:
    state = fired([A, B, C], Timing.EXACT, Variant(graded_activations=True))
    assert scores(state.candidates()) == {BEE.neuron: 6 * GAIN}


def test_gains_do_not_depend_on_the_machines_own_functions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    some = np.unique(np.geomspace(1, 1 << 50, 20_000).astype(np.int64))
    wanted = [round(math.tanh(strength / UNITS / 200) * ONE) for strength in some.tolist()]
    monkeypatch.delattr(np, "tanh")
    assert boards._gain(some).tolist() == wanted
    assert boards._gain(np.array([UNITS])).tolist() == [boards.EQUAL_GAIN]


def test_graded_strengths_pass_on_more() -> None:
    both = Variant(graded_strengths=True, graded_activations=True)
    state = fired([A, B, C], Timing.EXACT, both)
    amounts = [round(math.tanh(increment(d) / UNITS / 200) * ONE) for d in (1, 2, 3)]
    assert scores(state.candidates()) == {BEE.neuron: 2 * sum(amounts)}


@pytest.mark.parametrize(
    ("prompt", "late"),
    [([A, B, C], 0), ([A, B, UNKNOWN, C], 2), ([A, UNKNOWN, B, UNKNOWN, C], 3), ([C], 0)],
)
def test_biased_takes_off_what_came_at_the_wrong_time(prompt: list[Name], late: int) -> None:
    free, biased = (fired(prompt, t).candidates() for t in (Timing.NONE, Timing.BIASED))
    assert scores(free)[BEE.neuron] - scores(biased)[BEE.neuron] == late * ONE


@pytest.mark.parametrize(("word", "leads"), [("the", False), ("of", True), (None, False)])
def test_only_a_delimiter_leads_out_of_its_column(word: str | None, leads: bool) -> None:
    # "cook" can be a verb, but as a concept's own noun it delimits nothing.
    last = plain.Neuron("cook", word)
    positions = [plain.Position(last, 0), plain.Position(plain.Neuron("hill", None), 1)]
    rows = DeltaRows(learn(batch_of([positions], SMALL), SMALL))
    batch = Batch(SMALL)
    heard = Heard(batch.board(Variant()), [row_of(rows, Name("cook", word))])
    state = Activation(batch, heard, Timing.NONE)
    batch.settle([state])
    assert state.candidates().neurons() == [HILL.neuron] * leads
    assert state.candidates(anywhere=True).neurons() == [HILL.neuron]


def test_what_has_come_is_no_longer_expected() -> None:
    state = fired([A, B, C, BEE, C], Timing.NONE)
    assert scores(state.candidates()) == {BEE.neuron: ONE + GAIN}


def test_ties_go_to_the_stronger_then_to_the_first() -> None:
    wiring = Board(SMALL, Variant()).wire(row_of(ROWS, A))
    found = Candidates(wiring, np.arange(5), np.array([1, 3, 3, 2, 3]), np.array([9, 4, 5, 9, 5]))
    assert found.ranked(5).tolist() == [2, 4, 1, 3, 0]
    assert found.ranked(2).tolist() == [2, 4]
    assert [found.neuron(at) for at in range(5)] == found.neurons()


@pytest.mark.parametrize("timing", list(Timing))
def test_a_lane_that_was_given_back_is_at_rest(timing: Timing, mind_device: torch.device) -> None:
    batch = Batch(SMALL, mind_device)
    for _ in range(3):
        state = settled(batch, [A, B, C, BEE, THE, OF, RED, A, A], timing, Variant())
        assert (state.start, batch.nbytes > 0) == (1, True)
        del state
        state = settled(batch, [B, C, BEE, THE], timing, Variant())
        fresh = fired([B, C, BEE, THE], timing, device=mind_device)
        assert scores(state.candidates()) == scores(fresh.candidates())
        del state


def test_a_board_wires_a_row_once_and_knows_it_then() -> None:
    board = Board(SMALL, Variant())
    row = row_of(ROWS, A)
    assert board.wire(row) is board.wire(row_of(ROWS, A))
    assert board.wire(row).row is row
    longer = replace(row, count=row.count + 1)
    assert board.wire(longer).row is longer
    assert len(board) == 1 + len(row.target_concept)


@pytest.mark.parametrize(("limit", "most"), [("_MOST_SLOTS", 7), ("_MOST_CONNECTIONS", 15)])
def test_a_board_that_grew_too_large_is_full(
    limit: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, limit, most)
    board = Board(SMALL, Variant())
    board.wire(row_of(ROWS, BEE))
    board.wire(row_of(ROWS, BEE))
    assert not board.full
    board.wire(row_of(ROWS, A))
    board.wire(row_of(ROWS, B))
    assert board.full
