"""A running total of deltas that stays cheap however many come.

Each new delta is added at once only to totals of about its own size, so that a connection takes
part in about log2(n) additions however many deltas there are. What comes out does not depend on it.
"""

from giaann_p2p.model.delta import EMPTY, Delta, total


class Tally:
    """The sum of all deltas that were added."""

    def __init__(self, start: Delta = EMPTY) -> None:
        self._tiers = [start]  # sizes fall by half or more from each to the next

    def add(self, delta: Delta) -> None:
        """Add one more."""
        self._tiers.append(delta)
        while len(self._tiers) > 1 and _size(self._tiers[-2]) < 2 * _size(self._tiers[-1]):
            self._tiers[-2:] = [total(self._tiers[-2:])]

    def total(self) -> Delta:
        """Return the sum."""
        self._tiers = [total(self._tiers)]
        return self._tiers[0]


def _size(delta: Delta) -> int:
    return delta.connections + delta.neurons
