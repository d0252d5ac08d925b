"""The resource use of a process, read from Linux's /proc; unknown on other systems."""

import os

from giaann_p2p.net.hive.daemon_limits import Figures

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


def figures_of(pid: int) -> Figures | None:
    """Return the resource use of a process of this user; None if it cannot be read."""
    try:
        pages = int(_read(pid, "statm").split()[1])
        times = _read(pid, "stat").rpartition(b")")[2].split()[11:13]
        moved = [int(line.split()[1]) for line in _read(pid, "io").splitlines()[:2]]
        descriptors = sum(1 for _ in os.scandir(f"/proc/{pid}/fd"))
    except (OSError, IndexError, ValueError):  # it has ended, or this is not Linux
        return None
    return Figures(pages * _PAGE, descriptors, sum(map(int, times)) / _TICKS, sum(moved))


def _read(pid: int, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:  # noqa: PTH123  (each second)
        return file.read()
