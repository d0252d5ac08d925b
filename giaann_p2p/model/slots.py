"""Slots: the neurons that a prompt has touched, numbered densely in order of arrival.

A row of a store on this machine carries the store's own numbers of its targets, so a slot is found
by indexing an array. Rows from a network carry no numbers: their neurons are looked up by name, and
once such a row has come, all slots are kept by name, too. Names are in a dictionary, because most
rows have a few dozen targets, which arrays would take longer for.

A neuron that a store has never learned has no number either, but it does not require names: it has
no targets, and no row leads to it. If it is learned later, it gets a second slot. The first is then
never activated, because only a row that leads to a neuron activates it.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from giaann_p2p.model.neurons import Neurons
from giaann_p2p.model.rows import Neuron, Row
from giaann_p2p.model.sequence import Ids, Ints

_GROWTH = 1.5
"""The least factor by which to grow, because a store that learns has ever more neurons."""


class Slots:
    """A mapping from neurons to slots; it only grows."""

    def __init__(self) -> None:
        self._count = 0
        self._source: Neurons | None = None  # the numbering that `_mapped` is for
        # By number: the slot plus 1, 0 for none. Such an array takes memory only where it is
        # written to.
        self._mapped = np.zeros(0, np.int64)
        # All slots by concept and feature, once a row without numbers has come.
        self._named: dict[tuple[int, int], int] | None = None
        self._unlearned: dict[tuple[int, int], int] = {}  # while there are no names

    def __len__(self) -> int:
        return self._count

    def of(self, row: Row) -> tuple[int, Ints]:
        """Return the slots of a row's own neuron and targets, [k]; a new neuron gets a new slot."""
        numbers = row.numbers
        is_unlearned = not (row.count or len(row.target)) and numbers is None
        if is_unlearned and self._named is None:
            return self._of_unlearned(row.neuron), np.zeros(0, np.int64)
        if numbers is None or self._source not in (None, numbers.source):
            named = self._by_name(_pairs(row.target_concept, row.target_feature))
            return self._by_name([row.neuron])[0], np.array(named, np.int64)
        self._map(numbers.source, max(numbers.own, int(numbers.target.max(initial=0))))
        targets = self._by_number(numbers.source, numbers.target)
        return int(self._by_number(numbers.source, np.array([numbers.own]))[0]), targets

    def _of_unlearned(self, neuron: Neuron) -> int:
        slot = self._unlearned.setdefault(neuron, self._count)
        self._count += slot == self._count
        return slot

    def _by_number(self, source: Neurons, number: Ints) -> Ints:
        slot = self._mapped[number]
        new = (slot == 0).nonzero()[0]
        if len(new):
            number = number[new]
            slot[new] = self._mapped[number] = self._added(source, number) + 1
        slot -= 1
        return slot

    def _added(self, source: Neurons, number: Ints) -> Ints:
        if self._named is not None:
            return np.array(self._by_name(_pairs(*source.ids(number))), np.int64)
        self._count += len(number)
        return np.arange(self._count - len(number), self._count)

    def _by_name(self, neurons: Iterable[tuple[int, int]]) -> list[int]:
        if self._named is None:
            self._named = self._names()
        named, spare = self._named, self._count - len(self._named)
        slots = [named.setdefault(neuron, len(named) + spare) for neuron in neurons]
        self._count = len(named) + spare
        return slots

    def _names(self) -> dict[tuple[int, int], int]:
        """Return all slots by concept and feature."""
        if self._source is None:
            return dict(self._unlearned)
        number = self._mapped.nonzero()[0]
        slots = (self._mapped[number] - 1).tolist()
        return self._unlearned | dict(zip(_pairs(*self._source.ids(number)), slots, strict=True))

    def _map(self, source: Neurons, largest: int) -> None:
        """Make room for a source's numbers."""
        self._source = source
        if largest >= len(self._mapped):
            grown = np.zeros(max(len(source), int(_GROWTH * len(self._mapped))), np.int64)
            grown[: len(self._mapped)] = self._mapped
            self._mapped = grown


def _pairs(concept: Ids, feature: Ids) -> Iterator[tuple[int, int]]:
    return zip(concept.tolist(), feature.tolist(), strict=True)
