"""Functions about processes that only Linux has; proc(5) and prctl(2) document the interfaces."""

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from giaann_p2p.errors import UsageError
from giaann_p2p.local.errors import LocalSwarmError

MARK = "GIAANN_LOCAL_SWARM"
"""Environment variable that marks each process of a local swarm; it has the swarm's folder."""

_SET_DEATH_SIGNAL, _SET_NAME, _SET_SUBREAPER = 1, 15, 36
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
_PROC = Path("/proc")
_PAUSE = 0.02
"""Seconds between two looks at processes that are being killed."""


class Memory(NamedTuple):
    """The memory of a process, in bytes."""

    shared: int
    """The process's part of the memory that it shares: each page is divided among its users."""
    private: int
    """The memory that no other process uses."""


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends."""
    _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def adopt_orphans() -> None:
    """Make this process the parent of all its descendants whose parents end (a subreaper)."""
    _prctl(_SET_SUBREAPER, 1)


def call_it(name: str) -> None:
    """Set the name of this process that ps and top show; Linux keeps its first 15 bytes."""
    text = ctypes.create_string_buffer(os.fsencode(name))
    _prctl(_SET_NAME, ctypes.addressof(text))


def threads() -> int:
    """Return the number of threads of this process, including threads that Python did not start."""
    return sum(1 for _ in Path("/proc/self/task").iterdir())


def children(pid: int) -> list[int]:
    """Return the process ids of a process's children; none if there is no such process."""
    found: list[int] = []
    with suppress(OSError):
        for task in (_PROC / str(pid) / "task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def descendants(pid: int) -> list[int]:
    """Return the process ids of a process's children, of their children, and so on."""
    found = children(pid)
    for one in found:
        found += children(one)
    return found


def command(pid: int) -> str:
    """Return the name of the program that a process runs; empty if there is no such process."""
    try:
        return (_PROC / str(pid) / "comm").read_text().rstrip("\n")
    except OSError:
        return ""


def memory(pid: int) -> Memory | None:
    """Return the memory of a process; None if there is no such process."""
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return None
    sizes = {
        name: int(size.split()[0]) << 10 for name, _, size in (x.partition(":") for x in lines)
    }
    private = sizes.get("Private_Clean", 0) + sizes.get("Private_Dirty", 0)
    return Memory(max(sizes.get("Pss", 0) - private, 0), private)


def marked(folder: Path) -> list[int]:
    """Return the ids of all processes of the swarm in a folder that this user may see."""
    return [pid for pid, its in _marks() if its == folder]


def folders() -> set[Path]:
    """Return the folders of all local swarms whose processes this user may see."""
    return {folder for _, folder in _marks()}


def _marks() -> Iterator[tuple[int, Path]]:
    """Yield the id of each process of a local swarm, with the swarm's folder."""
    mark = os.fsencode(f"{MARK}=")
    for process in _PROC.iterdir():
        if process.name.isdecimal():
            with suppress(OSError):  # it has ended, or belongs to another user
                for variable in (process / "environ").read_bytes().split(b"\0"):
                    if variable.startswith(mark):
                        yield int(process.name), Path(os.fsdecode(variable.removeprefix(mark)))


def kill_marked(folder: Path, within: float) -> None:
    """Kill all processes of the swarm in a folder, and wait until they have ended.

    Raises LocalSwarmError if one of them still runs after `within` seconds.
    """
    until = time.monotonic() + within
    while left := marked(folder):
        if time.monotonic() > until:
            raise LocalSwarmError(
                f"process {left[0]} of the swarm in {folder} does not end; end it, and try again"
            )
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE)


def signal_named(name: str) -> signal.Signals:
    """Return the signal named by a text such as KILL, SIGKILL or 9; UsageError if there is none."""
    text = name.strip().upper()
    with suppress(KeyError):
        return signal.Signals[text if text.startswith("SIG") else f"SIG{text}"]
    with suppress(ValueError):
        return signal.Signals(int(text))
    raise UsageError(
        f"{name!r} is not a signal; give a name such as KILL, TERM or STOP, or a number"
    )


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, value, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
