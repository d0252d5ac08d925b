"""Columns are read without a lock: one thread stops at each line, and another does its work."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FrameType
from typing import TypeVar

import numpy as np
import pytest

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.rows import Neuron
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.memory import columns
from giaann_p2p.store.memory.columns import Columns
from giaann_p2p.store.memory.places import Places
from tests.helpers import SMALL
from tests.helpers_store import lessons

LESSONS = lessons(12, seed=7)  # their rows are divided in every doubling
LAYOUT = Layout(shards=2, blocks=8)
FIRST, LATER = LESSONS[:8], LESSONS[8:]
T = TypeVar("T")
SPINNING = 50
"""The times that a reader tries again before it is stopped."""

Rows = dict[Neuron, tuple[int, int] | None]
"""By neuron, its count and the sum of its strengths."""
Read = Callable[[Columns], Rows]
Write = Callable[[Columns], object]


class WaitingError(Exception):
    """A reader tries again and again, until the writer goes on."""


def shards_of(held: Columns) -> np.ndarray:
    return np.arange(held.layout.shards, dtype=np.uint16)


def filled(pending: bool) -> Columns:
    """Return columns with some rows merged, and perhaps others pending."""
    held = Columns(LAYOUT, Places(SMALL.branches, SMALL.segments))
    for number in range(LAYOUT.shards):
        held.hold(number)
    for one in FIRST[:6]:
        held.add(one.delta, shards_of(held))
    held.merge_all()
    for one in FIRST[6:] if pending else ():
        held.add(one.delta, shards_of(held))
    return held


def divide(held: Columns) -> None:
    held.double(held.layout.with_shards(2 * held.layout.shards))


def add(number: int) -> Write:
    return lambda held: held.add(LATER[number].delta, shards_of(held))


def drop(number: int) -> Write:
    return lambda held: held.drop(number)


def hold(number: int) -> Write:
    return lambda held: held.hold(number)


GO_ON = [divide, add(0), add(1), Columns.merge_all, divide, add(2)]
MERGE = [divide, add(0), Columns.merge_all]
REPLACE = [divide, *(step(n) for n in range(4) for step in (drop, hold)), add(0), Columns.merge_all]


NEURONS = sorted({Neuron(*neuron) for one in LESSONS for neuron in one.rows})
CONCEPT, FEATURE = (np.array(ids, np.uint64) for ids in zip(*NEURONS, strict=True))


def counts(delta: Delta) -> dict[Neuron, tuple[int, int]]:
    found = zip(delta.concept.tolist(), delta.feature.tolist(), strict=True)
    units = np.add.reduceat(np.append(delta.strength, 0), delta.row_starts[:-1])
    units[delta.lengths == 0] = 0
    values = zip(delta.count.tolist(), units.tolist(), strict=True)
    return {Neuron(*n): value for n, value in zip(found, values, strict=True) if value[0]}


def row(held: Columns, neuron: Neuron) -> tuple[int, int] | None:
    found = held.row(neuron)
    return found and (found.count, int(found.strength.sum()))


def one_by_one(neurons: Sequence[Neuron], held: Columns) -> Rows:
    return {neuron: row(held, neuron) for neuron in neurons}


def at_once(held: Columns) -> Rows:
    found = counts(held.delta_of(CONCEPT, FEATURE))
    return {neuron: found.get(neuron) for neuron in NEURONS}


READS = [*(partial(one_by_one, [neuron]) for neuron in NEURONS[::7]), at_once]


class Stops:
    """Runs something at the n-th line of some functions of `columns`."""

    def __init__(self, names: set[str], at: int, work: Callable[[], object]) -> None:
        self.names, self.left, self.work = names, at, work

    def run(self, what: Callable[[], T]) -> T:
        before = sys.gettrace()
        sys.settrace(self.call)
        try:
            return what()
        finally:
            sys.settrace(before)

    def call(self, frame: FrameType, event: str, argument: object) -> object:
        code = frame.f_code
        here = code.co_filename == columns.__file__ and code.co_name in self.names
        return self.line if here else None

    def line(self, frame: FrameType, event: str, argument: object) -> object:
        if event == "line":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                self.work()
                sys.settrace(self.call)
        return self.line


READING = {"row", "_rows", "_rows_at_once", "_row_at", "features", "_features_at_once"}
WRITING = {"double", "_divide"}


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("writes", [MERGE, GO_ON, REPLACE], ids=["merge", "go on", "replace"])
@pytest.mark.parametrize("read", READS)
def test_a_reader_that_stops_at_any_line_sees_each_row_as_it_was_at_one_moment(
    read: Read, writes: list[Write], pending: bool
) -> None:
    held = filled(pending)
    moments = [read(held)]
    for write in writes:
        write(held)
        moments.append(read(held))
    at, reached = 0, True
    while reached:
        at += 1
        held = filled(pending)
        reader = Stops(READING, at, lambda held=held: [write(held) for write in writes])
        found = reader.run(lambda held=held: read(held))
        reached = reader.left <= 0
        for neuron, value in found.items():
            assert value in [moment[neuron] for moment in moments], at
    assert at > 2


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("read", READS)
def test_a_writer_that_stops_at_any_line_of_a_doubling_has_all_rows(
    read: Read, pending: bool
) -> None:
    wanted = read(filled(pending))
    at, reached, waited = 0, True, 0
    while reached:
        at += 1
        held, found = filled(pending), list[Rows]()

        def look(held: Columns = held, found: list[Rows] = found) -> None:
            with contextlib.suppress(WaitingError), impatient():
                found.append(read(held))

        writer = Stops(WRITING, at, look)
        writer.run(lambda held=held: divide(held))
        reached = writer.left <= 0
        waited += reached and not found
        assert all(one == wanted for one in found), at
        assert read(held) == wanted
    assert at > 20
    assert waited <= 4 * LAYOUT.shards  # the lines between a row's new index and its new shard


def test_the_most_frequent_features_are_those_of_all_parts() -> None:
    held = filled(pending=False)
    concepts = {neuron.concept for neuron in NEURONS}
    wanted = {concept: held.features(concept, 100).tolist() for concept in concepts}
    divide(held)
    divide(held)
    assert {concept: held.features(concept, 100).tolist() for concept in concepts} == wanted


@pytest.mark.parametrize("concept", sorted({neuron.concept for neuron in NEURONS}))
def test_features_are_asked_for_again_if_a_shard_is_divided_meanwhile(concept: int) -> None:
    wanted = filled(pending=False).features(concept, 100).tolist()
    at, reached = 0, True
    while reached:
        at += 1
        held = filled(pending=False)
        reader = Stops(READING, at, lambda held=held: divide(held))
        assert reader.run(lambda held=held: held.features(concept, 100).tolist()) == wanted
        reached = reader.left <= 0
    assert at > 5


@contextlib.contextmanager
def impatient() -> Iterator[None]:
    """Stop a reader that asks for shards again and again; a tracer cannot trace what it calls."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("shard_of", "shards_of"):
            patch.setattr(Layout, name, counted(getattr(Layout, name)))
        yield


def counted(method: Callable[..., T]) -> Callable[..., T]:
    calls = 0

    def called(*arguments: object) -> T:
        nonlocal calls
        calls += 1
        if calls > SPINNING:
            raise WaitingError
        return method(*arguments)

    return called
