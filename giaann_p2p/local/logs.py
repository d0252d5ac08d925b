"""Reads the logs of the processes of a swarm on this machine."""

from pathlib import Path

from giaann_p2p.errors import UsageError
from giaann_p2p.local.folder import Folder
from giaann_p2p.local.peer import how_ended
from giaann_p2p.local.suggest import nearest

_MOST = 1 << 20
"""Maximum number of bytes read from a log at once."""
_LAST_LINES, _LAST_BYTES = 5, 4096
"""Maximum number of lines, and of bytes, that an error message quotes from a log."""


class Log:
    """The log of one process, which may still grow; UsageError if there is none."""

    def __init__(self, folder: Folder, name: str) -> None:
        self._file = folder.log(name)
        self._read = 0  # position in the file, in bytes
        names = sorted(file.stem for file in self._file.parent.glob("*.log"))
        if name not in names:
            known = f"there are {', '.join(names)}" if names else "nothing was ever started"
            hint = nearest(name, names) or f"; {known}"
            raise UsageError(f"{folder.path} has no log of {name!r}{hint}")

    def last(self, count: int) -> list[str]:
        """Return the last `count` lines, from at most the last megabyte of the log."""
        size = self._file.stat().st_size
        self._read = max(size - _MOST, 0)
        lines = self.news().splitlines()
        return lines[len(lines) - count :] if count < len(lines) else lines

    def news(self) -> str:
        """Return the text added since the last read, at most a megabyte of it."""
        with self._file.open("rb") as file:
            file.seek(self._read)
            data = file.read(_MOST)
        self._read += len(data)
        return data.decode(errors="replace")


def how_it_ended(name: str, code: int, folder: Folder) -> str:
    """Return a phrase that says how a peer ended, and quotes the last lines of its log."""
    words = " | ".join(_last_lines(folder.log(name)))
    return f"{name} {how_ended(code)}" + (f"; the last lines of its log: {words}" if words else "")


def _last_lines(file: Path) -> list[str]:
    try:
        with file.open("rb") as log:
            log.seek(max(file.stat().st_size - _LAST_BYTES, 0))
            text = log.read().decode(errors="replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()][-_LAST_LINES:]
