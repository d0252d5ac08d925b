"""The status that a peer reports in a small file, for the process that has started it.

A daemon that was given `--status-file` makes a `StatusFile` of it, and writes it when something
changes; the file is replaced atomically. The peer is ready when its state is READY.
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from giaann_p2p.store.disk.small_file import read_json, write_json

READY = "ready"


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """A peer's status. Every field but the state may be empty, because it is not known yet."""

    state: str
    """READY, or one word for what the peer does instead: syncing, draining."""
    pid: int = 0
    """The id of the reporting process."""
    link: str = ""
    """The link by which others join; only a bootstrap peer has one."""
    peer: str = ""
    """The peer's identity."""
    listen: str = ""
    """The address that the peer listens on, with the actual port: /ip4/127.0.0.1/tcp/41233."""
    note: str = ""
    """Further information for the peer's operator, such as that it is full."""
    metrics_port: int = 0
    """The port of the peer's metrics."""


class StatusFile:
    """The status file of one peer."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def write(self, status: Status) -> None:
        """Write a new status; DiskError if it cannot be written."""
        status = msgspec.structs.replace(status, pid=os.getpid())
        write_json(self._file, status)

    def read(self) -> Status | None:
        """Return the last status; None if there is none, DamagedError if the file is invalid."""
        return read_json(self._file, Status)

    def remove(self) -> None:
        """Remove the file, if it is there."""
        with suppress(FileNotFoundError):
            self._file.unlink()
