"""A small file for a compute peer's book of standing: how long it has seen each storage peer.

Without a book, a peer that writes to storage peers treats them all alike, old or new; so a compute
peer saves its book across restarts. A storage peer saves its book in its store. The file is written
atomically, every few minutes.

A client saves no book. It runs for minutes, and a book counts only the time during which its owner
runs. A client that had run for an hour, long ago, would regard a month-old storage peer as a
newcomer, and training would wait for the peers that the client knows, although they may be full. A
client without a book is protected by the peers that hold shards beside their owners (see `Writer`,
rule 3).
"""

import asyncio
import logging
from concurrent.futures import Executor
from pathlib import Path

from giaann_p2p.errors import DiskError
from giaann_p2p.node.notes import take_in
from giaann_p2p.store.disk.small_file import read_whole, write_whole
from giaann_p2p.swarm.members.standing import MOST_BYTES, Standing

_EVERY = 10.0
"""Seconds between two checks whether the book is due to be written."""


class StandingFile:
    """The file in which a book of standing is kept."""

    def __init__(self, path: Path, log: logging.Logger | None = None) -> None:
        self._path = path
        self._log = log or logging.getLogger("giaann.node")

    def __repr__(self) -> str:
        return f"<StandingFile: {self._path}>"

    def restore(self, book: Standing) -> None:
        """Restore a book of standing from the file of an earlier run, if it can be read."""
        try:
            data = read_whole(self._path, MOST_BYTES)
        except DiskError as error:
            self._log.warning("the book of known peers cannot be read: %s", error)
            return
        take_in(book.restore, data, self._log)

    def write(self, data: bytes) -> None:
        """Write a packed book of standing to the file; a failure is only logged."""
        try:
            write_whole(self._path, data)
        except DiskError as error:
            self._log.warning("the book of known peers could not be saved: %s", error)

    async def run(self, book: Standing, executor: Executor | None = None) -> None:
        """Write the book of standing whenever it is due; check every 10 seconds if it is."""
        loop = asyncio.get_running_loop()
        while True:
            for note in book.note():
                await loop.run_in_executor(executor, self.write, note.value)
            await asyncio.sleep(_EVERY)
