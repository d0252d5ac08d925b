"""The rows that honest peers returned, to judge by them the rows that a client accepts.

A row is true if it lies between two rows that honest peers returned since the client asked: it
equals one of them, or has grown from one of them and can grow into another. A long row is read in
slices, at different moments and from different peers, so each of its slices must be true.
"""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from giaann_p2p.model.row_slice import EVERYTHING, RowSlice
from giaann_p2p.model.rows import Answer, Neuron, Row
from giaann_p2p.swarm.reading.row_match import grown


class _Told(NamedTuple):
    row: Row | None
    within: RowSlice
    when: float


class ToldRows:
    """The different rows that honest peers returned of each neuron, and when they last did."""

    def __init__(self) -> None:
        self._told: dict[Neuron, dict[object, _Told]] = {}

    def add(self, neurons: Iterable[Neuron], rows: Answer, within: RowSlice, now: float) -> None:
        """Remember rows, or slices of them, that an honest peer returns now."""
        for neuron, row in zip(neurons, rows, strict=True):
            content = content_of(row), within
            self._told.setdefault(neuron, {})[content] = _Told(row, within, now)

    def untrue(self, neurons: Iterable[Neuron], rows: Answer, asked: float) -> list[Neuron]:
        """Return which rows are not true that a client accepts, which asked at that time."""
        return [
            neuron
            for neuron, row in zip(neurons, rows, strict=True)
            if not _is_true(row, [told for told in self._of(neuron) if told.when >= asked])
        ]

    def _of(self, neuron: Neuron) -> Iterable[_Told]:
        return self._told.get(neuron, {}).values()


def _is_true(row: Row | None, told: list[_Told]) -> bool:
    halvings = max((one.within.halvings for one in told), default=0)
    counts = [one.row.count for one in told if one.row is not None]
    if row is not None and not min(counts, default=0) <= row.count <= max(counts, default=-1):
        return False
    slices = [RowSlice(halvings, number) for number in range(1 << halvings)]
    return all(_is_true_within(one, row, told) for one in slices)


def _is_true_within(within: RowSlice, row: Row | None, told: list[_Told]) -> bool:
    known = [_only(one.row, within) for one in told if _contains(one.within, within)]
    row = _only(row, within)
    content = content_of(row)
    if any(content == content_of(one) for one in known):
        return True
    return any(grown(one, row) for one in known) and any(grown(row, one) for one in known)


def _contains(whole: RowSlice, within: RowSlice) -> bool:
    further = within.halvings - whole.halvings
    return further >= 0 and within.number >> further == whole.number


def _only(row: Row | None, within: RowSlice) -> Row | None:
    """Return a slice of a row, without the row's count, which each slice has; None if empty."""
    if row is None or within == EVERYTHING:
        return row
    found = sliced(row, within)
    return replace(found, count=0) if len(found.target) else None


def sliced(row: Row, within: RowSlice) -> Row:
    """Return a slice of a row, with the row's count."""
    if within == EVERYTHING:
        return row
    here = within.has(row.target_concept, row.target_feature)[row.target]
    return replace(
        row,
        target=row.target[here],
        branch=row.branch[here],
        segment=row.segment[here],
        strength=row.strength[here],
    )


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
