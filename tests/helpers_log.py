"""A log's workload, and what a crash may leave of it."""

from giaann_p2p.errors import DiskError
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.log import Log
from giaann_p2p.store.disk.recover import recover
from giaann_p2p.store.disk.replay import replay
from giaann_p2p.store.disk.sync import ALWAYS, Sync

IDENTITY = b"0123456789abcdef"
Found = list[tuple[int, bytes]]


def found(files: Files, first: int = 1) -> Found:
    """Read a log."""
    return [(record.kind, bytes(record.payload)) for record in replay(files, IDENTITY, first)]


def recovered(files: Files, first: int = 1, sync: Sync = ALWAYS) -> tuple[Log, Found]:
    """Recover a log."""
    log, records = recover(files, IDENTITY, first, sync)
    return log, [(record.kind, bytes(record.payload)) for record in records]


class Book:
    """A log's user, which records what was acknowledged, and what was not."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.first = 1
        self.acknowledged: Found = []
        self.safe = 0
        """The number of acknowledged records that must survive a power cut."""
        self.failed: list[Found] = []
        """What the log would hold, had one of the last failed appends been kept."""
        self._count = 0

    def append(self, *sizes: int) -> None:
        group = [self._record(size) for size in sizes]
        try:
            self.log.append(group)
        except DiskError:
            self.failed.append(self.acknowledged + group)
            raise
        self.acknowledged += group
        self.failed = []
        if self.log._sync == ALWAYS:
            self.safe = len(self.acknowledged)

    def sync(self) -> None:
        self.log.sync()
        self.safe = len(self.acknowledged)

    def snapshot(self) -> None:
        """Let the log begin anew, as if a snapshot had everything so far."""
        self.first = self.log.roll()
        self.acknowledged, self.safe, self.failed = [], 0, []
        self.log.forget_before(self.first)

    def roll(self) -> None:
        self.log.roll()
        self.safe = len(self.acknowledged)
        self.failed = []

    def take_up(self, log: Log, records: Found) -> None:
        """Continue with what was recovered."""
        assert self.allows(records)
        self.log, self.acknowledged = log, records
        if log._tip:  # otherwise the disk refused, and the failed records may remain
            self.failed = []

    def allows(self, records: Found) -> bool:
        """Return whether a power cut may leave these records."""
        possible = [self.acknowledged, *self.failed]
        first_ones = any(records == whole[: len(records)] for whole in possible)
        return first_ones and len(records) >= self.safe

    def _record(self, size: int) -> tuple[int, bytes]:
        self._count += 1
        text = b"%d of %d " % (self._count, size)
        return self._count % 255, (text * (size // len(text) + 1))[:size]
