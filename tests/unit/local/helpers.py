"""Which processes belong to a folder."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def processes_of(folder: Path) -> list[str]:
    """Return the processes that have a folder's name in their command line or environment."""
    name, found = os.fsencode(folder), []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            with suppress(OSError):
                command = (process / "cmdline").read_bytes()
                if name in command or name in (process / "environ").read_bytes():
                    found.append(f"{process.name}: {command.decode(errors='replace')}")
    return found


def eventually(condition: Callable[[], object], within: float = 120.0) -> None:
    until = time.monotonic() + within
    while not condition():
        assert time.monotonic() < until, "it has not come to that"
        time.sleep(0.01)


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())
