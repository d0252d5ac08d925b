"""A database that GIAANNpy itself wrote, of quick.txt (licence: tests/data/LICENSE.GIAANNpy)."""

import shutil
import tarfile
from pathlib import Path

import pytest

from giaann_p2p import Brain
from tests.helpers import DATA
from tests.helpers_subwords import REFERENCE


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder; not to be changed."""
    where = tmp_path_factory.mktemp("giaannpy")
    with tarfile.open(DATA / "giaannpy_v2m_quick_database.tar.xz") as archive:
        archive.extractall(where, filter="data")
    (found,) = where.iterdir()
    return found


@pytest.fixture
def copy(database: Path, tmp_path: Path) -> Path:
    """A copy with few columns, to be changed."""
    target = tmp_path / "copy"
    shutil.copytree(database, target, ignore=shutil.ignore_patterns("cIndex1*", "cIndex[3-9]*"))
    return target


@pytest.fixture
def brain() -> Brain:
    return Brain(REFERENCE, device="cpu")
