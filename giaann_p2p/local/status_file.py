"""The status file of a peer, in which it reports its state to the process that started it.

A daemon that was given `--status-file` replaces that file atomically whenever its status changes.
The peer is ready when its state is READY.
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from giaann_p2p.store.disk.small_file import read_json, write_json

READY = "ready"


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """A peer's status. All fields but `state` may be empty, because they are not known yet."""

    state: str
    """READY, or one word for what the peer is doing instead, such as syncing or draining."""
    pid: int = 0
    """The process id of the peer."""
    link: str = ""
    """The swarm's join link; only bootstrap peers report it."""
    peer: str = ""
    """The peer's identity."""
    listen: str = ""
    """The address that the peer listens on, with the actual port: /ip4/127.0.0.1/tcp/41233."""
    note: str = ""
    """More information for the operator, such as that the peer is full."""
    metrics_port: int = 0
    """The port of the peer's metrics."""


class StatusFile:
    """The status file of one peer."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def write(self, status: Status) -> None:
        """Write a new status, with this process's id; DiskError if it cannot be written."""
        status = msgspec.structs.replace(status, pid=os.getpid())
        write_json(self._file, status)

    def read(self) -> Status | None:
        """Return the last status; None if there is no file, DamagedError if the file is invalid."""
        return read_json(self._file, Status)

    def remove(self) -> None:
        """Remove the status file if it exists."""
        with suppress(FileNotFoundError):
            self._file.unlink()
