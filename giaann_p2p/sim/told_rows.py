"""The rows that honest peers returned, to judge by them the rows that a client accepts.

A row is true if it lies between two rows that honest peers returned since the client asked: it
equals one of them, or has grown from one of them and can grow into another.
"""

from collections.abc import Iterable

from giaann_p2p.model.rows import Answer, Neuron, Row
from giaann_p2p.swarm.reading.row_match import grown

_Told = dict[object, tuple[Row | None, float]]


class ToldRows:
    """The different rows that honest peers returned of each neuron, and when they last did."""

    def __init__(self) -> None:
        self._told: dict[Neuron, _Told] = {}

    def add(self, neurons: Iterable[Neuron], rows: Answer, now: float) -> None:
        """Remember the rows that an honest peer returns now."""
        for neuron, row in zip(neurons, rows, strict=True):
            self._told.setdefault(neuron, {})[content_of(row)] = row, now

    def are_true(self, neurons: Iterable[Neuron], rows: Answer, asked: float) -> bool:
        """Return whether all rows are true that a client accepts, which asked at that time."""
        return all(
            _is_true(row, [known for known, when in self._of(neuron) if when >= asked])
            for neuron, row in zip(neurons, rows, strict=True)
        )

    def _of(self, neuron: Neuron) -> Iterable[tuple[Row | None, float]]:
        return self._told.get(neuron, {}).values()


def _is_true(row: Row | None, told: list[Row | None]) -> bool:
    content = content_of(row)
    if any(content == content_of(known) for known in told):
        return True
    return any(grown(known, row) for known in told) and any(grown(row, known) for known in told)


def content_of(row: Row | None) -> object:
    """Return the content of a row in a canonical order."""
    if row is None:
        return None
    fields = (
        row.target_concept[row.target],
        row.target_feature[row.target],
        row.branch,
        row.segment,
        row.strength,
    )
    links = zip(*(field.tolist() for field in fields), strict=True)
    return row.name, row.count, tuple(sorted(links))
