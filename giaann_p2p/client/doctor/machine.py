"""Checks whether this machine can run a storage peer: memory, data folder, disk, open files."""

import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from giaann_p2p.client.doctor.finding import Finding, note, ok, problem
from giaann_p2p.errors import DiskError, StoreError
from giaann_p2p.machine import PROCESS_BYTES, available_memory
from giaann_p2p.store.disk.small_file import is_there
from giaann_p2p.store.home import locked
from giaann_p2p.units import readable_bytes

_LEAST_FILES, _GOOD_FILES = 512, 2048
"""Limits of open files: below the first is a problem, below the second is a note."""


class DiskPlan(NamedTuple):
    """The disk space that a storage peer will take, in bytes, for each purpose."""

    columns: int
    """For the shards that it owns, and its log."""
    remembered: int
    """For the deltas of recent chunks (`--remember`)."""
    cold: int
    """For cold copies (`--cold`); a peer with less room keeps fewer."""


def machine(data_dir: Path | None, capacity: int, wanted: DiskPlan) -> Iterator[Finding]:
    """Check this machine; check folder and disk only if a data folder is given."""
    yield memory(capacity, available_memory())
    if data_dir is not None:
        yield folder(data_dir)
        yield disk(data_dir, wanted)
    yield files(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def memory(capacity: int, available: int | None) -> Finding:
    """Check whether the memory promised to the swarm is available; sizes are in bytes."""
    wanted = capacity + PROCESS_BYTES
    said = f"up to {readable_bytes(wanted)} needed, for the capacity and the process itself"
    if available is None:
        return note("memory", f"{said}; the free memory cannot be measured here")
    said += f"; {readable_bytes(available)} free"
    if available < wanted:
        most = max(0, available - PROCESS_BYTES)
        return problem("memory", said, f"give a --capacity of at most {readable_bytes(most)}")
    return ok("memory", said)


def disk(path: Path, plan: DiskPlan) -> Finding:
    """Check whether a folder's disk has room for what a storage peer will keep there."""
    wanted = plan.columns + plan.remembered
    try:
        free = shutil.disk_usage(_existing(path)).free
    except DiskError as error:
        return problem("disk", str(error), "choose another --data-dir")
    except OSError as error:
        return problem("disk", f"{path}: {error.strerror}", "choose another --data-dir")
    said = f"{readable_bytes(free)} free for {path}"
    if free < wanted:
        return problem(
            "disk",
            f"{said}; up to {readable_bytes(wanted)} may be needed",
            "free some space, choose a --data-dir on another disk, or give less --capacity",
        )
    if free < wanted + plan.cold:
        return note(
            "disk",
            f"{said}; that is less than columns and cold copies may take together,"
            f" {readable_bytes(wanted + plan.cold)}",
            f"give a --cold of at most {readable_bytes(free - wanted)}",
        )
    return ok("disk", said)


def folder(path: Path) -> Finding:
    """Check whether a daemon could use a data folder, without creating the folder."""
    try:
        return _folder(path, _existing(path))
    except DiskError as error:
        return problem("folder", str(error), "choose another --data-dir")


def _folder(path: Path, there: Path) -> Finding:
    """Check a data folder, or its nearest parent that exists; DiskError if one is unreadable."""
    if not there.is_dir():
        return problem("folder", f"{there} is not a folder", "choose another --data-dir")
    if not os.access(there, os.W_OK | os.X_OK):
        return problem(
            "folder",
            f"{there} cannot be written to by this user",
            "make this user its owner (chown), or choose another --data-dir",
        )
    if not is_there(path):
        return ok("folder", f"{path} can be created")
    try:
        with locked(path):
            return ok("folder", f"{path} can be used")
    except DiskError:
        raise
    except StoreError:
        return problem(
            "folder",
            f"another process uses {path}",
            "end the daemon that uses it, or choose another --data-dir: each daemon needs its own",
        )


def files(limit: int) -> Finding:
    """Check the limit of open files: each connection takes one."""
    unlimited = limit == resource.RLIM_INFINITY
    said = f"{'any number of' if unlimited else f'{limit:,}'} files may be open"
    if unlimited or limit >= _GOOD_FILES:
        return ok("open files", said)
    remedy = "before starting it: ulimit -n 4096; in a systemd unit: LimitNOFILE=4096"
    if limit < _LEAST_FILES:
        return problem("open files", said, remedy)
    return note("open files", f"{said}, which is few for a large swarm", remedy)


def _existing(path: Path) -> Path:
    """Return the path, or its nearest parent that exists; DiskError if a folder is unreadable."""
    path = path.absolute()
    while not is_there(path) and path != path.parent:
        path = path.parent
    return path
