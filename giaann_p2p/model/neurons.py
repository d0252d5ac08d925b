"""Numbers neurons 0, 1, 2, ... in order of arrival, so that a connection refers to one in 4 bytes.

The words of all neurons are numbered, too. There are few of them, so a neuron takes the 8 bytes of
its words' numbers, rather than the 16 of their ids.

One thread adds neurons, and any thread may look them up meanwhile. A word is written before its
neurons, and a neuron before its slot; an array that grows is replaced by another. So a reader loads
a slot first, then the neuron, and then its words.
"""

import secrets
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.hash_table import FREE, Bools, HashTable, Numbers, first_place, step
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.ranks import ranked
from giaann_p2p.model.sequence import Ids, Ints

_HALF = 32
_WORD = (1 << 64) - 1
_FEW = 32
"""Up to this many neurons are faster to look up one by one."""
_SPARE = 16
"""Growing arrays grow by this part of their length, so that little of them is unused."""


class WordIndices(NamedTuple):
    """Some neurons, as indices of words."""

    words: Ids
    """The ids of the neurons' words, ascending; PRIME is always the first."""
    concept: Ints
    """The index of each neuron's concept."""
    feature: Ints
    """The index of each neuron's feature."""


class _Words:
    """A mapping from words' ids to their numbers."""

    def __init__(self, factor: int) -> None:
        self._factor = np.uint64(factor)
        self._table = HashTable(full=0.5)
        self.count = 0
        self.ids: Ids = np.zeros(1, np.uint64)
        """The ids by number; the array may be longer than there are words."""

    @property
    def nbytes(self) -> int:
        return self._table.slots.nbytes + self.ids.nbytes

    def numbers(self, ids: Ids) -> Numbers:
        """Return the numbers of words; new words are added, with the next numbers."""
        found = self.look_up(ids)
        new = (found == FREE).nonzero()[0]
        if len(new):
            added, at = np.unique(ids[new], return_inverse=True)
            first, self.count = self.count, self.count + len(added)
            self.ids = _with_room(self.ids, self.count)
            self.ids[first : self.count] = added
            self._table.add(first, self.count, lambda number: self.ids[number] * self._factor)
            found[new] = at + first
        return found

    def look_up(self, ids: Ids) -> Numbers:
        """Return the number of each word; FREE for a word that was never added."""

        def same(number: Numbers, at: Ints) -> Bools:
            alike: Bools = self.ids.take(number, mode="clip") == ids[at]
            return alike

        return self._table.look_up(ids * self._factor, same)


class Neurons:
    """A mapping from neurons to their numbers."""

    def __init__(self) -> None:
        # Random, so that nobody can choose words whose neurons collide.
        self._a, self._b = secrets.randbits(64) | 1, secrets.randbits(64) | 1
        self._count = 0
        self._words = _Words(self._a)
        # By number: the numbers of the concept, in the upper half, and of the feature.
        self._pairs: Ids = np.zeros(1, np.uint64)
        self._table = HashTable(full=0.75)

    def __len__(self) -> int:
        return self._count

    @property
    def room(self) -> int:
        """The number of neurons that fit without more memory; a little more than there are."""
        return len(self._pairs)

    @property
    def nbytes(self) -> int:
        """The memory that the mapping takes, in bytes."""
        return self._table.slots.nbytes + self._pairs.nbytes + self._words.nbytes

    def find(self, concept: int, feature: int) -> int | None:
        """Return a neuron's number; None if the neuron was never added."""
        slots, probe = self._table.slots, 0
        place = first_place(concept * self._a + feature * self._b & _WORD, len(slots))
        while (number := slots.item(place)) != FREE:
            pair, ids = self._pairs.item(number), self._words.ids
            if ids.item(pair >> _HALF) == concept and ids.item(pair & FREE) == feature:
                return number
            probe += 1
            place = (place + step(probe)) % len(slots)
        return None

    def numbers(self, concept: Ids, feature: Ids) -> Numbers:
        """Return the numbers of distinct neurons; new neurons are added, with the next numbers."""
        found = self.look_up(concept, feature)
        new = (found == FREE).nonzero()[0]
        if len(new):
            word = self._words.numbers(np.concatenate([concept[new], feature[new]]))
            upper, lower = word.reshape(2, -1).astype(np.uint64)
            first, end = self._count, self._count + len(new)
            self._pairs = _with_room(self._pairs, end)
            self._pairs[first:end] = upper << np.uint64(_HALF) | lower
            self._count = end
            self._table.add(first, end, lambda number: self._hashes(*self.ids(number)))
            found[new] = np.arange(first, end)
        return found

    def look_up(self, concept: Ids, feature: Ids) -> Numbers:
        """Return the numbers of some neurons; 2^32 - 1 for a neuron that was never added."""
        if len(concept) <= _FEW:
            one_by_one = map(self.find, concept.tolist(), feature.tolist())
            return np.array([FREE if one is None else one for one in one_by_one], np.uint32)

        def same(number: Numbers, at: Ints) -> Bools:
            concepts, features = self.ids(number)
            alike: Bools = concepts == concept[at]
            alike &= features == feature[at]
            return alike

        return self._table.look_up(self._hashes(concept, feature), same)

    def ids(self, number: Numbers | Ints) -> tuple[Ids, Ids]:
        """Return the concepts and the features of neurons; arbitrary ones for the number FREE."""
        pair = self._pairs.take(number, mode="clip")
        ids = self._words.ids.take(pair.view("<u4"))
        return ids[1::2], ids[::2]

    def word_indices(self, number: Numbers | Ints) -> WordIndices:
        """Return neurons as indices of their words."""
        halves = self._pairs.take(number, mode="clip").view("<u4")
        used, index = ranked(halves, self._words.count)
        ids = self._words.ids[used]
        if PRIME not in ids:
            ids = np.append(ids, np.uint64(PRIME))
        order = ids.argsort()
        place = np.empty(len(ids), np.int64)
        place[order] = np.arange(len(ids))
        index = place[index]
        return WordIndices(ids[order], index[1::2], index[::2])

    def of_concept(self, concept: int) -> Ints:
        """Return the numbers of a concept's neurons, in ascending order."""
        (word,) = self._words.look_up(np.array([concept], np.uint64))
        halves = self._pairs[: self._count].view("<u4")
        found: Ints = (halves[1::2] == word).nonzero()[0]
        return found

    def _hashes(self, concept: Ids, feature: Ids) -> Ids:
        return concept * np.uint64(self._a) + feature * np.uint64(self._b)


def _with_room(old: Ids, size: int) -> Ids:
    """Return the array, or a longer one with the same beginning."""
    if size <= len(old):
        return old
    longer = np.zeros(size + size // _SPARE, np.uint64)
    longer[: len(old)] = old
    return longer
