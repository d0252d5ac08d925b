"""Many minds at once: what a step costs, and what happens when memory is lacking."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from giaann_p2p.model import activation
from giaann_p2p.model.activation import Activation, Batch, Heard, NoMemory
from giaann_p2p.model.arrays import Array, TorchArrays
from giaann_p2p.model.board import Wiring
from giaann_p2p.model.candidates import Candidates
from giaann_p2p.model.generate import Mind, best
from giaann_p2p.model.lanes import Lanes
from giaann_p2p.model.learn import learn
from giaann_p2p.model.manner import AUTO, Timing, Variant
from giaann_p2p.model.rows import DeltaRows, Name, Row, abreast, run
from tests.helpers import SMALL, built, row_of

ROWS = DeltaRows(learn(built("a/ b/ c/ bee/N the/ of/ red/ hill/N"), SMALL))
WORDS = [Name("bee", word) for word in ("a", "b", "c", None, "the", "of")]


def states(batch: Batch, count: int, timings: Sequence[Timing] = AUTO) -> list[Activation]:
    """Return states that have heard nothing yet, under one timing after another."""
    board = batch.board(Variant())
    return [Activation(batch, Heard(board), timings[n % len(timings)]) for n in range(count)]


def step(batch: Batch, some: Sequence[Activation], name: Name) -> list[list[tuple[int, int]]]:
    """Have all states hear a word; return their candidates' indices and scores."""
    for state in some:
        state.heard.rows.append(row_of(ROWS, name))
    batch.settle(some)
    return [listed(state.candidates(anywhere=True)) for state in some]


def listed(found: Candidates) -> list[tuple[int, int]]:
    return list(zip(found.index.tolist(), found.score.tolist(), strict=True))


class Counting(TorchDispatchMode):
    """Counts the operations of torch that compute or copy something."""

    def __init__(self) -> None:
        super().__init__()
        self.ops = Counter[str]()

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: object,
        args: Sequence[object] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        if not func.is_view:
            self.ops[str(func)] += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("timing", list(Timing))
def test_a_step_costs_as_many_operations_whatever_the_number_of_minds(
    timing: Timing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activation, "arrays_on", TorchArrays)
    counts = []
    for count in (1, 16):
        batch = Batch(SMALL)
        some = states(batch, count, [timing])
        for state in some:
            state.ahead = True
        step(batch, some, WORDS[0])
        for name in WORDS[1:4]:  # each row is wired in this step, and sent
            with Counting() as counting:
                step(batch, some, name)
            assert counting.ops["aten._to_copy.default"] == 2  # there, and back
        counts.append(counting.ops)
    assert counts[0] == counts[1]
    assert counts[0].total() < 80


def test_lanes_that_move_together_cost_as_many_operations_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(activation, "arrays_on", TorchArrays)
    monkeypatch.setattr(activation, "_LEAST_ROOM", 1)
    counts = []
    for count in (1, 16):
        batch = Batch(SMALL)
        some = states(batch, count, [Timing.EXACT])
        step(batch, some, WORDS[5])
        rooms = [state.room for state in some]
        with Counting() as counting:
            step(batch, some, WORDS[0])
        assert all(state.room > room for state, room in zip(some, rooms, strict=True))
        counts.append(counting.ops)
    assert counts[0] == counts[1]


