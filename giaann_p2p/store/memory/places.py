"""The *place* of a connection at its target neuron: branch and segment in one small number."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import Bytes


@dataclass(frozen=True)
class Places:
    """The places of a model, numbered in the order of (branch, segment)."""

    branches: int
    segments: int

    @property
    def dtype(self) -> type[np.unsignedinteger[Any]]:
        """The smallest unsigned type that holds every place of the model."""
        return np.uint8 if self.branches * self.segments <= 1 << 8 else np.uint16

    def of(self, branch: Bytes, segment: Bytes) -> npt.NDArray[Any]:
        """Return the place of each pair of a branch and a segment."""
        place: npt.NDArray[Any] = branch.astype(self.dtype) * self.dtype(self.segments) + segment
        return place

    def branch(self, place: npt.NDArray[Any]) -> Bytes:
        """Return the branch of each place."""
        return _looked_up(self._branch, place)

    def segment(self, place: npt.NDArray[Any]) -> Bytes:
        """Return the segment of each place."""
        return _looked_up(self._segment, place)

    @cached_property
    def _branch(self) -> bytes:
        return _padded(np.repeat(np.arange(self.branches, dtype=np.uint8), self.segments))

    @cached_property
    def _segment(self) -> bytes:
        return _padded(np.tile(np.arange(self.segments, dtype=np.uint8), self.branches))


def _padded(table: Bytes) -> bytes:
    return table.tobytes().ljust(1 << 8, b"\0")


def _looked_up(table: bytes, place: npt.NDArray[Any]) -> Bytes:
    if place.itemsize > 1:
        found: Bytes = np.frombuffer(table, np.uint8)[place]
        return found
    # Several times faster than numpy, and it does not release the interpreter lock.
    return np.frombuffer(place.tobytes().translate(table), np.uint8)
