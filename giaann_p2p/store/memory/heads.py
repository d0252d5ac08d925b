"""The last piece of each neuron, in four bytes: a piece's number is stored as a distance to a base.

The base moves on each time two billion pieces have come. By then, those before the new base are
merged: two billion pending pieces would take 60 GB.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.hash_table import Numbers
from giaann_p2p.model.sequence import Ints

_NONE = -1
_MOST = 1 << 31
"""The number of pieces that fit behind a base."""


@dataclass(frozen=True, eq=False)
class Heads:
    """The last pieces by neuron. A base never changes, so a reader needs one object only."""

    base: int = 0
    """Invariant: each pending piece has this number or a higher one."""
    last: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    """The number of each neuron's last piece, minus the base; -1 if there is none."""

    def __len__(self) -> int:
        """Return the number of neurons for which there is room."""
        return len(self.last)

    def of(self, neuron: Numbers) -> Ints:
        """Return the number of each neuron's last piece; if there is none, one below the base."""
        return self.last[neuron].astype(np.int64) + self.base

    def one(self, neuron: int) -> int:
        """Return the same for one neuron."""
        return self.last.item(neuron) + self.base

    def put(self, neuron: Numbers, first: int) -> None:
        """Give each neuron another last piece: those from number `first` on, in this order."""
        start = first - self.base
        self.last[neuron] = np.arange(start, start + len(neuron))

    def longer(self, more: int) -> "Heads":
        """Return heads with room for more neurons."""
        return Heads(self.base, np.concatenate([self.last, np.full(more, _NONE, np.int32)]))

    def up_to(self, end: int, pending: int) -> "Heads":
        """Return heads with room for pieces up to `end`; `pending`: the first pending piece."""
        if end - self.base <= _MOST:
            return self
        moved = self.last - np.int64(pending - self.base)
        return Heads(pending, np.maximum(moved, _NONE).astype(np.int32))
