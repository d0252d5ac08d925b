"""Rows as readers want them: one put together from its parts, or many in the form that travels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import EMPTY, ConnectionKey, Delta, first_of_runs
from giaann_p2p.model.rows import Name, Neuron, Row
from giaann_p2p.model.sequence import Ints, Names
from giaann_p2p.store.memory.neurons import Neurons, Numbers
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


def delta_of(
    found: Numbers,
    count: Sequence[int],
    parts: Sequence[tuple[int, Part]],
    neurons: Neurons,
    places: Places,
    names: Names,
) -> Delta:
    """Return some rows as a delta, the form in which they travel; `DeltaRows` reads them.

    `found` tells each row's neuron; `parts` are pieces of rows, each with its row's place there.
    """
    if not len(found):
        return EMPTY
    of_part, pieces = zip(*parts, strict=True) if parts else ((), ())
    target, place = _joined(pieces, 0, np.uint32), _joined(pieces, 1, places.dtype)
    every, index = np.unique(np.concatenate([found, target]), return_inverse=True)
    concept, feature = neurons.concept[every], neurons.feature[every]
    order = np.lexsort((feature, concept))
    slot = np.empty(len(every), np.int64)
    slot[order] = np.arange(len(every))
    slot = slot[index]
    source = slot[: len(found)]
    key = ConnectionKey.for_sizes(len(every), places.branches, places.segments)
    packed = key.pack(
        source[np.repeat(np.array(of_part, np.int64), [len(piece.target) for piece in pieces])],
        slot[len(found) :],
        places.branch(place).astype(np.int64),
        places.segment(place).astype(np.int64),
    )
    counts = np.zeros(len(every), np.int64)
    counts[source] = count
    packed, units = _summed(packed, _joined(pieces, 2, np.int64))
    return key.delta(concept[order], feature[order], counts, packed, units, names)


def _summed(packed: Ints, units: Ints) -> tuple[Ints, Ints]:
    """Sort connections, and add up those of one place."""
    if not len(packed):
        return packed, units
    order = packed.argsort()
    packed = packed[order]
    first = first_of_runs(packed)
    return packed[first], np.add.reduceat(units[order], first.nonzero()[0])


def _joined(parts: Sequence[Part], field: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *(part[field] for part in parts)], dtype=dtype)
