"""Reads small files up to a size limit, and replaces them atomically."""

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from giaann_p2p.errors import DamagedError, DiskError
from giaann_p2p.plain_faults import fault_of
from giaann_p2p.store.disk.files import DiskFiles
from giaann_p2p.store.disk.plain_file import open_draft, open_plain

_MOST_JSON = 1 << 20
_T = TypeVar("_T", bound=msgspec.Struct)


def is_there(path: Path) -> bool:
    """Return whether a path exists; DiskError if that cannot be found out."""
    try:
        return path.exists()
    except OSError as error:  # for example, its folder may not be searched
        raise DiskError(f"{path}: {error.strerror}") from None


def read_whole(path: Path, most: int) -> bytes | None:
    """Return up to `most` + 1 bytes of a file; None if there is no such file.

    If the caller gets more than `most` bytes, the file is too long.
    """
    try:
        with open_plain(path) as file:
            return file.read(most + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DiskError(f"{path} cannot be read: {error.strerror}") from None


def write_whole(path: Path, data: bytes, *, synced: bool = True) -> None:
    """Replace a file's content atomically; if `synced`, return once the change is on the disk."""
    draft = path.with_name(f".{path.name}.new")
    try:
        with open_draft(draft) as file:
            file.write(data)
            if synced:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
        if synced:
            sync_folder(path.parent)  # else a crash may undo the renaming
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise DiskError(f"{path} cannot be written: {error.strerror}") from None


def sync_folder(folder: Path) -> None:
    """Sync a folder; do nothing if its file system does not support that."""
    try:
        DiskFiles(folder).sync()
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def read_json(path: Path, kind: type[_T]) -> _T | None:
    """Decode a JSON file; None if it does not exist, DamagedError if it is too long or invalid."""
    if (data := read_whole(path, _MOST_JSON)) is None:
        return None
    if len(data) > _MOST_JSON:
        raise DamagedError(f"{path} is too long: more than {_MOST_JSON:,} bytes; remove it")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedError(f"{path} is damaged: {fault_of(error)}; remove it") from None


def write_json(path: Path, value: msgspec.Struct) -> None:
    """Replace a file's content by a value as JSON, without waiting for the disk.

    A crash of the machine may undo the change.
    """
    write_whole(path, msgspec.json.encode(value), synced=False)
