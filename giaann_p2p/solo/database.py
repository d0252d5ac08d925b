"""The brain's file: everything learned, and which chunks of which jobs that is, in one piece.

`DIR/brain.npz` is replaced as a whole, so a crash at any moment leaves the last saved state. It is
a zip of plain arrays whose checksums are verified on reading. A lock on the directory itself keeps
two processes from learning into one brain.
"""

import contextlib
import fcntl
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from giaann_p2p.errors import DatabaseError
from giaann_p2p.model.delta import ARRAYS, Delta
from giaann_p2p.model.sequence import Names
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.solo.memory import Jobs

FORMAT = 1
# What reading a zip of arrays raises, depending on which byte is wrong.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    KeyError,
    NotImplementedError,
    ValueError,
)


class State(NamedTuple):
    """What the file holds."""

    spec: ModelSpec
    knowledge: Delta
    jobs: Jobs


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    spec: ModelSpec
    jobs: Jobs


def exists(directory: Path) -> bool:
    """Tell whether there is a brain in the directory."""
    return _file(directory).exists()


def size(directory: Path) -> int:
    """Return the size of the brain's file in bytes."""
    return _file(directory).stat().st_size if exists(directory) else 0


def load(directory: Path) -> State:
    """Read the brain in the directory."""
    file = _file(directory)
    try:
        with file.open("rb") as opened:
            if not zipfile.is_zipfile(opened):
                raise zipfile.BadZipFile("it is no zip file")
            opened.seek(0)
            with np.load(opened, allow_pickle=False) as arrays:
                return _state(dict(arrays), file)
    except FileNotFoundError:
        raise DatabaseError(
            f"there is no brain in {directory}; make one: giaann solo train FILE --db {directory}"
        ) from None
    except _DAMAGE as error:
        raise DatabaseError(f"{file} is damaged or no brain: {error}") from None
    except OSError as error:
        raise DatabaseError(f"{file}: {error.strerror}") from None


def save(directory: Path, state: State) -> None:
    """Replace the brain in the directory: as a whole or, whatever happens, not at all."""
    header = _Header(FORMAT, state.spec, state.jobs)
    arrays: dict[str, npt.NDArray[Any]] = {
        "header": np.frombuffer(msgspec.json.encode(header), np.uint8),
        **{name: getattr(state.knowledge, name) for name in ARRAYS},
        **_packed(state.knowledge.names),
    }
    new = directory / "brain.npz.new"
    try:
        with new.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        new.replace(_file(directory))
        _sync(directory)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise DatabaseError(
            f"{directory}: {error.strerror}; what was saved before is still there"
        ) from None


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory, made if need be, for writing; DatabaseError if somebody else does.

    One that is empty in the end is removed: a mistyped command leaves nothing behind.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise DatabaseError(f"{directory}: {error.strerror}") from None
    try:
        _lock(handle, directory)
        yield
        with contextlib.suppress(OSError):  # it is not empty
            directory.rmdir()
    finally:
        os.close(handle)


def _lock(handle: int, directory: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DatabaseError(
            f"another process is learning into {directory}; wait for it to end"
        ) from None


def _file(directory: Path) -> Path:
    return directory / "brain.npz"


def _state(arrays: dict[str, npt.NDArray[Any]], file: Path) -> State:
    try:
        header = msgspec.json.decode(arrays["header"].tobytes(), type=_Header)
    except msgspec.MsgspecError as error:
        raise DatabaseError(f"{file} is no brain of this version: {error}") from None
    if header.format != FORMAT:
        raise DatabaseError(f"{file} has format {header.format}; this version reads {FORMAT}")
    kept: dict[str, Any] = {name: arrays[name] for name in ARRAYS}
    knowledge = Delta(**kept, names=_unpacked(arrays))
    return State(header.spec, knowledge, header.jobs)


def _packed(names: Names) -> dict[str, npt.NDArray[Any]]:
    texts = [text.encode() for text in names.values()]
    return {
        "name_ids": np.array(list(names), np.uint64),
        "name_ends": np.cumsum([len(text) for text in texts], dtype=np.int64),
        "name_text": np.frombuffer(b"".join(texts), np.uint8),
    }


def _unpacked(arrays: dict[str, npt.NDArray[Any]]) -> Names:
    text, ends = arrays["name_text"].tobytes(), arrays["name_ends"].tolist()
    pieces = zip([0, *ends], ends, strict=False)
    names = (text[start:end].decode() for start, end in pieces)
    return dict(zip(arrays["name_ids"].tolist(), names, strict=True))


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
