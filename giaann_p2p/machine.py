"""The available memory: this machine's, or less if a container or a service has a limit."""

from collections.abc import Iterator
from pathlib import Path

from giaann_p2p.errors import UsageError
from giaann_p2p.units import readable_bytes

PROCESS_BYTES = 450 << 20
"""The memory of a storage peer that holds nothing, with its p2pd, in bytes; see
docs/storage-peer.md."""
DISK_SHARE = 2
"""The ratio of a peer's capacity to the disk space that is always enough for it. A store takes a
fifth as much disk space as memory, and twice that while it makes a snapshot, so half of the
capacity is enough."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
"""Environment variables that limit the thread pools of torch and numpy to one thread. The parser's
matrix products are small, and threads that wait for one another spin: beside other work, two of
them took ten times as long as one. To use several cores, start several processes."""
_MEMINFO = Path("/proc/meminfo")
_OWN_GROUP = Path("/proc/self/cgroup")
_CGROUP = Path("/sys/fs/cgroup")


def memory() -> int | None:
    """Return the most bytes of memory that this process can ever have; None if it is not known."""
    limits = (limit for limit, _ in _group_limits())
    return min((one for one in (_meminfo("MemTotal"), *limits) if one is not None), default=None)


def available_memory() -> int | None:
    """Return the bytes of memory that this process can have now; None if it is not known."""
    left = (max(0, limit - taken) for limit, taken in _group_limits())
    return min((one for one in (_meminfo("MemAvailable"), *left) if one is not None), default=None)


def check_capacity(capacity: int, there: int | None) -> None:
    """Raise UsageError if a storage peer promises more memory than the machine has.

    Other peers place shards on it according to this promise, and would have to move them again.
    """
    if there is None or capacity + PROCESS_BYTES <= there:
        return
    most = readable_bytes(max(0, there - PROCESS_BYTES))
    raise UsageError(
        f"--capacity {readable_bytes(capacity)} is more than there is: this machine, or the"
        f" container, has {readable_bytes(there)} of memory, and the peer itself takes"
        f" {readable_bytes(PROCESS_BYTES)}; give at most {most}, or --force to promise it anyway"
    )


def _meminfo(wanted: str) -> int | None:
    try:
        for line in _MEMINFO.read_text().splitlines():
            name, _, value = line.partition(":")
            if name == wanted:
                return int(value.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _group_limits() -> Iterator[tuple[int, int]]:
    """Yield the memory limit and use, in bytes, of each control group that this process is in."""
    for group in _groups():
        try:
            limit = int((group / "memory.max").read_text())
            yield limit, int((group / "memory.current").read_text())
        except (OSError, ValueError):  # the group has no memory limit
            continue


def _groups() -> list[Path]:
    """Return this process's control group and those above it; a container sees only the root."""
    try:
        own = _OWN_GROUP.read_text().rpartition("::/")[2].strip()
    except OSError:
        own = ""
    path = _CGROUP / own
    above = [folder for folder in path.parents if folder.is_relative_to(_CGROUP)]
    return [path, *above]
