"""Rows as readers want them: one put together from its parts, or many in the form that travels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import EMPTY, ConnectionKey, Delta, first_of_runs, unique_neurons
from giaann_p2p.model.rows import Name, Neuron, Row
from giaann_p2p.model.sequence import Names
from giaann_p2p.store.memory.neurons import Neurons
from giaann_p2p.store.memory.places import Places
from giaann_p2p.store.memory.shard import Part

_KEY, _HALF = np.dtype("<u8"), 32


def joined(parts: Sequence[Part]) -> Part:
    """Add up some parts of one row.

    Most numpy calls offer Python's lock to others, and a reader that a writer takes it from waits
    for longer than its reading takes. So there are few of them here.
    """
    target = _end_to_end([part.target for part in parts])
    place = _end_to_end([part.place for part in parts])
    units = np.concatenate([part.units for part in parts], dtype=np.int64)
    key = np.left_shift(target, _HALF, dtype=_KEY)
    key |= place
    order = key.argsort(kind="stable")  # it merges ascending runs, and these are some
    key = key[order]
    first = first_of_runs(key)
    key = key[first]
    halves = key.view("<u4")
    units = np.add.reduceat(units[order], first.nonzero()[0])
    return Part(halves[1::2], halves[::2].astype(parts[0].place.dtype), units)


def _end_to_end(arrays: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return np.frombuffer(b"".join([array.data for array in arrays]), arrays[0].dtype)


def row_of(
    neuron: Neuron, name: Name, count: int, part: Part, neurons: Neurons, places: Places
) -> Row:
    """Return the row; its targets are in the order of their numbers here."""
    first = first_of_runs(part.target)
    number = part.target[first]
    first[:1] = False
    return Row(
        neuron,
        name,
        count,
        neurons.concept[number],
        neurons.feature[number],
        first.cumsum(),
        places.branch(part.place),
        places.segment(part.place),
        part.units.astype(np.int64, copy=False),
    )


def delta_of(rows: Sequence[Row]) -> Delta:
    """Return distinct rows as a delta, the form in which they travel; `DeltaRows` reads them."""
    if not rows:
        return EMPTY
    neurons = [row.neuron for row in rows]
    concept, feature, slot = unique_neurons(
        _joined([np.array([n.concept for n in neurons], np.uint64)], rows, "target_concept"),
        _joined([np.array([n.feature for n in neurons], np.uint64)], rows, "target_feature"),
    )
    source, targets = slot[: len(rows)], slot[len(rows) :]
    first = np.cumsum([0, *(len(row.target_concept) for row in rows)])  # each row's first target
    target = [row.target + start for row, start in zip(rows, first[:-1], strict=True)]
    branch, segment = _joined([], rows, "branch"), _joined([], rows, "segment")
    key = ConnectionKey.for_sizes(
        len(concept), int(branch.max(initial=0)) + 1, int(segment.max(initial=0)) + 1
    )
    packed = key.pack(
        np.repeat(source, [len(row.target) for row in rows]),
        targets[np.concatenate(target)],
        branch.astype(np.int64),
        segment.astype(np.int64),
    )
    order = np.argsort(packed)
    count = np.zeros(len(concept), np.int64)
    count[source] = [row.count for row in rows]
    units = _joined([], rows, "strength")[order]
    return key.delta(concept, feature, count, packed[order], units, _names_of(rows))


def _joined(first: list[npt.NDArray[Any]], rows: Sequence[Row], name: str) -> npt.NDArray[Any]:
    return np.concatenate([*first, *(getattr(row, name) for row in rows)])


def _names_of(rows: Sequence[Row]) -> Names:
    names = {row.neuron.concept: row.name.concept for row in rows}
    return names | {row.neuron.feature: row.name.feature for row in rows if row.name.feature}
