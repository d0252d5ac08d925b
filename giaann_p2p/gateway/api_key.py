"""The file with a gateway's key: made if it is missing, and refused if others can read it."""

import os
import secrets
import stat
from pathlib import Path

from giaann_p2p.errors import UsageError

_KEY_BYTES = 24
_SHORTEST, _MOST_BYTES = 16, 4096


def key_in(path: Path) -> bytes:
    """Return the key in a file; make the file, for this user only, if there is none."""
    try:
        return _made(path)
    except FileExistsError:
        return _read(path)
    except OSError as error:
        raise UsageError(f"the key file {path} cannot be made: {error.strerror}") from None


def _made(path: Path) -> bytes:
    key = f"giaann-{secrets.token_urlsafe(_KEY_BYTES)}".encode()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "wb") as opened:
        opened.write(key + b"\n")
    return key


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"the key file {path} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise UsageError(f"the key file {path} is not a plain file")
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO) or found.st_uid not in (os.getuid(), 0):
        raise UsageError(f"others can use the key file {path}: chmod 600 {path}")
    key = data.strip()
    if not _SHORTEST <= len(key) <= _MOST_BYTES or b"\n" in key or not key.isascii():
        raise UsageError(
            f"the key file {path} must have one line of {_SHORTEST} or more plain characters;"
            " remove it, and the gateway makes a valid one"
        )
    return key
