"""The newest file of a log, open for appending; tracks what is acknowledged, and what is durable.

    header and first records | ... | durable | not synced | kept | what a failed write left

A tip is given up at the first failure of the disk, because after a failed sync nobody knows which
of its pages are on the disk. The log continues in a new file, whose header says where this one
ends.
"""

import contextlib
from collections.abc import Sequence

from giaann_p2p.store.disk.files import Appender, Data, Files
from giaann_p2p.store.disk.record import MARK, Header, Place, Record, size_of
from giaann_p2p.store.disk.replay import file_name

Item = tuple[int, Data]
"""The kind of a record to append, and its payload."""

NEW = "log.new"
"""The name of a new log file until it is complete."""


class Tip:
    """The newest file of a log. Invariant: durable <= kept <= the file's size."""

    def __init__(self, header: Header, file: Appender, durable: int) -> None:
        self.header = header
        self.durable = durable
        """The offset in the file before which everything is on the disk."""
        self.kept = file.size
        """The offset after the last acknowledged record, or after the mark that follows it."""
        self.unsynced = 0
        """The number of acknowledged records that may not be on the disk yet."""
        self.sound = True
        """Whether the tip can still be used. It is false from the start of a write or sync until
        that is recorded as done, so any interruption, even a KeyboardInterrupt, leaves a tip that
        must be given up."""
        self._file, self._trusted = file, True

    @classmethod
    def begin(cls, files: Files, header: Header, items: Sequence[Item]) -> "Tip":
        """Create a log file that begins with some records.

        The file gets its name once these records are durable. So a file with that name always has
        all of them, and the mark after them.
        """
        if NEW in files.names():
            files.remove(NEW)
        file = files.create(NEW)
        try:
            pieces, end = _laid_out(header, [*items, (MARK, b"")], len(header.packed()))
            file.write(header.packed(), *pieces)
            file.sync()
            files.rename(NEW, file_name(header.number))
            files.sync()
        except OSError:
            file.close()
            with contextlib.suppress(OSError):
                files.remove(NEW)
            raise
        return cls(header, file, end)

    def write(self, items: Sequence[Item]) -> int:
        """Write records in one operation, and return the offset after the last of them."""
        self.sound = False
        pieces, end = _laid_out(self.header, items, self.kept)
        self._file.write(*pieces)
        return end

    def sync(self) -> None:
        """Sync the file: return once everything written is on the disk."""
        self.sound = self._trusted = False
        self._file.sync()
        self._trusted = True

    def keep(self, end: int, unsynced: int) -> None:
        """Acknowledge everything up to offset `end`; its last `unsynced` records are not synced."""
        durable = self.durable if unsynced else end
        self.kept, self.durable, self.unsynced, self.sound = end, durable, unsynced, True

    def mark(self) -> None:
        """Write a mark, which states that everything before it is on the disk."""
        end = self.write([(MARK, b"")])
        self.kept, self.sound = end, True

    def give_up(self, files: Files) -> list[Record]:
        """Close the file, and return the acknowledged records that may not be on the disk.

        Everything before `durable` stays valid. The rest of a failed write is truncated if
        possible, but one byte of it is left: without that byte the file might end in a mark, and a
        restarted log would continue in it.
        """
        with contextlib.suppress(OSError):
            self._file.truncate(min(self._file.size, self.kept + 1))
            if self.unsynced and self._trusted:
                self.sync()
                self.keep(self.kept, 0)
        items = self._read_back(files) if self.unsynced else []
        self.close()
        return items

    def close(self) -> None:
        """Close the file, without a sync; errors are ignored."""
        with contextlib.suppress(OSError):
            self._file.close()

    def _read_back(self, files: Files) -> list[Record]:
        """Return the whole unsynced records that the operating system still has in memory."""
        try:
            data = files.read(file_name(self.header.number), self.kept)
        except OSError:
            return []
        found = self.header.records(memoryview(data), self.durable)
        return [record for record in found if record.kind != MARK]


def places(number: int, items: Sequence[Item], at: int) -> list[Place]:
    """Return the places of records that are written in sequence to a file, from offset `at` on."""
    found = []
    for _, payload in items:
        found.append(Place(number, at))
        at += size_of(memoryview(payload).nbytes)
    return found


def _laid_out(header: Header, items: Sequence[Item], at: int) -> tuple[list[Data], int]:
    """Return the pieces of records to write at an offset of a file, and the offset after them."""
    pieces: list[Data] = []
    for kind, payload in items:
        piece = header.record(kind, payload, at)
        pieces += piece
        at += sum(memoryview(part).nbytes for part in piece)
    return pieces, at
