"""A database that GIAANNpy itself wrote, of quick.txt (licence: tests/data/LICENSE.GIAANNpy)."""

import pickle
import shutil
from pathlib import Path

import pytest

from giaann_p2p import Brain
from tests.helpers import giaannpy_database
from tests.helpers_subwords import REFERENCE


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder; not to be changed."""
    return giaannpy_database(tmp_path_factory.mktemp("giaannpy"))


@pytest.fixture(scope="session")
def small(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with few columns, and with the flags of delimiters alone; not to be changed.

    A flag for each of the 200,000 tokens takes most of the time of reading such a folder.
    """
    target = tmp_path_factory.mktemp("small") / "database"
    shutil.copytree(database, target, ignore=shutil.ignore_patterns("cIndex1*", "cIndex[3-9]*"))
    for file in target.glob("conceptFeaturesReferenceSetDelimiter*.pkl"):
        flags = pickle.loads(file.read_bytes())  # noqa: S301  (made by the reference)
        file.write_bytes(pickle.dumps({at: flag for at, flag in flags.items() if flag}, 4))
    return target


@pytest.fixture
def copy(small: Path, tmp_path: Path) -> Path:
    """A copy of the small folder, to be changed."""
    return shutil.copytree(small, tmp_path / "copy")


@pytest.fixture
def brain() -> Brain:
    return Brain(REFERENCE, device="cpu")
