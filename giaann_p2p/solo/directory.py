"""Checks for a brain in a directory, without importing the modules that a brain needs."""

from pathlib import Path

from giaann_p2p.errors import NoStore
from giaann_p2p.store import home
from giaann_p2p.store.disk.files import DiskFiles


def existing(directory: Path) -> Path:
    """Return the directory if it has a brain; NoStore if it has none."""
    if not home.exists(DiskFiles(directory)):
        raise NoStore(
            f"there is no brain in {directory}; make one: giaann solo train FILE --db {directory}"
        )
    return directory
