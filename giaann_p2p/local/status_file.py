"""What a peer tells of itself in a small file, for whoever has started it.

A daemon that was given `--status-file` makes a `StatusFile` of it and writes when something
changes; the file is only ever seen whole. It is ready when its state is READY.
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from giaann_p2p.local.small_file import read_json, write_json

READY = "ready"


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What a peer tells. All but the state may be unknown yet, and is empty then."""

    state: str
    """READY, or in one word what it does instead: syncing, draining."""
    pid: int = 0
    """The process that tells it."""
    link: str = ""
    """The link by which others join; of a bootstrap peer."""
    peer: str = ""
    """Its identity."""
    listen: str = ""
    """The address that it listens at, with the port that it got: /ip4/127.0.0.1/tcp/41233."""
    metrics_port: int = 0
    """Where it serves its metrics."""


class StatusFile:
    """The file of one peer."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def write(self, status: Status) -> None:
        """Tell something new; DiskError if it cannot be written."""
        status = msgspec.structs.replace(status, pid=os.getpid())
        write_json(self._file, status)

    def read(self) -> Status | None:
        """Return what was told last; None if nothing was, DamagedError if it is no status."""
        return read_json(self._file, Status)

    def remove(self) -> None:
        """Take it away, if it is there."""
        with suppress(FileNotFoundError):
            self._file.unlink()
