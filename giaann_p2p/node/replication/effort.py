"""How long the store will take for what waits for it, by what it took lately.

Many updates share one wait for the disk, so what a few took says little: what was done together
counts by how much it was.
"""

EACH = 1 << 12
"""Bytes that cost as much as an update does by itself, about."""
_KEPT = 0.7
"""What all before counts beside the last group, if that is as large."""


class Effort:
    """Of updates, by their bytes; nothing is known before the first were taken in."""

    def __init__(self) -> None:
        self._seconds = self._weight = 0.0

    def __repr__(self) -> str:
        return f"<Effort: {self.of(1, 0):.4f} s for an update, {self.of(0, 1 << 20):.3f} s a MiB>"

    def of(self, updates: int, nbytes: int) -> float:
        """Return the seconds that some updates will take."""
        if not self._weight:
            return 0.0
        return self._seconds * (updates * EACH + nbytes) / self._weight

    def took(self, updates: int, nbytes: int, seconds: float) -> None:
        """Note how long some took."""
        self._seconds = _KEPT * self._seconds + seconds
        self._weight = _KEPT * self._weight + updates * EACH + nbytes
