"""Small files that are written whole or not at all, and read up to a bound."""

import os
from pathlib import Path

from giaann_p2p.errors import DiskError


def read_whole(path: Path, most: int) -> bytes | None:
    """Return what a file has, one byte more than `most` at most; None if there is none."""
    try:
        with path.open("rb") as file:
            return file.read(most + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DiskError(f"{path}: {error.strerror}") from None


def write_whole(path: Path, data: bytes) -> None:
    """Have a file with this, and be sure that it is on the disk."""
    draft = path.with_name(f".{path.name}.new")
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise DiskError(f"{path}: {error.strerror}") from None
