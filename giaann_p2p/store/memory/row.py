"""Assembles a row for a reader from its merged and unmerged parts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import first_of_runs
from giaann_p2p.model.neurons import Neurons
from giaann_p2p.model.rows import Name, Neuron, Numbers, Row
from giaann_p2p.store.memory.places import Places
from giaann_p2p.store.memory.shard import Part

_KEY, _HALF = np.dtype("<u8"), 32


def joined(parts: Sequence[Part]) -> Part:
    """Add up the parts of one row into one part.

    The function makes few numpy calls: most of them release the interpreter lock, and a reader that
    loses the lock to a writer waits for longer than its whole read takes.
    """
    target = _end_to_end([part.target for part in parts])
    place = _end_to_end([part.place for part in parts])
    units = np.concatenate([part.units for part in parts], dtype=np.int64)
    key = np.left_shift(target, _HALF, dtype=_KEY)
    key |= place
    order = key.argsort(kind="stable")  # fast: it merges ascending runs, and each part is one
    key = key[order]
    first = first_of_runs(key)
    key = key[first]
    halves = key.view("<u4")
    units = np.add.reduceat(units[order], first.nonzero()[0])
    if not units.all():  # some connections were withdrawn
        left = units.nonzero()[0]
        halves, units = key[left].view("<u4"), units[left]
    return Part(halves[1::2], halves[::2].astype(parts[0].place.dtype), units)


def _end_to_end(arrays: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return np.frombuffer(b"".join([array.data for array in arrays]), arrays[0].dtype)


def row_of(
    neuron: Neuron,
    number: int,
    name: Name,
    count: int,
    part: Part,
    neurons: Neurons,
    places: Places,
) -> Row:
    """Return a neuron's row, made from one part that has all of the row's connections.

    Targets are in the order of their neurons' numbers.
    """
    first = first_of_runs(part.target)
    target = part.target[first].astype(np.int64)
    first[:1] = False
    concept, feature = neurons.ids(target)
    return Row(
        neuron,
        name,
        count,
        concept,
        feature,
        first.cumsum(),
        places.branch(part.place),
        places.segment(part.place),
        part.units.astype(np.int64, copy=False),
        Numbers(neurons, number, target),
    )
