"""Estimates how long the store will take for the queued updates, from recent groups of updates.

The updates of a group share one wait for the disk, so a small group is too noisy to measure the
pace: each group counts in proportion to its size.
"""

EACH = 1 << 12
"""Fixed cost of one update, as the number of bytes that take about as long to write."""
_KEPT = 0.7
"""Decay: the weight of all earlier groups is multiplied by it when a group is counted."""


class Effort:
    """The store's seconds per byte of updates, as a decaying average; 0 before the first group."""

    def __init__(self) -> None:
        self._seconds = self._weight = 0.0

    def __repr__(self) -> str:
        return f"<Effort: {self.of(1, 0):.4f} s for an update, {self.of(0, 1 << 20):.3f} s a MiB>"

    def of(self, updates: int, nbytes: int) -> float:
        """Return the estimated seconds to write `updates` updates of `nbytes` bytes in all."""
        if not self._weight:
            return 0.0
        return self._seconds * (updates * EACH + nbytes) / self._weight

    def took(self, updates: int, nbytes: int, seconds: float) -> None:
        """Count a group of `updates` updates, of `nbytes` bytes in all, written in `seconds`."""
        self._seconds = _KEPT * self._seconds + seconds
        self._weight = _KEPT * self._weight + updates * EACH + nbytes
