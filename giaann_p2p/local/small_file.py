"""Small JSON files that one process writes and another reads: each is only ever seen whole."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from giaann_p2p.errors import DamagedError, DiskError

_MOST = 1 << 20
_T = TypeVar("_T", bound=msgspec.Struct)


def write_json(file: Path, value: msgspec.Struct) -> None:
    """Put a file there, in place of the one before; DiskError if it cannot be written."""
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        draft.write_bytes(msgspec.json.encode(value))
        draft.replace(file)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise DiskError(f"{file} cannot be written: {error.strerror}") from None


def read_json(file: Path, kind: type[_T]) -> _T | None:
    """Read a file; None if there is none, DamagedError if it is not what it should be."""
    try:
        with file.open("rb") as source:
            data = source.read(_MOST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DiskError(f"{file} cannot be read: {error.strerror}") from None
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedError(f"{file} is not what was written: {error}; remove it") from None
