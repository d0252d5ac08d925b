"""Rows as readers want them: one put together from its parts, or many in the form that travels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import EMPTY, ConnectionKey, Delta, first_of_runs, unique_neurons
from giaann_p2p.model.rows import Name, Neuron, Row
from giaann_p2p.model.sequence import Ints, Names
from giaann_p2p.store.memory.neurons import Neurons
from giaann_p2p.store.memory.places import Places
from giaann_p2p.store.memory.shard import Part


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
    starts = first_of_runs(part.target).nonzero()[0]
    number = part.target.take(starts)
    concept, feature = neurons.concept.take(number), neurons.feature.take(number)
    chosen = np.lexsort((feature, concept))
    target, order = _regrouped(starts, len(part.target), chosen)
    place = part.place.take(order)
    return Row(
        neuron,
        name,
        count,
        concept.take(chosen),
        feature.take(chosen),
        target,
        places.branch(place),
        places.segment(place),
        part.units.take(order).astype(np.int64, copy=False),
    )


def _regrouped(starts: Ints, end: int, chosen: Ints) -> tuple[Ints, Ints]:
    """Put groups of neighbours in another order, of which each place's group and origin is told.

    Only groups are sorted, not what is in them: that is most of the time of a long row.
    """
    lengths = np.empty_like(starts)
    lengths[:-1] = starts[1:]
    lengths[-1:] = end
    lengths -= starts
    lengths = lengths.take(chosen)
    shift = starts.take(chosen)  # from a place to its origin
    shift[1:] -= lengths.cumsum()[:-1]
    group = np.arange(len(chosen)).repeat(lengths)
    origin = shift.take(group)
    origin += np.arange(end)
    return group, origin


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
