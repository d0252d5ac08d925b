"""The content of shards as a delta in canonical form, which does not depend on their history."""

from collections.abc import Sequence

import numpy as np

from giaann_p2p.model.delta import EMPTY, ConnectionKey, Delta, unique_neurons
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.neurons import Neurons
from giaann_p2p.model.sequence import Ids, Ints, Names
from giaann_p2p.store.codec.sheaf import Sheaf
from giaann_p2p.store.memory.places import Places
from giaann_p2p.store.memory.shard import Shard


def content(shards: Sequence[Shard], neurons: Neurons, places: Places, names: Names) -> Delta:
    """Return all rows of some merged shards as a delta."""
    shards = [shard for shard in shards if shard.rows]
    if not shards:
        return EMPTY
    concept, feature, slot = _slots(shards, neurons)
    key = ConnectionKey.for_sizes(len(concept), places.branches, places.segments)
    source = [slot[shard.neuron[shard.row_numbers()]] for shard in shards]
    place = np.concatenate([shard.place for shard in shards])
    packed = key.pack(
        np.concatenate(source),
        slot[np.concatenate([shard.target for shard in shards])],
        places.branch(place).astype(np.int64),
        places.segment(place).astype(np.int64),
    )
    order = np.argsort(packed)
    units = np.concatenate([shard.strengths.units(0, shard.connections) for shard in shards])
    count = np.zeros(len(concept), np.int64)
    for shard in shards:
        there = shard.count > 0
        count[slot[shard.neuron[there]]] = shard.count[there]
    rows = np.concatenate([slot[shard.occurring] for shard in shards])
    held = _names_of(concept[rows], feature[rows], names)
    return key.delta(concept, feature, count, packed[order], units[order], held)


def of_rows(rows: Sheaf, places: Places) -> Delta:
    """Return a sheaf's rows as a delta without names."""
    words = rows.words
    concept, feature, slot = unique_neurons(words[rows.concept], words[rows.feature])
    key = ConnectionKey.for_sizes(len(concept), places.branches, places.segments)
    source = np.repeat(slot[rows.row], np.diff(rows.starts))
    packed = key.pack(
        source,
        slot[rows.target],
        places.branch(rows.place).astype(np.int64),
        places.segment(rows.place).astype(np.int64),
    )
    order = np.argsort(packed)
    count = np.zeros(len(concept), np.int64)
    count[slot[rows.row]] = rows.counts
    return key.delta(concept, feature, count, packed[order], rows.strength[order], {})


def _slots(shards: Sequence[Shard], neurons: Neurons) -> tuple[Ids, Ids, Ints]:
    """Return the concepts and features of all neurons in some shards, in ascending order.

    Also return an array that maps each neuron's number to its index in this order.
    """
    occurs = np.zeros(len(neurons), np.bool_)
    for shard in shards:
        occurs[shard.occurring] = True
        occurs[shard.target] = True
    found = np.flatnonzero(occurs)
    concept, feature = neurons.ids(found)
    order = np.lexsort((feature, concept))
    slot = np.zeros(len(occurs), np.int64)
    slot[found[order]] = np.arange(len(order))
    return concept[order], feature[order], slot


def _names_of(concept: Ids, feature: Ids, names: Names) -> Names:
    """Return the texts of the words of some rows' own neurons.

    The words of a target are left out: the target's own row names them.
    """
    words = np.unique(np.concatenate([concept, feature]))
    return {word: names[word] for word in words.tolist() if word != PRIME}
