"""Writes a brain as a database: GIAANNpy can use it, and importing it gives the same brain.

The reference has no rows that ignore columns; they are left out, because they follow from the other
rows. How often a token was a delimiter is written to an additional file (see `extras`).
"""

import os
import pickle
import shutil
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np

from giaann_p2p.errors import DiskError, UsageError
from giaann_p2p.model.delta import Delta, first_of_runs
from giaann_p2p.model.digest import digest
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.ids import DETERMINISTIC, PROBABILISTIC, RESERVED
from giaann_p2p.model.subwords.spec import REFERENCE_COLUMN_SEGMENTS
from giaann_p2p.model.subwords.tokeniser import Tokeniser, tokeniser
from giaann_p2p.solo.giaannpy import column, extras, folder, reading, tensors, vocabulary
from giaann_p2p.solo.giaannpy.anywhere import with_anywhere
from giaann_p2p.solo.giaannpy.strengths import SEGMENTS, units_of, values_of

_MOST = 1 << 47
"""The least number of units that two 32-bit fractions together cannot hold."""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of columns, neurons and connections that were written."""

    columns: int
    neurons: int
    connections: int


def write(
    known: Delta,
    spec: ModelSpec,
    target: Path,
    progress: Callable[[float], None] = lambda _share: None,
) -> Exported:
    """Write all knowledge of a brain into a new folder, which appears once it is complete.

    UsageError if the folder is not empty, or if the format cannot hold the brain.
    """
    reading.check_model(spec)
    if os.path.lexists(target) and not (target.is_dir() and not any(target.iterdir())):
        raise UsageError(f"{target} exists already; give the name of a new folder")
    own = _own_rows(known, spec)
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.absolute().parent))
        try:
            _write(own, known, spec, made, progress)
            made.chmod(0o755)
            made.replace(target)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
    except OSError as error:
        raise DiskError(f"{target} cannot be written: {error.strerror}") from None
    return Exported(
        columns=len(np.unique(own.concept)),
        neurons=int((own.count > 0).sum()),
        connections=own.connections,
    )


def _own_rows(known: Delta, spec: ModelSpec) -> Delta:
    """Return the rows of columns, after checking that all other rows follow from them."""
    reserved = np.array(list(RESERVED.values()), np.uint64)
    counted = known.only(
        np.isin(known.concept, np.array([DETERMINISTIC, PROBABILISTIC], np.uint64))
    )
    own = known.only(~np.isin(known.concept, reserved))
    if digest(with_anywhere([own, counted], spec)) != digest(known):
        raise UsageError(
            "this brain's rows that ignore columns are not the sum of its other rows, so a "
            "database of GIAANNpy cannot hold it; copy its directory instead"
        )
    shift = REFERENCE_COLUMN_SEGMENTS - spec.column_segments
    segment = own.segment.astype(np.int64) + shift
    again, uncertain = units_of(values_of(own.strength, segment), segment)
    if (
        uncertain.any()
        or np.any(again != own.strength)
        or max(int(own.strength.max(initial=0)), int(own.count.max(initial=0))) >= _MOST
    ):
        raise UsageError(
            "this brain has strengths that are no whole counts, or too large for a database of "
            "GIAANNpy; copy its directory instead"
        )
    return own


def _write(
    own: Delta, known: Delta, spec: ModelSpec, made: Path, progress: Callable[[float], None]
) -> None:
    tokens = tokeniser()
    _write_names(made, tokens)
    counts = {
        concept: _delimiter_counts(known, concept, tokens)
        for concept in (DETERMINISTIC, PROBABILISTIC)
    }
    for name, concept in (
        (folder.DETERMINISTIC_FLAGS, DETERMINISTIC),
        (folder.PROBABILISTIC_FLAGS, PROBABILISTIC),
    ):
        flagged = counts[concept]
        flags = {f: f - 1 in flagged for f in range(vocabulary.FEATURES)}
        _write_pickle(made / name, flags)
    more = extras.Extras(
        spec=spec, deterministic=counts[DETERMINISTIC], probabilistic=counts[PROBABILISTIC]
    )
    (made / folder.EXTRAS).write_bytes(extras.written(more))
    (made / folder.COLUMNS).mkdir()
    home, feature = _numbers(own, tokens)
    shift = REFERENCE_COLUMN_SEGMENTS - spec.column_segments
    starts = np.append(np.flatnonzero(first_of_runs(own.concept))[: own.neurons], own.neurons)
    for first, last in pairwise(starts):
        _write_column(own, home, feature, range(int(first), int(last)), shift, made)
        progress(int(last) / own.neurons)


def _write_names(made: Path, tokens: Tokeniser) -> None:
    for name, file in zip(
        (folder.CONCEPTS, folder.FEATURES), vocabulary.written(tokens), strict=True
    ):
        (made / name).write_bytes(file)


def _write_pickle(path: Path, content: object) -> None:
    path.write_bytes(pickle.dumps(content, protocol=4))


def _delimiter_counts(known: Delta, concept: int, tokens: Tokeniser) -> dict[int, int]:
    rows = known.concept == np.uint64(concept)
    numbers = tokens.tokens_of(known.feature[rows]).tolist()
    return dict(sorted(zip(numbers, known.count[rows].tolist(), strict=True)))


def _numbers(own: Delta, tokens: Tokeniser) -> tuple[Ints, Ints]:
    """Return the reference's numbers of each neuron's concept and feature."""
    home, feature = tokens.tokens_of(own.concept), tokens.tokens_of(own.feature)
    if np.any(home < 0) or np.any((feature < 0) & (own.feature != 0)):
        raise UsageError("this brain has neurons without a token; check it: giaann solo fsck")
    return home, feature + 1


def _write_column(
    own: Delta, home: Ints, feature: Ints, rows: range, shift: int, made: Path
) -> None:
    """Write the files of one column; `rows` are the indices of its neurons."""
    occurred = np.array([row for row in rows if own.count[row] or own.lengths[row]], np.int64)
    if not len(occurred):
        return  # the column has only targets of other columns; its own rows were withdrawn
    concept = int(home[rows.start])
    path = made / folder.COLUMNS / f"cIndex{concept}"
    (path / folder.CONNECTIONS).mkdir(parents=True)
    _write_pickle(
        path / folder.METADATA,
        {
            "conceptIndex": concept,
            "nextFeatureIndex": vocabulary.FEATURES - 1,
            "featureConnectionsFormat": column.FORMAT,
        },
    )
    order = occurred[np.argsort(feature[occurred])]
    reached = np.repeat(np.arange(SEGMENTS - 1), len(order))  # all segments but the soma
    features = np.tile(feature[order], SEGMENTS - 1)
    nothing = np.zeros_like(features)
    tensors.write(
        path / folder.NEURONS,
        np.stack([nothing, nothing, reached, features]),
        np.tile(own.count[order], SEGMENTS - 1).astype(np.float64),
        column.NEURONS_SHAPE,
    )
    for row in order.tolist():
        held = slice(int(own.row_starts[row]), int(own.row_starts[row + 1]))
        if held.start == held.stop:
            continue
        segment = own.segment[held].astype(np.int64) + shift
        target = own.target[held]
        places = np.stack([0 * segment, 0 * segment, segment, home[target], feature[target]])
        ranked = np.lexsort(places[::-1])
        values = values_of(own.strength[held], segment)
        tensors.write(
            path / folder.CONNECTIONS / f"fIndex{int(feature[row])}.pt",
            places[:, ranked],
            values[ranked],
            column.ROW_SHAPE,
        )
