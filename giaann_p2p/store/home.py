"""The directory of a store: its description file, and the lock that allows only one writer."""

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import msgspec

from giaann_p2p.errors import DamagedError, DiskError, SpecError, StoreError
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.plain_faults import fault_of
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.record import LEAST_FILE
from giaann_p2p.store.disk.replay import file_name
from giaann_p2p.store.disk.small_file import sync_folder
from giaann_p2p.store.layout import Layout

NAME = "store.json"
_NEW = NAME + ".new"
FORMAT = 3
_LEFT = re.compile(r"(log|snapshot|cold)-\d+(-\d+)?(\.new)?")


class StoreParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a store, fixed at its creation and written to the file `store.json`."""

    format: int = FORMAT
    id: str
    """A random id, which distinguishes the files of this store from those of any other store."""
    layout: Layout
    spec: ModelSpec

    @property
    def identity(self) -> bytes:
        """A hash of all parameters, 16 bytes long, that every other file of the store carries."""
        return hashlib.blake2b(msgspec.json.encode(self, order="sorted"), digest_size=16).digest()


def exists(files: Files) -> bool:
    """Return whether a directory has a store; StoreError if only its description is missing."""
    try:
        names = files.names()
        is_lost = NAME not in names and _are_of_a_store(files, names)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise DiskError(f"{files.path('')}: {error.strerror}") from None
    if is_lost:
        raise StoreError(
            f"{files.path(NAME)} is missing, but other files of the store are there: restore it"
        )
    return NAME in names


def _are_of_a_store(files: Files, names: list[str]) -> bool:
    """Return whether there are files of a store that was ever used, whose description is missing.

    Its creation may have been interrupted before `sign`: that leaves the draft of the description,
    and at most the first log file, without a record.
    """
    left = [name for name in names if _LEFT.fullmatch(name)]
    if _NEW not in names:
        return bool(left)
    return any(name != file_name(1) or files.size(name) > LEAST_FILE for name in left)


def draft(files: Files, spec: ModelSpec, layout: Layout) -> StoreParameters:
    """Write the description of a new store under a temporary name.

    Files that an unfinished creation left behind are removed, because that store was never used
    (see `exists`, which must have returned false).
    """
    parameters = StoreParameters(id=secrets.token_hex(16), layout=layout, spec=spec)
    try:
        for name in files.names():
            if name == _NEW or _LEFT.fullmatch(name):
                files.remove(name)
        file = files.create(_NEW)
        try:
            file.write(msgspec.json.format(msgspec.json.encode(parameters), indent=2) + b"\n")
            file.sync()
        finally:
            file.close()
        files.sync()
    except OSError as error:
        with contextlib.suppress(OSError):
            files.remove(_NEW)  # no store depends on it yet
        raise DiskError(f"{files.path(_NEW)}: {error.strerror}; no store was created") from None
    return parameters


def sign(files: Files) -> None:
    """Complete a new store, which has its log by now: give its description the final name."""
    try:
        files.rename(_NEW, NAME)
        files.sync()
    except OSError as error:
        raise DiskError(f"{files.path(NAME)}: {error.strerror}") from None


def read(files: Files) -> StoreParameters:
    """Read a store's description file; DamagedError if it is malformed."""
    try:
        data = files.read(NAME)
        found = msgspec.json.decode(data, type=_Version)
        if found.format != FORMAT:
            raise StoreError(
                f"{files.path(NAME)} has format {found.format}; this version reads {FORMAT}"
            )
        return msgspec.json.decode(data, type=StoreParameters)
    except OSError as error:
        raise DiskError(f"{files.path(NAME)}: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, SpecError) as error:
        raise DamagedError(f"{files.path(NAME)} is damaged: {fault_of(error)}") from None


class _Version(msgspec.Struct):
    format: int


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold a directory's write lock, creating the directory if needed.

    The name of a directory without a store is durable before the block begins. StoreError if the
    directory is locked already. A directory that is empty afterwards is removed, so that a
    mistyped command leaves no trace.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        is_new = not (directory / NAME).exists()
    except (FileExistsError, NotADirectoryError):
        raise StoreError(f"{directory} is not a directory") from None
    except OSError as error:
        raise DiskError(f"{directory}: {error.strerror}") from None
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise DiskError(f"{directory}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                f"{directory} is being written to, by another process or by this one"
            ) from None
        try:
            if is_new:
                _sync_parents(directory)
            yield
        finally:
            with contextlib.suppress(OSError):  # a directory that is not empty stays
                directory.rmdir()
    finally:
        os.close(handle)


def _sync_parents(directory: Path) -> None:
    """Sync the directories above one, whoever has created them, as far as they are on its disk."""
    disk = directory.stat().st_dev
    for parent in directory.parents:
        if parent.stat().st_dev != disk:
            break
        _sync(parent)


def _sync(directory: Path) -> None:
    """Sync a directory; DiskError if that fails, unless its file system does not support it."""
    try:
        sync_folder(directory)
    except PermissionError:  # its owner may let others make directories in it, but not open it
        os.sync()
    except OSError as error:
        raise DiskError(f"{directory}: {error.strerror}") from None
