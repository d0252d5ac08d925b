"""A book of standing in a small file, for a peer that has no store for it.

A writer that knows no peers treats them all as equal, so a compute peer keeps its book across
restarts. The file is written atomically, some minutes apart.

A client keeps no book. It runs for minutes, and a book only counts the time during which its owner
runs: a client that ran for an hour long ago would take a month-old storage peer for a newcomer, and
training would wait for the peers that the client knows, although these may be full. A client that
knows no peers is protected by the peers that hold shards beside their owners: see `Writer`, rule 3.
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


class StandingFile:
    """The file in which a book of standing is kept."""

    def __init__(self, path: Path, log: logging.Logger | None = None) -> None:
        self._path = path
        self._log = log or logging.getLogger("giaann.node")

    def __repr__(self) -> str:
        return f"<StandingFile: {self._path}>"

    def restore(self, book: Standing) -> None:
        """Restore a book from the file of an earlier run, if it can be read."""
        try:
            data = read_whole(self._path, MOST_BYTES)
        except DiskError as error:
            self._log.warning("the book of known peers cannot be read: %s", error)
            return
        take_in(book.restore, data, self._log)

    def write(self, data: bytes) -> None:
        """Replace the file's content; a failure is only logged."""
        try:
            write_whole(self._path, data)
        except DiskError as error:
            self._log.warning("the book of known peers is not written down: %s", error)

    async def run(self, book: Standing, executor: Executor | None = None) -> None:
        """Write the book whenever it has a new note; look every 10 seconds."""
        loop = asyncio.get_running_loop()
        while True:
            for note in book.note():
                await loop.run_in_executor(executor, self.write, note.value)
            await asyncio.sleep(_EVERY)
