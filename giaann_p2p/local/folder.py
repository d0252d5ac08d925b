"""The folder of a swarm on this machine.

    lock                   locked by the supervisor while it runs; contains its process id
    swarm.json             the swarm's spec, its join link, its peers and their ports
    run/                   sockets; a symlink to a folder with a shorter path if the path of this
                           one is too long for sockets
    logs/NAME.log          the logs of each peer, of the supervisor and of the zygote
    peers/NAME/data/       a peer's own data
    peers/NAME/status.json the status that a peer reports

While a supervisor holds the lock, no process but those of its swarm changes anything in the folder.
A process that gets the lock first removes what a killed supervisor has left: processes, sockets and
statuses.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from giaann_p2p.errors import DiskError, StoreError, UsageError
from giaann_p2p.local import linux
from giaann_p2p.local.roles import Spec
from giaann_p2p.local.status_file import StatusFile
from giaann_p2p.net.hive.runtime import MOST_PATH
from giaann_p2p.store.disk.small_file import is_there, read_json, write_json

_PREFIX = "giaann-run-"
_ENDS_WITHIN = 5.0
"""Seconds within which killed processes have to end."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a peer, so that it can restart with the same name, role and ports."""

    name: str
    role: str
    listen: str = ""
    metrics_port: int = 0


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a swarm, so that it can restart with the same settings, link and peers."""

    spec: Spec
    link: str = ""
    peers: list[Known] = []


class Folder:
    """The folder of a swarm on this machine: its paths, and its record."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))

    def __repr__(self) -> str:
        return f"<Folder: {self.path}>"

    @property
    def run(self) -> Path:
        """The folder of the sockets, with symlinks resolved, so that its path is short enough."""
        return Path(os.path.realpath(self.path / "run"))

    @property
    def socket(self) -> Path:
        """The path of the supervisor's socket."""
        return self.run / "control.sock"

    def log(self, name: str) -> Path:
        """Return the path of the log of a peer, of the supervisor or of the zygote."""
        return self.path / "logs" / f"{name}.log"

    def data(self, name: str) -> Path:
        """Return the path of a peer's data folder."""
        return self.path / "peers" / name / "data"

    def status(self, name: str) -> Path:
        """Return the path of a peer's status file."""
        return self.path / "peers" / name / "status.json"

    def record(self) -> Record | None:
        """Read the swarm's record; None if the folder has none yet."""
        return read_json(self.path / "swarm.json", Record)

    def keep(self, record: Record) -> None:
        """Write the swarm's record to disk."""
        write_json(self.path / "swarm.json", record)

    def erase(self) -> None:
        """Remove the folder and its content; StoreError if it is in use, or not a swarm's."""
        if not is_there(self.path / "lock"):
            raise StoreError(f"{self.path} is not a swarm's folder; nothing was removed")
        with Hold(self):
            try:
                shutil.rmtree(self.path)
            except OSError as error:
                raise DiskError(f"{error.filename} cannot be removed: {error.strerror}") from None


class Hold:
    """The lock on a swarm's folder; taking it removes what a killed supervisor left behind.

    UsageError if the folder cannot be a swarm's, StoreError if it is in use, DiskError if the lock
    cannot be written.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        _make(folder.path)
        try:
            self._lock = self._taken(folder)
        except OSError as error:
            raise DiskError(
                f"{folder.path} cannot be used as a swarm's folder: {error.strerror}"
            ) from None

    @staticmethod
    def _taken(folder: Folder) -> int:
        """Return the locked file, after removing what a killed supervisor left behind."""
        lock = os.open(folder.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not _locked(lock):
                number = _number(lock)
                raise StoreError(
                    f"{folder.path} is in use by process {number or 'unknown'}; end that swarm"
                    f" (giaann swarm down --dir {folder.path}), or name another folder"
                )
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(os.getpid()).encode(), 0)
            _clear(folder)
        except BaseException:
            os.close(lock)
            raise
        return lock

    def __enter__(self) -> "Hold":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def prepare(self) -> None:
        """Create the folders of the sockets and of the logs."""
        (self.folder.path / "logs").mkdir(exist_ok=True)
        run = self.folder.path / "run"
        if len(os.fsencode(run)) <= MOST_PATH:
            run.mkdir(mode=0o700)
        else:
            run.symlink_to(_short_folder())

    def close(self) -> None:
        """Remove the sockets and release the lock."""
        if self._lock < 0:
            return
        _remove_run(self.folder.path / "run")
        with suppress(OSError):
            os.ftruncate(self._lock, 0)
        os.close(self._lock)
        self._lock = -1


def _make(path: Path) -> None:
    """Create a swarm's folder; UsageError if that fails, or if the folder has other content."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        strange = not (path / "lock").exists() and any(path.iterdir())
    except OSError as error:
        raise UsageError(f"{path} cannot be used as a swarm's folder: {error.strerror}") from None
    if strange:
        raise UsageError(f"{path} has other content; name a new folder, or an empty one")


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _number(lock: int) -> int:
    """Return the process id in a lock file; 0 if there is none."""
    text = os.pread(lock, 20, 0)
    return int(text) if text.isdigit() else 0


def _clear(folder: Folder) -> None:
    """Remove what a killed supervisor left: processes, sockets and statuses."""
    linux.kill_marked(folder.path, _ENDS_WITHIN)
    _remove_run(folder.path / "run")
    for status in folder.path.glob("peers/*/status.json"):
        StatusFile(status).remove()


def _remove_run(run: Path) -> None:
    if run.is_symlink():
        target = Path(os.path.realpath(run))
        if target.name.startswith(_PREFIX) and target.is_dir():  # else we did not make it
            shutil.rmtree(target, ignore_errors=True)
        run.unlink()
    elif run.exists():
        shutil.rmtree(run, ignore_errors=True)


def _short_folder() -> Path:
    """Create a temporary folder whose path is short enough for sockets."""
    for parent in (tempfile.gettempdir(), "/tmp"):  # noqa: S108  (mkdtemp makes it ours alone)
        if len(os.fsencode(parent)) + len(_PREFIX) + 9 <= MOST_PATH:
            return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    raise UsageError(
        "no temporary folder has a path short enough for sockets; set TMPDIR to a shorter one"
    )
