"""Slots: one for each neuron, whatever tells its name or its number."""

from dataclasses import replace

import numpy as np
import pytest

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
