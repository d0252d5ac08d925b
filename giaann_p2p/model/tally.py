"""A running total of deltas that stays cheap however many come.

Each new delta is added at once only to totals of about its own size, so that a connection takes
part in about log2(n) additions however many deltas there are. What comes out does not depend on it.
"""

from giaann_p2p.model.delta import EMPTY, Delta, total


class Tally:
    """The sum of all deltas that were added; a value, so whoever holds one may go back to it."""

    def __init__(self, start: Delta = EMPTY) -> None:
        self._tiers: tuple[Delta, ...] = (start,)  # each at most half as large as the last

    def plus(self, delta: Delta) -> "Tally":
        """Return the tally with one more."""
        tiers = [*self._tiers, delta]
        while len(tiers) > 1 and _size(tiers[-2]) < 2 * _size(tiers[-1]):
            tiers[-2:] = [total(tiers[-2:])]
        more = Tally()
        more._tiers = tuple(tiers)
        return more

    def total(self) -> Delta:
        """Return the sum."""
        if len(self._tiers) > 1:  # added up once: the value stays what it is
            self._tiers = (total(self._tiers),)
        return self._tiers[0]


def _size(delta: Delta) -> int:
    return delta.connections + delta.neurons
