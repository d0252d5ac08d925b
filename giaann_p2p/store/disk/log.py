"""An append-only log in numbered files: acknowledged records are replayed, or damage is reported.

Records are acknowledged when `append` returns. With `ALWAYS` they are on the disk by then. With
`Sync(seconds)` a power cut may lose the last seconds; with `NEVER`, everything since the last
`sync` or `roll`. The surviving records are always the first ones, in order and whole. There is no
background sync: a caller that pauses for longer than `seconds` must call `sync` itself.

All records of one `append` cost one write and one sync; a mark written after them states that
they are durable. The module `replay` describes what files may hold, and how to tell damage from the
torn end of a last write.

If the disk fails, no record of that append is acknowledged. The next append retries in a new file,
as often as necessary. Until one succeeds, records of the failed append may reappear if the process
ends: only some of the first ones, and only whole ones. If something else interrupts an append, such
as a KeyboardInterrupt, its records may or may not have been kept; the log stays sound.

Only one log may write to a directory; its owner must ensure that.
"""

from collections.abc import Container, Mapping, Sequence

from giaann_p2p.errors import DiskError
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.record import (
    HEADER_SIZE,
    MARK,
    MAX_PAYLOAD,
    Header,
    Place,
    Record,
)
from giaann_p2p.store.disk.replay import file_name, file_numbers
from giaann_p2p.store.disk.sync import Sync
from giaann_p2p.store.disk.tip import Item, Tip, places


class Log:
    """A store's log, open for writing; `recover` returns it."""

    def __init__(
        self,
        files: Files,
        identity: bytes,
        sync: Sync,
        sizes: Mapping[int, int],
        end: int = 0,
        again: Sequence[Record] = (),
    ) -> None:
        """Continue the log of existing files in a new file.

        `sizes`: the size in bytes of each file, by number. `end`: the offset at which the newest
        file ends. `again`: acknowledged records after that end, which the new file repeats.
        """
        self._files, self._identity, self._sync = files, identity, sync
        self.number = max(sizes, default=0)
        """The number of the newest file; 0 if there is no file yet."""
        self._sizes = dict(sizes)
        self._end = end
        """The offset at which the newest file ends, while no file is open."""
        self._again = list(again)
        """Acknowledged records after `_end`, which the next file must repeat."""
        self._moves: dict[Place, Place] = {}
        self._tip: Tip | None = None
        self._synced: float | None = None
        self._closed = False

    @property
    def size(self) -> int:
        """The size in bytes of all files since the last `forget_before`.

        Older files that are kept for their archived records do not count.
        """
        tip = {self._tip.header.number: self._tip.kept} if self._tip else {}
        return sum({**self._sizes, **tip}.values())

    def go_on(self, tip: Tip) -> None:
        """Continue to append to the newest file, instead of to a new one."""
        self._tip = tip

    def append(self, items: Sequence[Item], now: float = 0.0) -> list[Place]:
        """Append records, all of them or none, and return the place of each.

        `now`: the time in seconds of any clock; it decides whether a sync is due.
        """
        if not items:
            return []
        _check(items)
        tip = self.ready()
        stand = places(tip.header.number, items, tip.kept)
        try:
            end = tip.write(items)
            if due := self._due(now):
                tip.sync()
        except OSError as error:
            raise self._failed(tip, error, "the write was not kept") from None
        tip.keep(end, 0 if due else tip.unsynced + len(items))
        if due:
            self._mark(tip)
        return stand

    def moves(self) -> dict[Place, Place]:
        """Return old and new places of the records that were rewritten since the last call."""
        moves, self._moves = self._moves, {}
        return moves

    def sync(self) -> None:
        """Sync the log: return once every acknowledged record is on the disk."""
        if not self._tip and not self._again:
            return
        tip = self.ready()
        if not tip.unsynced:
            return
        try:
            tip.sync()
        except OSError as error:
            raise self._failed(tip, error, "the next append writes the records again") from None
        tip.keep(tip.kept, 0)
        self._mark(tip)

    def roll(self) -> int:
        """Start a new log file, and return its number.

        All acknowledged records are durable in older files by then. These can be forgotten as soon
        as a snapshot has their content.
        """
        self.sync()
        if self._tip:
            self._leave(self._tip)
        return self.ready().header.number

    def forget_before(self, number: int, kept: Container[int] = ()) -> None:
        """Delete the log files before a number, except those in `kept` and the newest file.

        A crash may leave any of them behind, so recovery must know from elsewhere which file to
        begin with. The names of all files are made durable first, because one of them replaces the
        deleted ones: if an earlier sync failed, a power cut might leave neither.
        """
        old = [n for n in file_numbers(self._files) if n < min(number, self.number)]
        try:
            if not all(each in kept for each in old):
                self._files.sync()
            for each in old:
                if each not in kept:
                    self._files.remove(file_name(each))
                self._sizes.pop(each, None)
            self._files.sync()
        except OSError as error:
            raise DiskError(
                f"{self._files.path('')}: {error.strerror}; old log files may remain"
            ) from None

    def close(self) -> None:
        """Sync the log, and close its newest file; further appends are refused."""
        if self._closed:
            return
        try:
            self.sync()
        finally:
            self._closed = True
            if self._tip:
                self._leave(self._tip)

    def _due(self, now: float) -> bool:
        if self._synced is None:
            self._synced = now
        due = self._sync.due(now - self._synced)
        if due:
            self._synced = now
        return due

    def ready(self) -> Tip:
        """Return the log file to append to, creating one if needed."""
        if self._closed:
            raise ValueError("the log is closed")
        if self._tip and not self._tip.sound:
            self._give_up(self._tip)
        if self._tip:
            return self._tip
        header = Header(self._identity, self.number + 1, self._end)
        items = [(record.kind, record.payload) for record in self._again]
        try:
            tip = Tip.begin(self._files, header, items)
        except OSError as error:
            raise self._error(header.number, error, "the write was not kept") from None
        stand = places(header.number, items, HEADER_SIZE)
        self._moves.update(zip((record.place for record in self._again), stand, strict=True))
        self._again, self.number, self._tip = [], header.number, tip
        return tip

    def _mark(self, tip: Tip) -> None:
        try:
            tip.mark()
        except OSError:  # records are durable without the mark; the next append reports the failure
            self._give_up(tip)

    def _give_up(self, tip: Tip) -> None:
        again = tip.give_up(self._files)
        self._sizes[tip.header.number] = tip.kept
        self._again, self._end, self._tip = again, tip.durable, None

    def _leave(self, tip: Tip) -> None:
        tip.close()
        self._sizes[tip.header.number] = tip.kept
        self._end, self._tip = tip.durable, None

    def _failed(self, tip: Tip, error: OSError, kept: str) -> DiskError:
        """Give up the newest file after a failure of the disk, and return the error to raise."""
        self._give_up(tip)
        if lost := max(0, tip.unsynced - len(self._again)):
            kept = f"{kept}; {lost:,} earlier records were not synced and are lost"
        return self._error(tip.header.number, error, kept)

    def _error(self, number: int, error: OSError, kept: str) -> DiskError:
        name = self._files.path(file_name(number))
        return DiskError(f"{name}: {error.strerror}; {kept}; reading still works")


def _check(items: Sequence[Item]) -> None:
    for kind, payload in items:
        if not 0 <= kind < MARK:
            raise ValueError(f"a record's kind must be 0 to {MARK - 1}: {kind}")
        if memoryview(payload).nbytes > MAX_PAYLOAD:
            raise ValueError(f"a record's payload may have at most {MAX_PAYLOAD:,} bytes")
