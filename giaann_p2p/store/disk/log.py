"""An append-only log in numbered files: what it acknowledged it gives back, or says why not.

What `append` returns from is acknowledged. With `ALWAYS` it is on the disk by then; with
`Sync(seconds)` a power cut may take the last seconds, with `NEVER` all since the last `sync` or
`roll`; and always the records that are left are the first ones, in order and whole. Nothing is
synced behind anybody's back: who stops appending for longer than that calls `sync`.

Several records of one `append` cost one write and one sync; a mark behind them says that they are
safe. `replay` tells what files may hold, and how damage is told from the torn end of a last write.

When the disk fails, nothing of that append is acknowledged, and the log goes on in a new file with
the next one, however often that takes. Until then the records of a failed append may come back if
the process ends: some of the first ones, and whole ones only. Where something else breaks an append
off, a KeyboardInterrupt say, it is open whether its records were kept; the log stays sound.

Nobody but one log may write to a directory; its owner sees to that.
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
    """A log that is open for writing. Get it from `recover`."""

    def __init__(
        self,
        files: Files,
        identity: bytes,
        sync: Sync,
        sizes: Mapping[int, int],
        end: int = 0,
        again: Sequence[Record] = (),
    ) -> None:
        """Take up the log of some files, whose sizes are given, in a new one."""
        self._files, self._identity, self._sync = files, identity, sync
        self.number = max(sizes, default=0)
        """The number of the newest file; 0 before there is any."""
        self._sizes = dict(sizes)
        self._end = end
        """Where the newest file ends, while it is not open."""
        self._again = list(again)
        """Acknowledged records that stand behind this end, and that the next file has to hold."""
        self._moves: dict[Place, Place] = {}
        self._tip: Tip | None = None
        self._synced: float | None = None
        self._closed = False

    @property
    def size(self) -> int:
        """The size in bytes of all files but those that are forgotten, or kept as an archive."""
        tip = {self._tip.header.number: self._tip.kept} if self._tip else {}
        return sum({**self._sizes, **tip}.values())

    def go_on(self, tip: Tip) -> None:
        """Append to the newest file itself."""
        self._tip = tip

    def append(self, items: Sequence[Item], now: float = 0.0) -> list[Place]:
        """Acknowledge records, all or none, and return where each stands.

        `now` in seconds, by any clock, is for `Sync`.
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
            raise self._failed(tip, error, "nothing of it was kept") from None
        tip.keep(end, 0 if due else tip.unsynced + len(items))
        if due:
            self._mark(tip)
        return stand

    def moves(self) -> dict[Place, Place]:
        """Return where records stand that were written anew since this was asked last."""
        moves, self._moves = self._moves, {}
        return moves

    def sync(self) -> None:
        """Return when everything that was acknowledged is on the disk."""
        if not self._tip and not self._again:
            return
        tip = self.ready()
        if not tip.unsynced:
            return
        try:
            tip.sync()
        except OSError as error:
            raise self._failed(tip, error, "the next append writes it again") from None
        tip.keep(tip.kept, 0)
        self._mark(tip)

    def roll(self) -> int:
        """Start a new file and return its number.

        All that was acknowledged is safe in older ones, which can be forgotten as soon as what they
        tell is kept elsewhere.
        """
        self.sync()
        if self._tip:
            self._leave(self._tip)
        return self.ready().header.number

    def forget_before(self, number: int, kept: Container[int] = ()) -> None:
        """Remove the files before a number, but for those that are kept, and never the newest.

        A crash may leave any of them, so whoever recovers has to know already where to begin.
        """
        try:
            for old in file_numbers(self._files):
                if old < min(number, self.number):
                    if old not in kept:
                        self._files.remove(file_name(old))
                    self._sizes.pop(old, None)
            self._files.sync()
        except OSError as error:
            raise DiskError(
                f"{self._files.path('')}: {error.strerror}; the log's old files are still there"
            ) from None

    def close(self) -> None:
        """Sync, and let go of the files."""
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
        """Return the file to append to, a new one if need be."""
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
            raise self._error(header.number, error, "nothing of it was kept") from None
        stand = places(header.number, items, HEADER_SIZE)
        self._moves.update(zip((record.place for record in self._again), stand, strict=True))
        self._again, self.number, self._tip = [], header.number, tip
        return tip

    def _mark(self, tip: Tip) -> None:
        try:
            tip.mark()
        except OSError:  # the records are safe without it; the next append will tell of the disk
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
        """Give up the newest file."""
        self._give_up(tip)
        if lost := max(0, tip.unsynced - len(self._again)):
            kept = f"{kept}; {lost:,} records before it were not synced yet, and are lost"
        return self._error(tip.header.number, error, kept)

    def _error(self, number: int, error: OSError, kept: str) -> DiskError:
        name = self._files.path(file_name(number))
        return DiskError(f"{name}: {error.strerror}; {kept}; reads go on")


def _check(items: Sequence[Item]) -> None:
    for kind, payload in items:
        if not 0 <= kind < MARK:
            raise ValueError(f"a record's kind must be 0 to {MARK - 1}: {kind}")
        if memoryview(payload).nbytes > MAX_PAYLOAD:
            raise ValueError(f"a record takes at most {MAX_PAYLOAD:,} bytes")
