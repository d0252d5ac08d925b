"""The format of a log file: a header, then records. All numbers are little-endian.

    header   "giaanLOG", format u32, 0 u32, identity 16 bytes, number u64, before u64, checksum u64
    record   "gRc", kind u8, length u32, checksum u64, payload, zeros up to a multiple of 8

The header has the identity of the store, the file's own number, and `before`: the offset at which
the previous file ends. Bytes of the previous file after that offset are ignored. A record's
checksum is seeded with the store's identity, the file's number, the offset, the kind and the
length, so a record is valid only where it was written. One kind of record belongs to the log
itself: the *mark*, which is empty. It is written after a sync, and states that everything before it
is on the disk.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from giaann_p2p.store.disk.files import Data

FORMAT = 1
MARK = 255
"""The kind of a mark; callers may use all smaller kinds for their records."""
MAX_PAYLOAD = (1 << 32) - 1

_FILE_MAGIC, _MAGIC = b"giaanLOG", b"gRc"
_HEADER = struct.Struct("<8sI4x16sQQQ")
_START = struct.Struct("<8sI")
_HEAD = struct.Struct("<3sBIQ")
_SEED = struct.Struct("<16sQQBI")
HEADER_SIZE, HEAD_SIZE = _HEADER.size, _HEAD.size
LEAST_FILE = HEADER_SIZE + HEAD_SIZE
"""The size in bytes of a log file without records: a header and a mark."""
_CHECKSUM = 8
_MARK_START = _HEAD.pack(_MAGIC, MARK, 0, 0)[:-_CHECKSUM]
"""A mark without its checksum: its length is 0."""


class Place(NamedTuple):
    """The position of a record in a log: the number of a file, and the offset in it in bytes."""

    file: int
    offset: int


class Record(NamedTuple):
    """One record of a log: its kind, its payload, and where it is."""

    kind: int
    payload: memoryview
    place: Place


class Head(NamedTuple):
    """The head of a log record, which precedes its payload."""

    kind: int
    length: int
    """The length of the record's payload in bytes."""
    checksum: int


class Header(NamedTuple):
    """The header of a log file."""

    identity: bytes
    number: int
    before: int
    """The offset in bytes at which the previous log file ends."""

    def packed(self) -> bytes:
        """Encode the header, with its checksum."""
        start = _HEADER.pack(_FILE_MAGIC, FORMAT, self.identity, self.number, self.before, 0)
        start = start[:-_CHECKSUM]
        return start + xxh3_64_intdigest(start).to_bytes(_CHECKSUM, "little")

    @classmethod
    def unpacked(cls, data: bytes) -> "Header":
        """Decode the header of a log file; ValueError, with the reason, if it is invalid."""
        if data[: len(_FILE_MAGIC)] != _FILE_MAGIC:
            raise ValueError("it does not begin like a log file")
        if len(data) < HEADER_SIZE:
            raise ValueError("its header is cut off")
        version = _START.unpack_from(data)[1]
        if version != FORMAT:
            raise ValueError(f"it has format {version}; this version reads {FORMAT}")
        *_, identity, number, before, _ = _HEADER.unpack_from(data)
        header = cls(identity, number, before)
        if header.packed() != data[:HEADER_SIZE]:
            raise ValueError("the checksum of its header is wrong")
        return header

    def record(self, kind: int, payload: Data, offset: int) -> tuple[bytes, Data, bytes]:
        """Encode a record for an offset of this file: its head, its payload, and padding."""
        length = memoryview(payload).nbytes
        head = _HEAD.pack(_MAGIC, kind, length, self._checksum(kind, payload, length, offset))
        return head, payload, bytes(-length % 8)

    def find(self, data: memoryview, offset: int, base: int = 0) -> Record | None:
        """Return the record at an offset of this file; None if there is no whole record.

        `base`: the offset in the file at which `data` begins.
        """
        at = offset - base
        head = head_of(data[at : at + HEAD_SIZE])
        if head is None or at + size_of(head.length) > len(data):
            return None
        kind, length, checksum = head
        payload = data[at + HEAD_SIZE : at + HEAD_SIZE + length]
        if checksum != self._checksum(kind, payload, length, offset):
            return None
        return Record(kind, payload, Place(self.number, offset))

    def records(self, data: memoryview, start: int = HEADER_SIZE) -> Iterator[Record]:
        """Iterate over a file's records, including marks, up to the first place without one."""
        while record := self.find(data, start):
            yield record
            start = behind(record)

    def next_record(self, data: bytes, start: int) -> Record | None:
        """Search every offset from `start` on for a whole record of any kind."""
        return self._next(data, start, _MAGIC)

    def next_mark(self, data: bytes, start: int) -> Record | None:
        """Search every offset from `start` on for a mark; takes linear time, whatever the data.

        Only an empty record can be a mark. Otherwise payloads of hostile peers could be full of
        heads that state great lengths, each of which would take a checksum of all these bytes.
        """
        return self._next(data, start, _MARK_START)

    def _next(self, data: bytes, start: int, sought: bytes) -> Record | None:
        view = memoryview(data)
        while (start := data.find(sought, start)) >= 0:
            if record := self.find(view, start):
                return record
            start += 1
        return None

    def _checksum(self, kind: int, payload: Data, length: int, offset: int) -> int:
        place = _SEED.pack(self.identity, self.number, offset, kind, length)
        return xxh3_64_intdigest(payload, xxh3_64_intdigest(place))


def head_of(data: bytes | memoryview) -> Head | None:
    """Decode a record's head, without verifying the checksum; None if the data are not a head."""
    if len(data) < HEAD_SIZE:
        return None
    magic, kind, length, checksum = _HEAD.unpack_from(data)
    return Head(kind, length, checksum) if magic == _MAGIC else None


def size_of(length: int) -> int:
    """Return the size in bytes of a whole record whose payload has this length."""
    return HEAD_SIZE + length + -length % 8


def behind(record: Record) -> int:
    """Return the offset in the log file after a record, where the next record begins."""
    return record.place.offset + size_of(len(record.payload))
