"""Slots: the neurons that a prompt has touched, numbered densely in order of arrival.

A row of a store on this machine carries the store's own numbers of its targets, so a slot is found
by indexing an array. Rows from a network carry no numbers, nor do neurons that were never learned:
these are looked up by name, and once one has come, all slots are kept by name, too.
"""

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
        self._named: Neurons | None = None  # all slots, once a row without numbers has come

    def __len__(self) -> int:
        return self._count

    def of(self, row: Row) -> tuple[int, Ints]:
        """Return the slots of a row's own neuron and targets, [k]; a new neuron gets a new slot."""
        numbers = row.numbers
        if numbers is None or self._source not in (None, numbers.source):
            targets = self._by_name(row.target_concept, row.target_feature)
            return self._own(row.neuron), targets
        self._map(numbers.source, max(numbers.own, int(numbers.target.max(initial=0))))
        targets = self._by_number(numbers.source, numbers.target)
        return int(self._by_number(numbers.source, np.array([numbers.own]))[0]), targets

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
            return self._by_name(*source.ids(number))
        self._count += len(number)
        return np.arange(self._count - len(number), self._count)

    def _by_name(self, concept: Ids, feature: Ids) -> Ints:
        if self._named is None:
            self._named = self._names()
        slot = self._named.numbers(concept, feature).astype(np.int64)
        self._count = len(self._named)
        return slot

    def _own(self, neuron: Neuron) -> int:
        """Return the slot of one neuron; it usually has one, as a target of the row before."""
        found = None if self._named is None else self._named.find(*neuron)
        if found is None:
            concept, feature = np.array([neuron], np.uint64).T
            found = int(self._by_name(concept, feature)[0])
        return found

    def _names(self) -> Neurons:
        """Return all slots by name."""
        named = Neurons()
        if self._source is not None:
            number = self._mapped.nonzero()[0]
            number = number[self._mapped[number].argsort()]
            named.numbers(*self._source.ids(number))
        return named

    def _map(self, source: Neurons, largest: int) -> None:
        """Make room for a source's numbers."""
        self._source = source
        if largest >= len(self._mapped):
            grown = np.zeros(max(len(source), int(_GROWTH * len(self._mapped))), np.int64)
            grown[: len(self._mapped)] = self._mapped
            self._mapped = grown
