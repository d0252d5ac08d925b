"""The resource use of a process, read from Linux's /proc; unknown on other systems."""

import os
from pathlib import Path

from giaann_p2p.net.hive.daemon_limits import Figures

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


def figures_of(pid: int) -> Figures | None:
    """Return the resource use of a process of this user; None if it cannot be read."""
    folder = _PROC / str(pid)
    try:
        pages = int((folder / "statm").read_text().split()[1])
        times = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
        moved = [int(line.split()[1]) for line in (folder / "io").read_text().splitlines()[:2]]
        descriptors = sum(1 for _ in os.scandir(folder / "fd"))
    except (OSError, IndexError, ValueError):  # it has ended, or this is not Linux
        return None
    return Figures(pages * _PAGE, descriptors, sum(map(int, times)) / _TICKS, sum(moved))
