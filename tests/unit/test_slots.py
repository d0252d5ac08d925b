"""Slots: one for each neuron, whatever tells its name or its number."""

import numpy as np
import pytest
from msgspec.structs import replace

from giaann_p2p.model.learn import learn
from giaann_p2p.model.neurons import Neurons
from giaann_p2p.model.rows import DeltaRows, Name, Neuron, Numbers, Row, empty_row
from giaann_p2p.model.slots import Slots
from tests.helpers import SMALL, built, row_of

NAMES = [Name("bee", word) for word in ("a", "b", "c", None, "the", "of")]
NAMES += [Name("hill", "red"), Name("hill", None)]
ROWS = DeltaRows(learn(built("a/ b/ c/ bee/N the/ of/ red/ hill/N"), SMALL))


class Holder:
    """Gives the same rows with numbers of its own, which grow as it learns."""

    def __init__(self) -> None:
        self.neurons = Neurons()

    def row(self, name: Name) -> Row:
        row = row_of(ROWS, name)
        concept, feature = np.array([row.neuron], np.uint64).T
        targets = self.neurons.numbers(row.target_concept, row.target_feature).astype(np.int64)
        own = int(self.neurons.numbers(concept, feature)[0])
        return replace(row, numbers=Numbers(self.neurons, own, targets))


def neurons(row: Row) -> list[Neuron]:
    pairs = zip(row.target_concept.tolist(), row.target_feature.tolist(), strict=True)
    return [row.neuron, *(Neuron(*pair) for pair in pairs)]


@pytest.mark.parametrize("turns", ["n", "1", "1n", "n1", "12", "11n1n", "1122n", "n12"])
def test_each_neuron_has_one_slot_whoever_tells_it(turns: str) -> None:
    holders, slots = {"1": Holder(), "2": Holder()}, Slots()
    known: dict[Neuron, int] = {}
    for at, name in enumerate(NAMES * 2):
        holder = holders.get(turns[at % len(turns)])
        row = holder.row(name) if holder else row_of(ROWS, name)
        own, targets = slots.of(row)
        for neuron, slot in zip(neurons(row), [own, *targets.tolist()], strict=True):
            assert known.setdefault(neuron, slot) == slot
    assert sorted(known.values()) == list(range(len(known))) == list(range(len(slots)))


def test_what_was_never_learned_has_a_slot_too() -> None:
    slots, holder = Slots(), Holder()
    slots.of(holder.row(NAMES[0]))
    count = len(slots)
    for _ in range(2):
        unknown = Name("bee", "zorp")
        assert slots.of(empty_row(unknown.neuron, unknown))[0] == count
    assert len(slots) == count + 1


def test_a_row_that_never_occurred_but_leads_somewhere_has_slots_for_its_targets() -> None:
    row = replace(row_of(ROWS, NAMES[3]), count=0)
    own, targets = (slots := Slots()).of(row)
    assert len({own, *targets.tolist()}) == len(slots) == 1 + len(row.target_concept) > 1


def test_what_is_learned_after_it_was_asked_for_keeps_its_slot_in_a_network() -> None:
    slots, name = Slots(), Name("bee", "b")
    first = slots.of(empty_row(name.neuron, name))[0]
    own, targets = slots.of(row_of(ROWS, NAMES[0]))
    assert first == targets[neurons(row_of(ROWS, NAMES[0])).index(name.neuron) - 1]
    assert sorted([own, *targets.tolist()]) == list(range(len(slots)))


@pytest.mark.parametrize("then", ["n", "2"])
def test_what_is_learned_after_it_was_asked_for_has_one_more_slot_in_a_store(then: str) -> None:
    slots, holder, name = Slots(), Holder(), Name("bee", "b")
    slots.of(empty_row(name.neuron, name))
    rows = [holder.row(one) for one in NAMES]
    known = dict[Neuron, int]()
    later = [row_of(ROWS, one) if then == "n" else Holder().row(one) for one in NAMES]
    for row in rows + later:
        own, targets = slots.of(row)
        for neuron, slot in zip(neurons(row), [own, *targets.tolist()], strict=True):
            assert known.setdefault(neuron, slot) == slot
    assert sorted(known.values()) == list(range(1, len(slots)))
