"""Lists the nouns that some shards hold: each has a row of its own, at its column's PRIME."""

from typing import NamedTuple

import numpy as np

from giaann_p2p.model.ids import PRIME
from giaann_p2p.store.state import Captured


class Noun(NamedTuple):
    """A noun with a column, and how often it occurred."""

    name: str
    occurrences: int


def nouns(captured: Captured) -> list[Noun]:
    """Return the nouns of captured shards, in the order of their names."""
    neurons, names = captured.columns.neurons, captured.columns.names
    found = list[Noun]()
    for shard in captured.shards:
        is_noun = (neurons.feature[shard.neuron] == np.uint64(PRIME)) & (shard.count > 0)
        concepts = neurons.concept[shard.neuron[is_noun]].tolist()
        for concept, count in zip(concepts, shard.count[is_noun].tolist(), strict=True):
            if (name := names.get(concept)) is not None:
                found.append(Noun(name, count))
    return sorted(found)