@pytest.mark.parametrize("timing", list(Timing))
def test_words_that_an_answer_repeats_are_copied_and_cleared_once(
    timing: Timing, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    touched = Lanes._touched

    def noted(lanes: Lanes, wirings: Sequence[Sequence[Wiring]], start: list[int]) -> Array:
        sizes.extend(map(len, wirings))
        return touched(lanes, wirings, start)

    monkeypatch.setattr(Lanes, "_touched", noted)
    batch = Batch(SMALL)
    (state,) = states(batch, 1, [timing])
    for name in WORDS[:2] * 20:
        step(batch, [state], name)
    branch = Activation(batch, state.heard.copy(), timing)
    branch.origin = state.here
    assert step(batch, [branch], WORDS[2]) == step(batch, [state], WORDS[2])
    assert sizes.pop() == 2
    del branch, state
    step(batch, states(batch, 1, [timing]), WORDS[0])
    assert sizes[-2:] == [3, 3]


class Small(TorchArrays):
    """A device without the memory for more than so many arrays at once."""

    most = 1000

    def joined(self, arrays: Sequence[Array]) -> Array:
        if len(arrays) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nMore.")
        return super().joined(arrays)


def test_for_want_of_memory_on_the_device_minds_are_settled_in_halves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = Batch(SMALL)
    monkeypatch.setattr(activation, "arrays_on", Small)
    batch = Batch(SMALL)
    some, wanted = states(batch, 7), states(other, 7)
    for most, name in zip((1000, 12, 1000, 24, 12, 1000), WORDS, strict=True):
        monkeypatch.setattr(Small, "most", most)
        assert step(batch, some, name) == step(other, wanted, name)


def test_without_any_memory_on_the_device_a_mind_is_refused_in_words_and_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(activation, "arrays_on", Small)
    batch = Batch(SMALL)
    some = states(batch, 3)
    step(batch, some[:2], WORDS[0])
    monkeypatch.setattr(Small, "most", 0)
    with pytest.raises(NoMemory, match="the device has no memory left for this prompt; ask"):
        step(batch, some[:1], WORDS[1])
    monkeypatch.setattr(Small, "most", 1000)
    fresh = states(Batch(SMALL), 1, AUTO[1:])
    for name in WORDS[:1]:
        step(fresh[0]._batch, fresh, name)
    assert step(batch, some[1:2], WORDS[1]) == step(fresh[0]._batch, fresh, WORDS[1])


def test_all_minds_share_one_bound_on_memory() -> None:
    batch = Batch(SMALL, most_bytes=300_000)
    minds = list[Mind]()

    def begin(_: int = 0) -> None:
        minds.append(Mind(batch))
        minds[-1].hear(row_of(ROWS, WORDS[0]))
        run(best(minds[-1]), ROWS)

    with pytest.raises(NoMemory, match="the 300,000 bytes for all prompts are in use"):
        list(map(begin, range(100)))
    assert 1 < len(minds) < 100
    assert batch.nbytes <= 300_000
    run(best(minds[0]), ROWS)
    minds.clear()
    begin()


def test_an_error_ends_only_the_mind_that_it_concerns(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = Batch(SMALL)
    minds = [Mind(batch, [Timing.NONE]) for _ in range(5)]
    for mind, name in zip(minds, WORDS, strict=False):
        mind.hear(row_of(ROWS, name))
    wire = batch.board(Variant()).wire

    def wired(row: Row) -> Wiring:
        if row.name == WORDS[2]:
            raise ZeroDivisionError
        return wire(row)

    monkeypatch.setattr(batch.board(Variant()), "wire", wired)
    with pytest.raises(ZeroDivisionError):
        run(best(minds[2]), ROWS)
    others = [*minds[:2], *minds[3:]]
    found = run(abreast([best(mind) for mind in others]), ROWS)
    assert found == [run(best(mind), ROWS) for mind in others]
    assert repr(batch).startswith("<Batch: ")


def test_lanes_that_cannot_be_cleared_together_are_cleared_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch = Batch(SMALL)
    first = states(batch, 5)
    before = step(batch, first, WORDS[0])
    used, clear = batch.nbytes, batch._lanes.clear
    for state in first:
        state.leave()

    def clears_two(wirings: list[Any], starts: list[int]) -> None:
        if len(starts) > 2:
            raise torch.OutOfMemoryError
        clear(wirings, starts)

    monkeypatch.setattr(batch._lanes, "clear", clears_two)
    assert step(batch, states(batch, 5), WORDS[0]) == before
    assert batch.nbytes == used


def test_lanes_that_cannot_be_cleared_are_cleared_later(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = Batch(SMALL)
    first = states(batch, 2)
    before = step(batch, first, WORDS[0])
    used = batch.nbytes
    for state in first:
        state.leave()

    def fails(*lanes: object) -> None:
        raise RuntimeError("the device is gone")

    clear = batch._lanes.clear
    monkeypatch.setattr(batch._lanes, "clear", fails)
    batch.settle([])  # ends, although nothing could be settled in halves
    (lost,) = states(batch, 1)
    lost.heard.rows.append(row_of(ROWS, WORDS[0]))
    batch.settle([lost])
    with pytest.raises(RuntimeError, match="the device is gone"):
        lost.candidates()
    monkeypatch.setattr(batch._lanes, "clear", clear)
    later = states(batch, 2)
    assert step(batch, later, WORDS[0]) == before
    assert batch.nbytes == used
