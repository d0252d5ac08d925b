"""Reads a whole database into memory, as deltas: nothing is learned before all of it is checked."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from giaann_p2p.errors import DatabaseError, UsageError
from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.ids import DETERMINISTIC, PROBABILISTIC
from giaann_p2p.model.subwords.spec import REFERENCE_COLUMN_SEGMENTS
from giaann_p2p.model.subwords.tokeniser import TOKENS, Tokeniser, tokeniser
from giaann_p2p.solo.giaannpy import column, extras, folder, vocabulary
from giaann_p2p.solo.giaannpy.anywhere import with_anywhere
from giaann_p2p.solo.giaannpy.column import MOST_PICKLE
from giaann_p2p.solo.giaannpy.files import plain
from giaann_p2p.solo.giaannpy.plain_pickle import Plain, dictionary
from giaann_p2p.solo.giaannpy.rows import delimiters, own_rows

Watch = Callable[[float], None]
"""A function that is called with the share of the columns that is done."""

_CHUNK = 1 << 19
"""The connections after which a chunk ends."""


@dataclass
class Database:
    """A database as deltas, and how much of it is inexact."""

    name: str
    spec: ModelSpec
    """The model that the deltas are of."""
    digest: bytes = b""
    """A digest of the content of all files that were read."""
    chunks: list[Delta] = field(default_factory=list)
    columns: int = 0
    neurons: int = 0
    """The number of neurons that occurred."""
    connections: int = 0
    """The number of connections, without those that the model does not keep."""
    left_out: int = 0
    """The number of connections by distance in columns that the model does not keep."""
    nearest: int = 0
    """The number of kept connections whose strengths are known only to the nearest unit."""
    rounded: int = 0
    """The number of strengths and counts that were not whole counts, and were rounded."""
    flags_only: bool = False
    """Whether delimiters are known only by flags, each of which counts once."""
    unknown: int = 0
    """The number of other files and folders in the folders of columns; they were not read."""


class _Hasher:
    """Reads files, and hashes the content and the place of each."""

    def __init__(self, root: Path) -> None:
        self._root, self._hash = root, hashlib.blake2b(digest_size=32)

    def read(self, path: Path, most: int) -> bytes:
        data = plain(path, most)
        place = path.relative_to(self._root).as_posix()
        self._hash.update(f"{place}\0{len(data)}\0".encode() + data)
        return data

    @property
    def digest(self) -> bytes:
        return self._hash.digest()


def spec_of(source: Path) -> ModelSpec | None:
    """Return the model of the brain that a database was written from; None if GIAANNpy wrote it."""
    file = folder.checked(source) / folder.EXTRAS
    if not file.exists():
        return None
    return extras.read(plain(file, MOST_PICKLE), file).spec


def read(
    source: Path,
    spec: ModelSpec,
    *,
    round_strengths: bool = False,
    progress: Watch = lambda _share: None,
) -> Database:
    """Read a database for a model.

    DatabaseError if it is unsafe, damaged, or made with other settings. `round_strengths`: round
    each strength that is not a whole count, instead of refusing it.
    """
    check_model(spec)
    known, files = tokeniser(), _Hasher(folder.checked(source))
    columns = folder.columns(source)
    _check_vocabulary(source, files, known)
    found = Database(str(source), spec, columns=len(columns))
    parts = [_delimiters(source, files, known, found)]
    size = 0
    for at, one in enumerate(columns):
        part = column.read(one, files.read, spec, round_strengths)
        _count(found, one, part)
        parts.append(own_rows(part.rows, known, spec))
        size += parts[-1].connections
        if size >= _CHUNK:
            found.chunks.append(with_anywhere(parts, spec))
            parts, size = [], 0
        progress((at + 1) / len(columns))
    found.chunks.append(with_anywhere(parts, spec))
    found.digest = files.digest
    return found


def check_model(spec: ModelSpec) -> None:
    """Raise UsageError for a model whose knowledge a database cannot hold."""
    if spec.profile != "subwords":
        raise UsageError(
            f"databases of GIAANNpy hold brains of the profile subwords, but this brain has "
            f"{spec.profile}; use another directory"
        )
    if spec.column_segments > REFERENCE_COLUMN_SEGMENTS:
        raise UsageError(
            f"databases of GIAANNpy have {REFERENCE_COLUMN_SEGMENTS} column segments, but this "
            f"brain's model has {spec.column_segments}; use another directory"
        )


def _check_vocabulary(source: Path, files: _Hasher, known: Tokeniser) -> None:
    concepts, features = vocabulary.written(known)
    for name, usual, named in (
        (folder.CONCEPTS, concepts, vocabulary.concepts_named),
        (folder.FEATURES, features, vocabulary.features_named),
    ):
        file = source / name
        data = files.read(file, MOST_PICKLE)
        if data != usual:  # a file that GIAANNpy wrote is known, and need not be unpacked
            vocabulary.check_names(dictionary(data, file), named(known), file)


def _delimiters(source: Path, files: _Hasher, known: Tokeniser, found: Database) -> Delta:
    """Return, as a delta, how often each token was a delimiter of either kind."""
    file = source / folder.EXTRAS
    more = extras.read(files.read(file, MOST_PICKLE), file) if file.exists() else None
    found.flags_only = more is None
    parts = []
    for name, concept, counts in (
        (folder.DETERMINISTIC_FLAGS, DETERMINISTIC, more.deterministic if more else {}),
        (folder.PROBABILISTIC_FLAGS, PROBABILISTIC, more.probabilistic if more else {}),
    ):
        file = source / name
        tokens = _flagged(dictionary(files.read(file, MOST_PICKLE), file), file)
        parts.append(delimiters(concept, {t: counts.get(t, 1) for t in tokens}, known))
    return total(parts)


def _flagged(flags: Plain, file: Path) -> Iterable[int]:
    """Return the tokens whose features are flagged."""
    for feature, flag in flags.items():
        if flag not in (0, 1) or not isinstance(feature, int):
            raise DatabaseError(f"{file} holds something other than a flag for each feature")
        if flag:
            if not 1 <= feature <= TOKENS:
                raise DatabaseError(f"{file} flags feature {feature}, which is not a text token")
            yield feature - 1


def _count(found: Database, one: folder.Column, part: column.ColumnRows) -> None:
    found.neurons += len(part.rows.count)
    found.connections += len(part.rows.units)
    found.left_out += part.left_out
    found.nearest += part.nearest
    found.rounded += part.rounded
    found.unknown += one.unknown
