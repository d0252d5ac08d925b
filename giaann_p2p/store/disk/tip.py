"""The newest file of a log, open for appending: what of it is acknowledged, and what is safe.

    header and first records | ... | durable | not synced | kept | what a failed write left

A tip whose disk has failed once is given up: after a failed sync nobody knows which of its pages
are on the disk. The log goes on in a new file, whose header says where this one ends.
"""

import contextlib
from collections.abc import Sequence

from giaann_p2p.store.disk.files import Appender, Data, Files
from giaann_p2p.store.disk.record import MARK, Header, Place, Record, size_of
from giaann_p2p.store.disk.replay import file_name

Item = tuple[int, Data]
"""The kind of a record, and its payload."""

NEW = "log.new"
"""The name of a file that is still being made."""


class Tip:
    """See the module."""

    def __init__(self, header: Header, file: Appender, durable: int) -> None:
        self.header = header
        self.durable = durable
        """Everything before it is on the disk."""
        self.kept = file.size
        """Behind the last acknowledged record, or the mark that stands there."""
        self.unsynced = 0
        """How many records there are between these two."""
        self.sound = True
        """False from the start of a write or sync until it is booked, so that whatever breaks it
        off, an interrupt from the keyboard, too, leaves a tip that has to be given up."""
        self._file, self._trusted = file, True

    @classmethod
    def begin(cls, files: Files, header: Header, items: Sequence[Item]) -> "Tip":
        """Make a file that holds some records already. It gets its name when they are safe, so
        whoever sees the name sees all of them, and the mark that says so."""
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
        """Write records, all at once; return where they end."""
        self.sound = False
        pieces, end = _laid_out(self.header, items, self.kept)
        self._file.write(*pieces)
        return end

    def sync(self) -> None:
        """Bring everything that was written to the disk."""
        self.sound = self._trusted = False
        self._file.sync()
        self._trusted = True

    def keep(self, end: int, unsynced: int) -> None:
        """Acknowledge everything up to an end; so many of its records are not on the disk."""
        durable = self.durable if unsynced else end
        self.kept, self.durable, self.unsynced, self.sound = end, durable, unsynced, True

    def mark(self) -> None:
        """Say that everything so far is on the disk."""
        end = self.write([(MARK, b"")])
        self.kept, self.sound = end, True

    def give_up(self, files: Files) -> list[Record]:
        """Close it for good; return the records that were acknowledged and may not be on the disk.

        Everything before `durable` stands. What a failed write left is cut off if that can be done,
        but for one byte: a file that ends in a mark would be gone on with after a restart.
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
        """Let go of the file."""
        with contextlib.suppress(OSError):
            self._file.close()

    def _read_back(self, files: Files) -> list[Record]:
        """Read what the system still holds in memory; all that is whole."""
        try:
            data = files.read(file_name(self.header.number), self.kept)
        except OSError:
            return []
        found = self.header.records(memoryview(data), self.durable)
        return [record for record in found if record.kind != MARK]


def places(number: int, items: Sequence[Item], at: int) -> list[Place]:
    """Return where records stand in a file that are written one behind the other."""
    found = []
    for _, payload in items:
        found.append(Place(number, at))
        at += size_of(memoryview(payload).nbytes)
    return found


def _laid_out(header: Header, items: Sequence[Item], at: int) -> tuple[list[Data], int]:
    """Return the pieces to write at an offset, and where they end."""
    pieces: list[Data] = []
    for kind, payload in items:
        piece = header.record(kind, payload, at)
        pieces += piece
        at += sum(memoryview(part).nbytes for part in piece)
    return pieces, at
