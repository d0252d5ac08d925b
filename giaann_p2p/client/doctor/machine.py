"""Whether this machine has what a storage peer takes: memory, disk, open files, a folder."""

import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

from giaann_p2p.client.doctor.finding import Finding, note, ok, problem
from giaann_p2p.errors import StoreError
from giaann_p2p.store.home import locked
from giaann_p2p.units import readable_bytes

PROCESS_BYTES = 450 << 20
"""What a storage peer takes that holds nothing, its p2pd included (see docs/storage-peer.md)."""
_DISK_SHARE = 2
"""A store takes a fifth of its memory on the disk, twice while it makes a snapshot."""
_LEAST_FILES, _GOOD_FILES = 512, 2048
_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def machine(data_dir: Path | None, capacity: int) -> Iterator[Finding]:
    """Look at all of it; at the folder only if one is given."""
    yield memory(capacity, available_memory())
    if data_dir is not None:
        yield folder(data_dir)
        yield disk(data_dir, capacity)
    yield files(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def memory(capacity: int, available: int | None) -> Finding:
    """Compare what is promised to the swarm with what there is."""
    wanted = capacity + PROCESS_BYTES
    said = f"{readable_bytes(wanted)} may be taken: the capacity, and the process itself"
    if available is None:
        return note("memory", f"{said}; what is free cannot be told here")
    said += f"; {readable_bytes(available)} are free"
    if available < wanted:
        most = max(0, available - PROCESS_BYTES)
        return problem("memory", said, f"give a --capacity of at most {readable_bytes(most)}")
    return ok("memory", said)


def available_memory() -> int | None:
    """Return the bytes that this process could have, by the machine and by its group's limit."""
    found = [_free(), _group_free()]
    return min((one for one in found if one is not None), default=None)


def disk(path: Path, capacity: int) -> Finding:
    """Compare the disk of a folder with what the store may take there."""
    wanted = capacity // _DISK_SHARE
    try:
        free = shutil.disk_usage(_existing(path)).free
    except OSError as error:
        return problem("disk", f"{path}: {error.strerror}", "name another --data-dir")
    said = f"{readable_bytes(free)} are free for {path}"
    if free < wanted:
        return problem(
            "disk",
            f"{said}; up to {readable_bytes(wanted)} may be needed",
            "make room, name a --data-dir on another disk, or give less --capacity",
        )
    return ok("disk", said)


def folder(path: Path) -> Finding:
    """See whether a daemon could have the folder; nothing is made that is not there."""
    there = _existing(path)
    if not there.is_dir():
        return problem("folder", f"{there} is no folder", "name another --data-dir")
    if not os.access(there, os.W_OK | os.X_OK):
        return problem(
            "folder",
            f"{there} cannot be written to by this user",
            f"give it to the user (chown), or name another --data-dir than {path}",
        )
    if not path.exists():
        return ok("folder", f"{path} can be made")
    try:
        with locked(path):
            return ok("folder", f"{path} can be used")
    except StoreError:
        return problem(
            "folder",
            f"another process uses {path}",
            "end the daemon that runs in it, or name another --data-dir: one daemon a folder",
        )


def files(limit: int) -> Finding:
    """See whether enough files may be open: each connection is one."""
    unlimited = limit == resource.RLIM_INFINITY
    said = f"{'any number of' if unlimited else f'{limit:,}'} files may be open"
    if unlimited or limit >= _GOOD_FILES:
        return ok("open files", said)
    remedy = "before starting it: ulimit -n 4096; in a systemd unit: LimitNOFILE=4096"
    if limit < _LEAST_FILES:
        return problem("open files", said, remedy)
    return note("open files", f"{said}, which is few for a large swarm", remedy)


def _free() -> int | None:
    try:
        for line in _MEMINFO.read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _group_free() -> int | None:
    """Return what a container's limit leaves."""
    try:
        most = int((_CGROUP / "memory.max").read_text())
        return max(0, most - int((_CGROUP / "memory.current").read_text()))
    except (OSError, ValueError):  # no such limit
        return None


def _existing(path: Path) -> Path:
    """Return the folder, or the nearest one above it that is there."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path
