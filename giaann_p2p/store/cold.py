"""Cold copies: shards that were handed over and left memory, kept on disk as a last resort.

A cold copy can restore a shard if the peers that took it over vanish. Each copy is a file of its
own, `cold-00012` for shard 12: a header, a record that describes the copy, the shard's content, and
an end mark. The file gets its name only when it is complete and synced, so after a crash a copy is
whole or absent. Listing the copies reads the first record of each file, never the content.

If a shard is divided, its copy serves each part, until all parts have newer copies or are
forgotten. The name of a file states how often the layout had been doubled when it was written:
after one doubling, it is `cold-00012-1`. If only some of the parts are forgotten, their copies may
reappear when the store is opened again.

A copy never changes. To renew one, the store adopts its content, catches up with the shard's
owners, and writes a new copy.
"""

import contextlib
import hashlib
import re
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from giaann_p2p.errors import DamagedError, DiskError, StoreError
from giaann_p2p.plain_faults import fault_of
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.content import Content
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.record import (
    HEAD_SIZE,
    HEADER_SIZE,
    Header,
    Record,
    behind,
    head_of,
    size_of,
)
from giaann_p2p.store.layout import MOST_SHARDS, Layout
from giaann_p2p.store.records import Kind, content_of, content_record, promised_digest
from giaann_p2p.store.update import rows_for

_NAME = re.compile(r"cold-(\d{5,})(?:-(\d{1,2}))?")
_UNFINISHED = ".new"
_UNFINISHED_NAME = re.compile(_NAME.pattern + re.escape(_UNFINISHED))
_ABOUT, _END = 16, 254
_FIRST_READ = 1 << 12
"""The number of bytes to read first: they hold a copy's header and, unless it lists many jobs, its
description."""


class Cold(msgspec.Struct, frozen=True):
    """The description of one cold copy, without its content."""

    shard: int
    chunks: Applied
    connections: int
    """The number of connections; if the shard was divided since, about its part of them."""
    since: float
    """The time at which the shard left memory, in seconds since 1970."""
    nbytes: int
    """The size of the cold copy's file in bytes, or about the shard's part of it."""
    file: str
    """The name of the file."""


class _About(msgspec.Struct, array_like=True):
    shard: int
    chunks: bytes
    connections: int
    since: float


