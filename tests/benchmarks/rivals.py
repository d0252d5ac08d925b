"""The same work on plain dictionaries and on lmdb, in the most straightforward ways."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import lmdb
import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.benchmarks.process import Memory, Taken, timed
from tests.benchmarks.reading import ANY, _latencies, _of_size, _picked, _told
from tests.benchmarks.workload import ALL, LAYOUT, SPEC, Workload
from tests.benchmarks.writing import GROUP, Figures

_PLACES = SPEC.segments
_ROW = np.dtype([("target", ">u4"), ("place", "u1"), ("strength", "<u4")])
_KEY = np.dtype([("source", ">u4"), ("target", ">u4"), ("place", "u1")])
_MAP = 1 << 35


class Rival(Protocol):
    """Another way to keep connections."""

    def apply(self, deltas: Sequence[Delta]) -> None: ...

    def read(self, neuron: Neuron) -> npt.NDArray[Any]: ...

    def close(self) -> None: ...
