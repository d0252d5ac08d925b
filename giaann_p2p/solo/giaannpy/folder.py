"""The layout of a database: the name of each file, and the files that a folder has."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from giaann_p2p.errors import DatabaseError, UsageError

CONCEPTS = "conceptColumnsDict.pkl"
FEATURES = "conceptFeaturesDict.pkl"
DETERMINISTIC_FLAGS = "conceptFeaturesReferenceSetDelimiterDeterministicList.pkl"
PROBABILISTIC_FLAGS = "conceptFeaturesReferenceSetDelimiterProbabilisticList.pkl"
EXTRAS = "giaann.json"
"""An additional file that only we write (see `extras`); GIAANNpy ignores it."""

COLUMNS = "observedColumns"
METADATA = "data.pkl"
NEURONS = "featureNeurons.pt"
CONNECTIONS = "featureConnections"
_COLUMN, _SOURCE = re.compile(r"cIndex(0|[1-9]\d{0,8})"), re.compile(r"fIndex(0|[1-9]\d{0,8})\.pt")


class Column(NamedTuple):
    """The files of a column."""

    concept: int
    """The number of the column's concept token."""
    path: Path
    sources: dict[int, Path]
    """The file with the connections of each source feature, ascending."""
    unknown: int
    """The number of other files and folders in the column's folder."""

    @property
    def metadata(self) -> Path:
        """The file with the column's dictionary."""
        return self.path / METADATA

    @property
    def neurons(self) -> Path:
        """The file with the tensor of the column's neurons."""
        return self.path / NEURONS


def checked(folder: Path) -> Path:
    """Return the folder if it looks like a database; UsageError otherwise."""
    if not (folder / COLUMNS).is_dir():
        raise UsageError(
            f"{folder} is no database of GIAANNpy: it has no folder {COLUMNS}; "
            "name the folder that holds it"
        )
    return folder


def columns(folder: Path) -> list[Column]:
    """Return the columns of a database, in the order of their concepts' numbers."""
    found = []
    for name, path in _entries(folder / COLUMNS):
        match = _COLUMN.fullmatch(name)
        if not match:
            raise DatabaseError(
                f"{path} is not a column; databases of other releases of GIAANNpy must be rebuilt"
            )
        found.append(_column(int(match[1]), path))
    return sorted(found)


def _column(concept: int, path: Path) -> Column:
    sources, unknown = {}, 0
    for name, part in _entries(path):
        if name == CONNECTIONS:
            for file_name, file in _entries(part):
                match = _SOURCE.fullmatch(file_name)
                if match:
                    sources[int(match[1])] = file
                else:
                    unknown += 1
        elif name not in (METADATA, NEURONS):
            unknown += 1
    return Column(concept, path, dict(sorted(sources.items())), unknown)


def _entries(folder: Path) -> Iterator[tuple[str, Path]]:
    """Iterate over the names in a folder, each with its path; a link to a folder is refused."""
    try:
        if folder.is_symlink():
            raise DatabaseError(f"{folder} is a link, which is not followed; copy what it leads to")
        names = sorted(os.listdir(folder))  # noqa: PTH208  (names, without a path for each)
    except NotADirectoryError:
        raise DatabaseError(f"{folder} is no folder; copy the whole database again") from None
    except OSError as error:
        raise DatabaseError(f"{folder} cannot be read: {error.strerror}") from None
    return ((name, folder / name) for name in names)
