"""The same work on plain dictionaries and on lmdb, in the most straightforward ways."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.rows import Neuron
from tests.benchmarks.workload import SPEC

_PLACES = SPEC.segments
_ROW = np.dtype([("target", ">u4"), ("place", "u1"), ("strength", "<u4")])
_KEY = np.dtype([("source", ">u4"), ("target", ">u4"), ("place", "u1")])
_MAP = 1 << 35


class Rival(Protocol):
    """Another way to keep connections."""

    def apply(self, deltas: Sequence[Delta]) -> None: ...

    def read(self, neuron: Neuron) -> npt.NDArray[Any]: ...

    def close(self) -> None: ...
