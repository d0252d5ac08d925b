"""Joins the rows of a cut column's parts into one row, and cuts such a row into parts again."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from giaann_p2p.model import row_slice
from giaann_p2p.model.delta import first_of_runs, unique_neurons
from giaann_p2p.model.rows import Row
from giaann_p2p.model.sequence import Ids, Ints
from giaann_p2p.store.splitmix import GOLDEN, mixed


def part_of_target(concept: Ids, feature: Ids, parts: Ids | np.uint64) -> Ints:
    """Return the part that holds the connections to each target, of `parts` parts in total."""
    return (mixed(concept * np.uint64(GOLDEN) + feature) & (parts - np.uint64(1))).astype(np.int64)


def joined(parts: Sequence[Row | None], is_recut: bool) -> Row | None:
    """Return the whole row, joined from the rows of all parts; None if part 0 has no row.

    `is_recut`: whether the column had fewer parts when some of it was learned.
    """
    # Part 0 shows whether the neuron occurred; another part of a chunk may arrive before it.
    if parts[0] is None:
        return None
    lengths = [0 if part is None else len(part.target_concept) for part in parts]
    said = np.repeat(np.arange(len(parts)), lengths)
    row = row_slice.whole(parts)
    if row is None:
        return None
    if row.count != parts[0].count:  # only a lying peer adds a count to another part
        row = replace(row, count=parts[0].count)
    # Connections that were learned while there were fewer parts stay in their part j of that time:
    # the last bits of the target's hash, as many as j has, equal j.
    number = _bits(said) if is_recut else np.uint64(len(parts))
    right = part_of_target(row.target_concept, row.target_feature, number) == said
    if not right.all():  # only a lying peer adds other parts' targets, perhaps a second time
        row = _with_targets(row, right)
    return _summed(row) if is_recut else row


def cut_apart(row: Row, parts: int, least: int) -> Iterator[tuple[int, Row]]:
    """Yield the number and the row of each part that has at least `least` connections.

    The neuron and the name in each yielded row are those of the whole row; the caller replaces
    them.
    """
    part = part_of_target(row.target_concept, row.target_feature, np.uint64(parts))
    long = np.bincount(part[row.target], minlength=parts) >= least
    if not long.any():
        return
    order, starts = _sorted(part, parts)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    held, ends = _sorted(part[row.target], parts)
    target = place[row.target[held]]
    for number in np.flatnonzero(long).tolist():
        targets = order[starts[number] : starts[number + 1]]
        connections = held[ends[number] : ends[number + 1]]
        yield (
            number,
            replace(
                row,
                count=0 if number else row.count,
                target_concept=row.target_concept[targets],
                target_feature=row.target_feature[targets],
                target=target[ends[number] : ends[number + 1]] - starts[number],
                branch=row.branch[connections],
                segment=row.segment[connections],
                strength=row.strength[connections],
                numbers=None,
            ),
        )


def _sorted(part: Ints, parts: int) -> tuple[Ints, Ints]:
    """Return the indices of `part` in the order of the parts, and where each part starts."""
    order = np.argsort(part.astype(np.uint16), kind="stable")  # a radix sort
    return order, np.cumsum([0, *np.bincount(part, minlength=parts)])


def _bits(part: Ints) -> Ids:
    """Return the least power of two above the number of each part."""
    return np.uint64(1) << np.frexp(part.astype(np.float64))[1].astype(np.uint64)


def _with_targets(row: Row, chosen: npt.NDArray[np.bool_]) -> Row:
    """Return a row with only the chosen ones of its targets."""
    held = chosen[row.target]
    return replace(
        row,
        target_concept=row.target_concept[chosen],
        target_feature=row.target_feature[chosen],
        target=(np.cumsum(chosen) - 1)[row.target[held]],
        branch=row.branch[held],
        segment=row.segment[held],
        strength=row.strength[held],
    )


def _summed(row: Row) -> Row:
    """Merge targets that a row lists twice; the strengths of equal connections are added up."""
    concept, feature, slot = unique_neurons(row.target_concept, row.target_feature)
    if len(concept) == len(slot):
        return row
    key = slot[row.target] << 16 | row.branch.astype(np.int64) << 8 | row.segment
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(first_of_runs(key[order]))
    key = key[order[first]]
    return replace(
        row,
        target_concept=concept,
        target_feature=feature,
        target=key >> 16,
        branch=(key >> 8 & 0xFF).astype(np.uint8),
        segment=(key & 0xFF).astype(np.uint8),
        strength=np.add.reduceat(row.strength[order], first),
    )
