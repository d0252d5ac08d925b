"""Sequences: parsed sentences as arrays, many in one structure.

Position i of the batch is one token. Its neuron is (concept[i], feature[i]), both `ids.word_id` of
lower-case text; the feature of a concept's own noun is `ids.PRIME`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.columns import Word, columns, concepts
from giaann_p2p.model.ids import PRIME, word_id

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint64]
Names = dict[int, str]


@dataclass(frozen=True, eq=False)
class Sequences:
    """A batch of n sequences with N tokens in total."""

    starts: Ints
    """Shape [n + 1]: where each sequence starts, and the end of the last."""
    concept: Ids
    """Shape [N]: the concept of each token's column."""
    feature: Ids
    """Shape [N]: the word of each token, or PRIME."""
    column: Ints
    """Shape [N]: the ordinal of each token's column within its sequence."""
    branch: Ints
    """Shape [N]: how often the token's neuron occurred before in its sequence; at most
    branches - 1."""
    end: Ints
    """Shape [N]: the offset at which each token ends in its sentence, in characters."""
    names: Names = field(default_factory=dict)
    """The text of every concept and feature above."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator["Sequences"]:
        """Iterate over the sequences, each as a batch of one."""
        return (self[i : i + 1] for i in range(len(self)))

    def __getitem__(self, part: slice) -> "Sequences":
        """Return some consecutive sequences."""
        first, last, step = part.indices(len(self))
        if step != 1:
            raise ValueError("a batch of sequences can be sliced only with step 1")
        last = max(first, last)
        begin, end = self.starts[first], self.starts[last]
        parts: dict[str, Any] = {name: getattr(self, name)[begin:end] for name in _TOKEN_FIELDS}
        return Sequences(starts=self.starts[first : last + 1] - begin, names=self.names, **parts)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "words"}

    @cached_property
    def words(self) -> list[str]:
        """The tokens' words: a concept's lemma for its prime neuron, else the token's text."""
        names = self.names
        pairs = zip(self.concept.tolist(), self.feature.tolist(), strict=True)
        return [names[feature if feature != PRIME else concept] for concept, feature in pairs]


_TOKEN_FIELDS = ("concept", "feature", "column", "branch", "end")


class SequenceBuilder:
    """Collects sentences, one by one, into a batch."""

    def __init__(self, branches: int) -> None:
        self._branches = branches
        self._starts = [0]
        self._rows: list[tuple[int, int, int, int, int]] = []
        self._names: Names = {}
        self._numbers: dict[str, int] = {}

    def add(self, words: list[Word]) -> bool:
        """Add a sentence of merged words; if it has no noun, return False and add nothing."""
        nouns = concepts(words)
        if not nouns:
            return False
        number = [self._number(words[i].lemma) for i in nouns]
        seen: dict[tuple[int, int], int] = {}
        for i, (word, column) in enumerate(zip(words, columns(words, nouns), strict=True)):
            feature = PRIME if i == nouns[column] else self._number(word.text)
            neuron = number[column], feature
            before = seen.get(neuron, 0)
            seen[neuron] = before + 1
            branch = min(before, self._branches - 1)
            self._rows.append((*neuron, column, branch, word.end))
        self._starts.append(len(self._rows))
        return True

    def build(self) -> Sequences:
        """Return the batch of all added sentences."""
        fields = zip(*self._rows, strict=True) if self._rows else [()] * 5
        concept, feature, column, branch, end = fields
        return Sequences(
            np.array(self._starts, np.int64),
            np.array(concept, np.uint64),
            np.array(feature, np.uint64),
            np.array(column, np.int64),
            np.array(branch, np.int64),
            np.array(end, np.int64),
            self._names,
        )

    def _number(self, word: str) -> int:
        if (number := self._numbers.get(word)) is None:
            number = self._numbers[word] = word_id(word)
            self._names[number] = min(word, self._names.get(number, word))
        return number


def joined_names(parts: list[Names]) -> Names:
    """Merge names; if a number has two texts, the smaller wins, so the order does not matter."""
    names: Names = {}
    for part in parts:
        shared = names.keys() & part.keys()
        clashes = {n: min(names[n], part[n]) for n in shared if names[n] != part[n]}
        names |= part | clashes
    return names
