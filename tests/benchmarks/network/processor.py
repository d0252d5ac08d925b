"""Processor time of another process."""

import os
from pathlib import Path

_USER, _SYSTEM = 11, 12
"""Places in /proc/PID/stat, behind the name."""


def processor_time(pid: int) -> float:
    """Return the seconds that a process has taken so far, without its children."""
    numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(numbers[_USER]) + int(numbers[_SYSTEM])) / os.sysconf("SC_CLK_TCK")
