"""Lists the nouns that some shards hold: each has a row, whose neuron is (noun, PRIME)."""

from heapq import nsmallest
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.state import Captured


class Noun(NamedTuple):
    """A noun with a column, and how often it occurred."""

    name: str
    occurrences: int


def nouns(captured: Captured, frequent: int = 0) -> list[Noun]:
    """Return the nouns of captured shards, in the order of their names.

    With `frequent`, return only that many of the most frequent nouns; ties go to the first by name.
    """
    neurons, names = captured.columns.neurons, captured.columns.names
    found = list[Noun]()
    for shard in captured.shards:
        concept, feature = neurons.ids(shard.neuron)
        is_noun = (feature == np.uint64(PRIME)) & (shard.count > 0)
        if frequent:
            is_noun &= shard.count >= _least(shard.count[is_noun], frequent)
        words, counts = concept[is_noun].tolist(), shard.count[is_noun].tolist()
        for word, count in zip(words, counts, strict=True):
            if (name := names.get(word)) is not None:
                found.append(Noun(name, count))
    if frequent:
        found = nsmallest(frequent, found, key=lambda noun: (-noun.occurrences, noun.name))
    return sorted(found)


def _least(counts: Ints, most: int) -> int:
    """Return the least of the `most` greatest counts; 0 if there are at most `most` counts."""
    return int(np.partition(counts, -most)[-most]) if len(counts) > most else 0
