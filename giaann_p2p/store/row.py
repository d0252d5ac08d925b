"""One neuron's row as a reader wants it, put together from its parts."""

from collections.abc import Sequence

import numpy as np

from giaann_p2p.model.delta import first_of_runs
from giaann_p2p.model.rows import Name, Neuron, Row
from giaann_p2p.store.neurons import Neurons
from giaann_p2p.store.places import Places
from giaann_p2p.store.shard import Part


def joined(parts: Sequence[Part]) -> Part:
    """Add up some parts of one row."""
    target = np.concatenate([part.target for part in parts])
    place = np.concatenate([part.place for part in parts])
    key = (target.astype(np.uint64) << np.uint64(16)) | place
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(first_of_runs(key[order]))
    units = np.concatenate([part.units for part in parts]).astype(np.int64)
    kept = order[first]
    summed = np.add.reduceat(units[order], first) if len(first) else units
    return Part(target[kept], place[kept], summed)


def row_of(
    neuron: Neuron, name: Name, count: int, part: Part, neurons: Neurons, places: Places
) -> Row:
    """Return the row: its targets by name, in the order of their ids."""
    concept, feature = neurons.concept[part.target], neurons.feature[part.target]
    order = np.lexsort((feature, concept))  # keeps each target's places in order
    first = first_of_runs(part.target[order])
    chosen, place = order[first], part.place[order]
    return Row(
        neuron,
        name,
        count,
        concept[chosen],
        feature[chosen],
        np.cumsum(first) - 1,
        places.branch(place),
        places.segment(place),
        part.units[order].astype(np.int64),
    )
