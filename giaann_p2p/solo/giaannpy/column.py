"""Reads the files of one column as rows."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import DatabaseError
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.spec import REFERENCE_COLUMN_SEGMENTS
from giaann_p2p.model.subwords.tokeniser import TOKENS
from giaann_p2p.solo.giaannpy import folder, vocabulary
from giaann_p2p.solo.giaannpy.plain_pickle import dictionary
from giaann_p2p.solo.giaannpy.rows import Rows
from giaann_p2p.solo.giaannpy.strengths import SEGMENTS, uneven, units_of
from giaann_p2p.solo.giaannpy.tensors import Entries, Fractions, entries

Bytes = Callable[[Path, int], bytes]
"""A function that reads a file of at most the given number of bytes."""

MOST_PICKLE, MOST_TENSOR = 1 << 26, 1 << 29
"""The most bytes of a dictionary's file, and of a tensor's."""
_TOO_MUCH = 1 << 29
"""No strength and no count reaches this: the reference's 32-bit sums stop growing at 2^27. Below
it, sums over all columns fit 64 bits."""
FORMAT = "bySourceFeature.v1"
ROW_SHAPE = (1, 1, SEGMENTS, vocabulary.CONCEPTS, vocabulary.FEATURES)
"""The shape of a source feature's tensor: property, branch, segment, target concept and feature."""
NEURONS_SHAPE = (1, 1, SEGMENTS, vocabulary.FEATURES)


class ColumnRows(NamedTuple):
    """A column's rows, and how much of them is inexact."""

    rows: Rows
    left_out: int
    """The number of connections by distance in columns that the model does not keep."""
    nearest: int
    """The number of kept connections whose strengths are known only to the nearest unit."""
    rounded: int
    """The number of strengths and counts that were rounded to the nearest count."""


def read(
    column: folder.Column, bytes_of: Bytes, spec: ModelSpec, round_strengths: bool
) -> ColumnRows:
    """Read the files of a column."""
    metadata = dictionary(bytes_of(column.metadata, MOST_PICKLE), column.metadata)
    if (metadata.get("conceptIndex"), metadata.get("featureConnectionsFormat")) != (
        column.concept,
        FORMAT,
    ):
        raise DatabaseError(f"{column.metadata} is not for column {column.concept} in {FORMAT}")
    feature, count, rounded = _occurrences(
        _entries(bytes_of(column.neurons, MOST_TENSOR), column.neurons, NEURONS_SHAPE)
    )
    _check_tokens(np.array([column.concept]), feature, column.neurons)
    sources, tables = [np.empty(0, np.int64)], [Entries(np.empty((5, 0), np.int64), np.empty(0))]
    for source, file in column.sources.items():
        tables.append(_entries(bytes_of(file, MOST_TENSOR), file, ROW_SHAPE))
        sources.append(np.full(len(tables[-1].values), source - 1))
        _check_tokens(tables[-1].places[3], tables[-1].places[4] - 1, file)
        if source - 1 not in feature:
            raise DatabaseError(f"{file} has connections of a neuron that never occurred")
    places = np.concatenate([table.places for table in tables], axis=1)  # [5, M]
    values = np.concatenate([table.values for table in tables])  # [M]
    from_feature = np.concatenate(sources)
    units, uncertain = units_of(values, places[2])
    if not round_strengths and (rounded or uncertain.any()):
        _refuse(column, rounded, values[uncertain], places[2][uncertain])
    shift = REFERENCE_COLUMN_SEGMENTS - spec.column_segments
    kept = places[2] >= shift
    rows = Rows(
        np.full(len(feature), column.concept),
        feature,
        count,
        np.stack([np.full(int(kept.sum()), column.concept), from_feature[kept]]),
        np.stack([places[3][kept], places[4][kept] - 1]),
        places[2][kept] - shift,
        units[kept],
    )
    nearest = int((uneven(values, places[2]) & kept).sum())
    return ColumnRows(rows, int((~kept).sum()), nearest, rounded + int((uncertain & kept).sum()))


def _entries(data: bytes, file: Path, shape: Sequence[int]) -> Entries:
    found = entries(data, file, shape)
    if np.any(found.values >= _TOO_MUCH):
        raise DatabaseError(
            f"{file} is damaged (a strength or a count is {_TOO_MUCH:,} or more); copy the database"
            " again"
        )
    return found


def _occurrences(neurons: Entries) -> tuple[Ints, Ints, int]:
    """Return features, how often each occurred, and how many of these counts were rounded.

    For each occurrence, the reference adds 1 to the neuron's count in each segment that could be
    reached from the start of the sequence. So the largest count is that of all occurrences.
    """
    feature, slot = np.unique(neurons.places[3], return_inverse=True)
    most = np.zeros(len(feature))
    np.maximum.at(most, slot, neurons.values)
    count = np.maximum(np.rint(most), 1).astype(np.int64)
    return feature - 1, count, int((count != most).sum())


def _check_tokens(concept: Ints, feature: Ints, file: Path) -> None:
    if np.any(concept >= TOKENS) or np.any(feature >= TOKENS):
        raise DatabaseError(f"{file} has neurons of special tokens, which are in no text")


def _refuse(column: folder.Column, rounded: int, values: Fractions, segment: Ints) -> None:
    example = (
        f"such as {values[0]:.6g} in segment {segment[0]}" if len(values) else "of its occurrences"
    )
    raise DatabaseError(
        f"{column.path} has {rounded + len(values):,} strengths that are no whole counts, "
        f"{example}; was it made with other settings? To take the nearest counts: --round"
    )
