"""The number of each neuron's last piece, stored in four bytes as the distance from a base.

The base is raised after every two billion pieces. By then, all pieces before the new base are
merged, because two billion pending pieces would take 60 GB.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.hash_table import Numbers
from giaann_p2p.model.sequence import Ints

_NONE = -1
_MOST = 1 << 31
"""The number of pieces after a base whose distances fit into a signed number of four bytes."""


@dataclass(frozen=True, eq=False)
class Heads:
    """The number of the last piece of each neuron.

    The base of an object never changes: a higher base needs another object. So a reader that loads
    one object gets numbers and a base that fit together.
    """

    base: int = 0
    """Invariant: each pending piece has this number or a higher one."""
    last: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    """The number of each neuron's last piece, minus the base; -1 if there is none."""

    def __len__(self) -> int:
        """Return the number of neurons for which there is room."""
        return len(self.last)

    def of(self, neuron: Numbers) -> Ints:
        """Return the number of each neuron's last piece; a neuron without one gets `base` - 1."""
        return self.last[neuron].astype(np.int64) + self.base

    def one(self, neuron: int) -> int:
        """Return the number of one neuron's last piece, or `base` - 1 if it has none."""
        return self.last.item(neuron) + self.base

    def put(self, neuron: Numbers, first: int) -> None:
        """Set the last piece of each neuron: number `first`, `first` + 1, and so on, in order."""
        start = first - self.base
        self.last[neuron] = np.arange(start, start + len(neuron))

    def longer(self, more: int) -> "Heads":
        """Return a copy with room for `more` additional neurons, which have no pieces yet."""
        return Heads(self.base, np.concatenate([self.last, np.full(more, _NONE, np.int32)]))

    def up_to(self, end: int, pending: int) -> "Heads":
        """Return an object that can store piece numbers up to `end`: this one, or a new one.

        `pending`: the number of the first pending piece, which becomes the new object's base.
        """
        if end - self.base <= _MOST:
            return self
        moved = self.last - np.int64(pending - self.base)
        return Heads(pending, np.maximum(moved, _NONE).astype(np.int32))
