"""Where this user's gateways on this machine are: a small file each, for commands to find them.

A gateway keeps its file locked while it runs, and removes it at its end. The lock of a killed
gateway is gone, so its file is ignored, even if another process now has its process id or port.
Only this user can write in the folder, and so only this user's gateways are found. Nothing slow is
imported here.
"""

import fcntl
import hashlib
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.user_folder import user_folder

_LOG = logging.getLogger("giaann.gateway")
_MOST_BYTES = 1 << 16
_LOCKED_WITHIN, _PAUSE = 0.2, 0.01
"""Seconds for which a lock is tried, and between two tries: a command locks a file for less."""


class Whereabouts(msgspec.Struct, frozen=True, kw_only=True):
    """Where a gateway is, and how it lets a client in."""

    url: str
    pid: int
    key_file: str = ""
    """The file with the key that it requires; empty if it requires none."""


def of_swarm(swarm_id: bytes) -> Path:
    """Return the file of the gateway to a swarm."""
    return _folder() / f"{swarm_id.hex()}.json"


def of_brain(folder: Path) -> Path:
    """Return the file of the gateway to a brain in a folder."""
    path = os.path.realpath(folder)
    return (
        _folder() / f"brain-{hashlib.blake2b(os.fsencode(path), digest_size=16).hexdigest()}.json"
    )


def find(file: Path) -> Whereabouts | None:
    """Return where the gateway that keeps a file is; None if no gateway keeps it."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None  # nobody holds the lock: its gateway has ended
        if os.fstat(handle).st_uid != os.getuid():
            return None
        return msgspec.json.decode(os.read(handle, _MOST_BYTES), type=Whereabouts)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    finally:
        os.close(handle)


@contextmanager
def told(file: Path, where: Whereabouts) -> Iterator[bool]:
    """Keep a file during the block; yield False if another gateway keeps it already.

    If the file cannot be written, the gateway runs all the same: commands do not find it then.
    """
    try:
        handle = _locked(file)
    except OSError as error:
        _warn(file, error)
        yield True
        return
    if handle is None:
        yield False
        return
    try:
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, msgspec.json.encode(where), 0)
        except OSError as error:
            _warn(file, error)
        try:
            yield True
        finally:
            with suppress(OSError):
                if _is_at(file, handle):
                    file.unlink()
    finally:
        os.close(handle)


def _locked(file: Path) -> int | None:
    """Return a handle of a file that is now locked by it; None if a gateway keeps the file.

    A lock that is held is tried again for a moment, because it may be that of a command, which
    looks for a gateway. A gateway that ends removes the file, so the lock may be that of a removed
    file: then the file is opened anew.
    """
    until = time.monotonic() + _LOCKED_WITHIN
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(file, flags, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(file, handle):
                return handle
        except BlockingIOError:
            if time.monotonic() >= until:
                os.close(handle)
                return None
            time.sleep(_PAUSE)
        except OSError:
            os.close(handle)
            raise
        os.close(handle)


def _is_at(file: Path, handle: int) -> bool:
    """Return whether a path still leads to an open file."""
    try:
        return os.path.samestat(file.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _warn(file: Path, error: OSError) -> None:
    _LOG.warning(
        "%s cannot be written: %s; commands will not find this gateway", file, error.strerror
    )


def _folder() -> Path:
    """Return the folder of these files, which is the same for all of this user's processes.

    For a user without a home, it is one that cannot be, so that no gateway is found there.
    """
    try:
        return user_folder("XDG_STATE_HOME") / "gateways"
    except UsageError:
        return Path(os.devnull, "gateways")