class ColdRoom:
    """The cold copies of one store.

    Invariant: `copies` has exactly the copies whose files are complete and readable.
    """

    def __init__(
        self, files: Files | None, identity: bytes, limits: Limits, layout: Layout
    ) -> None:
        """Find the cold copies among a store's files.

        `files` is None for a store in memory, which cannot keep cold copies.
        """
        self._files, self._limits, self._layout = files, limits, layout
        self._identity = hashlib.blake2b(b"cold\0" + identity, digest_size=16).digest()
        self.changes = 0
        """A counter that grows whenever `copies` changes."""
        self.damaged: list[str] = []
        """The names of copies that cannot be read. They are left in place, and `fsck` reports
        them."""
        self.copies: Mapping[int, Cold] = self._found()
        """The cold copies by shard. The mapping is replaced, never mutated, so that any thread may
        read it."""

    def __repr__(self) -> str:
        return f"<ColdRoom: {len(self.copies)} shards, {self.nbytes:,} bytes>"

    @property
    def durable(self) -> bool:
        """Whether cold copies can be kept; a store in memory has no disk to keep them on."""
        return self._files is not None

    @property
    def nbytes(self) -> int:
        """The size of all cold copies on the disk, in bytes."""
        return sum(copy.nbytes for copy in self.copies.values())

    def double(self, layout: Layout) -> None:
        """Let each copy serve all parts into which the new layout divides its shard."""
        before, self._layout = self._layout, layout
        self._are_now(_parts_of(self.copies.values(), before, layout))

    def put(self, held: Content, since: float, layout: Layout) -> None:
        """Write a cold copy of one shard durably; it replaces an older copy of the shard.

        `since`: the time at which the shard left memory, in seconds since 1970. `layout`: the
        layout by which the shard is numbered.
        """
        files = self._disk()
        (shard,) = held.shards.tolist()
        about = _About(shard, held.applied[0].to_bytes(), held.delta.connections, since)
        records = [(_ABOUT, msgspec.msgpack.encode(about)), (Kind.CONTENT, content_record(held))]
        name, header = name_of(shard, layout.doublings), self._wanted(shard, layout.doublings)
        size = self._write(files, name, header, records)
        copy = Cold(shard, held.applied[0], held.delta.connections, since, size, name)
        unused = self._are_now({**self.copies, **_parts_of([copy], layout, self._layout)})
        with contextlib.suppress(OSError):  # an older copy does no harm
            for old in unused:
                files.remove(old)

    def content(self, shard: int) -> Content:
        """Return the content of a shard's cold copy.

        DamagedError if it does not match the digest that was written with it.
        """
        copy = self.copies.get(shard)
        held = self._read(copy.file if copy else name_of(shard, self._layout.doublings))
        if copy is None or copy.file == name_of(shard, self._layout.doublings):
            return held
        shards = np.array([shard], np.uint16)
        return Content(shards, held.applied, rows_for(held.delta, shards, self._layout))

    def _read(self, name: str) -> Content:
        """Return the content of a copy's file, in the layout in which it was written."""
        files, (shard, _) = self._disk(), _number_of(name)
        try:
            data = files.read(name)
        except OSError as error:
            raise DiskError(f"{files.path(name)}: {error.strerror}") from None
        found = {record.kind: record for record in self._records(files, name, data)}
        held = content_of(found[Kind.CONTENT].payload, self._limits)
        if held.shards.tolist() != [shard] or held.digest != promised_digest(
            found[Kind.CONTENT].payload
        ):
            raise DamagedError(
                f"{files.path(name)} is damaged: its content does not match its digest"
            )
        return held

    def forget(self, shards: Iterable[int]) -> None:
        """Delete the cold copies of some shards; shards without one are ignored."""
        gone = [shard for shard in shards if shard in self.copies]
        if not gone:
            return
        files = self._disk()
        unused = self._are_now({n: copy for n, copy in self.copies.items() if n not in gone})
        try:
            for name in unused:
                files.remove(name)
            files.sync()
        except OSError as error:
            raise DiskError(
                f"{files.path('')}: {error.strerror}; some cold copies may remain"
            ) from None

    def tidy(self) -> None:
        """Delete the unfinished cold copies that a crash left behind."""
        if self._files is None:
            return
        for name in self._files.names():
            if _UNFINISHED_NAME.fullmatch(name):
                with contextlib.suppress(OSError):  # retried at the next opening, or next copy
                    self._files.remove(name)

    def check(self) -> None:
        """Read and verify all cold copies; raise DamagedError for the first damaged one.

        A copy that another process forgets meanwhile is ignored.
        """
        for name in self.damaged:
            raise DamagedError(f"{self._disk().path(name)} is damaged: it cannot be read")
        for name in self._names():
            try:
                self._read(name)
            except DiskError:
                if name in self._names():
                    raise

    def _are_now(self, copies: Mapping[int, Cold]) -> set[str]:
        """Replace the copies; return the names of the files that are no longer used."""
        before, self.copies = self.copies, copies
        self.changes += 1
        return {c.file for c in before.values()} - {c.file for c in copies.values()}

    def _disk(self) -> Files:
        if self._files is None:
            raise StoreError("a store in memory keeps no cold copies")
        return self._files

    def _found(self) -> dict[int, Cold]:
        found = dict[int, Cold]()
        for name in self._names():
            try:
                copy, doublings = self._about(self._disk(), name), _number_of(name)[1]
                if doublings <= self._layout.doublings:  # else a crash undid the doubling
                    made_in = self._layout.doubled(doublings)
                    found |= _parts_of([copy], made_in, self._layout)
            except FileNotFoundError:
                continue  # another process, whose files `fsck` reads, forgot the copy meanwhile
            except (DamagedError, OSError):
                self.damaged.append(name)
        return found

    def _names(self) -> list[str]:
        """Return the names of all copies' files, sorted by layout: those of the latest are last."""
        names = [n for n in self._files.names() if _NAME.fullmatch(n)] if self._files else []
        return sorted(names, key=lambda name: _number_of(name)[::-1])

    def _about(self, files: Files, name: str) -> Cold:
        """Read the description of a cold copy from the start of its file."""
        start = files.read(name, _FIRST_READ)
        head = head_of(start[HEADER_SIZE : HEADER_SIZE + HEAD_SIZE])
        if head is not None and HEADER_SIZE + size_of(head.length) > len(start):
            start = files.read(name, HEADER_SIZE + size_of(head.length))
        header = self._header(files, name, start)
        record = header.find(memoryview(start), HEADER_SIZE)
        if record is None or record.kind != _ABOUT:
            raise DamagedError(f"{files.path(name)} is damaged at byte {HEADER_SIZE}")
        try:
            about = msgspec.msgpack.decode(record.payload, type=_About)
        except msgspec.MsgspecError as error:
            raise DamagedError(f"{files.path(name)} is damaged: {fault_of(error)}") from None
        if about.shard != header.number or about.shard >= MOST_SHARDS:
            raise DamagedError(f"{files.path(name)} is damaged: it describes another shard")
        chunks = Applied.from_bytes(about.chunks)
        return Cold(about.shard, chunks, about.connections, about.since, files.size(name), name)

    def _wanted(self, shard: int, doublings: int) -> Header:
        return Header(self._identity, shard, doublings)

    def _header(self, files: Files, name: str, data: bytes) -> Header:
        try:
            found = Header.unpacked(data[:HEADER_SIZE])
        except ValueError as error:
            raise DamagedError(f"{files.path(name)} is damaged at byte 0: {error}") from None
        if found != self._wanted(*_number_of(name)):
            raise DamagedError(f"{files.path(name)} belongs to another store or was renamed")
        return found

    def _records(self, files: Files, name: str, data: bytes) -> list[Record]:
        header, at = self._header(files, name, data), HEADER_SIZE
        found = list(header.records(memoryview(data)))
        at = behind(found[-1]) if found else HEADER_SIZE
        if [record.kind for record in found] != [_ABOUT, Kind.CONTENT, _END] or at != len(data):
            raise DamagedError(f"{files.path(name)} is damaged at byte {at:,}")
        return found

    def _write(
        self, files: Files, name: str, header: Header, records: list[tuple[int, bytes]]
    ) -> int:
        """Write a file, and rename it once it is synced; return its size in bytes.

        A failed write leaves no file behind.
        """
        unfinished = name + _UNFINISHED
        try:
            if unfinished in files.names():
                files.remove(unfinished)
            file = files.create(unfinished)
            try:
                file.write(header.packed())
                for kind, payload in [*records, (_END, b"")]:
                    file.write(*header.record(kind, payload, file.size))
                file.sync()
            finally:
                file.close()
            files.rename(unfinished, name)
            files.sync()
            return files.size(name)
        except BaseException as error:
            with contextlib.suppress(OSError):  # retried by the next copy of this shard, or opening
                files.remove(unfinished)
            if not isinstance(error, OSError):
                raise
            raise DiskError(
                f"{files.path(unfinished)}: {error.strerror}; no cold copy was written"
            ) from None


def name_of(shard: int, doublings: int = 0) -> str:
    """Return the file name of a shard's cold copy, written after this many doublings."""
    return f"cold-{shard:05d}-{doublings}" if doublings else f"cold-{shard:05d}"


def _number_of(name: str) -> tuple[int, int]:
    """Return the shard and the doublings in the file name of a cold copy."""
    shard, doublings = _NAME.fullmatch(name).groups()  # type: ignore[union-attr]
    return int(shard), int(doublings or 0)


def _parts_of(copies: Iterable[Cold], before: Layout, after: Layout) -> dict[int, Cold]:
    """Return the copy for each part into which a later layout divides the copies' shards."""
    times, found = after.shards // before.shards, dict[int, Cold]()
    for copy in copies:
        connections, nbytes = (-(-n // times) for n in (copy.connections, copy.nbytes))
        for shard in range(copy.shard, after.shards, before.shards):
            found[shard] = Cold(shard, copy.chunks, connections, copy.since, nbytes, copy.file)
    return found
