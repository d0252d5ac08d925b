"""The folder with the sockets between this process and its p2pd.

Only its user can enter the folder, so nobody else on the machine can command the p2pd. Each run has
a folder of its own, and holds a lock in it. When a run is killed, its lock becomes free, and the
same user's next run removes the folder.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from giaann_p2p.errors import UsageError

_PREFIX = "giaann-p2pd-"
_LOCK = "lock"
_MOST_SOCKET = 107
"""The most bytes of a socket's path, by Linux."""
_BELOW = len("/" + _PREFIX + "12345678" + "/streams.sock")
MOST_PATH = _MOST_SOCKET - _BELOW
"""The most bytes of the parent folder's path: the folder's and the socket's names follow it."""


class Runtime:
    """A locked folder for the sockets of this run; `close` removes it."""

    def __init__(self, parent: Path | None = None) -> None:
        parent = _parent() if parent is None else parent
        if len(os.fsencode(parent)) > MOST_PATH:
            raise UsageError(f"folder: {parent} is too long a path for sockets; name a shorter one")
        sweep(parent)
        try:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        except OSError as error:
            raise UsageError(
                f"folder: no sockets can be created in {parent}: {error.strerror}"
            ) from None
        draft = self.path / f"{_LOCK}.new"
        self._lock = os.open(draft, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        draft.rename(self.path / _LOCK)  # the lock file never exists unlocked

    def close(self) -> None:
        """Remove the folder; do nothing if it is removed already."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def sweep(parent: Path) -> None:
    """Remove the folders that killed runs of the same user have left in `parent`."""
    for folder in parent.glob(_PREFIX + "*"):
        with suppress(OSError):
            if folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(lock)


def _parent() -> Path:
    found = os.environ.get("XDG_RUNTIME_DIR")
    if found and len(os.fsencode(found)) <= MOST_PATH and os.access(found, os.W_OK):
        return Path(found)
    return Path(tempfile.gettempdir())
