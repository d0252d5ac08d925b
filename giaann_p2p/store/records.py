"""Encodes and decodes the records of logs and snapshots, except updates, which `update` encodes."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Annotated, TypeVar

import msgspec
import numpy as np
from pyroaring import BitMap

from giaann_p2p.errors import DamagedError, UsageError
from giaann_p2p.plain_faults import fault_of
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.codec.parcel import Limits, decode, encode
from giaann_p2p.store.content import Content, by_shard
from giaann_p2p.store.layout import MOST_SHARDS, Layout, Shards

T = TypeVar("T")
HEAD_LENGTH = 4
"""The number of bytes that state the length of the head of a content record."""
_Number = Annotated[int, msgspec.Meta(ge=1, le=MOST_SHARDS)]
_Shard = Annotated[int, msgspec.Meta(ge=0, lt=MOST_SHARDS)]


class Kind(IntEnum):
    """The kinds of records in logs and snapshots; the module `state` lists what each does."""

    HOLD = 1
    DROP = 2
    UPDATE = 3
    CONTENT = 4
    NOTE = 5
    RELEASE = 6
    DOUBLE = 7


class _ContentHead(msgspec.Struct, array_like=True):
    shards: list[_Shard]
    sets: list[bytes]
    which: list[int]
    """For each shard, the index in `sets` of its set of applied chunks."""
    digest: bytes


class _Note(msgspec.Struct, array_like=True):
    key: str
    value: bytes


class _Release(msgspec.Struct, array_like=True):
    job: bytes
    chunks: bytes
    shards: list[_Shard]


def content_record(held: Content) -> bytes:
    """Encode the content of some shards as a record; UsageError if its strengths are too large."""
    sets = list({id(applied): applied for applied in held.applied}.values())
    order = {id(applied): at for at, applied in enumerate(sets)}
    head = msgspec.msgpack.encode(
        _ContentHead(
            held.shards.tolist(),
            [applied.to_bytes() for applied in sets],
            [order[id(applied)] for applied in held.applied],
            held.digest.to_bytes(32, "little"),
        )
    )
    try:
        parcel = held.parcel or encode(held.delta)
    except OverflowError as error:
        raise UsageError(str(error)) from None
    return b"".join([len(head).to_bytes(HEAD_LENGTH, "little"), head, parcel])


def content_records(held: Content, layout: Layout) -> list[bytes]:
    """Encode the content of some shards as one record, or as one for each shard if it is too large.

    Hostile peers can make the strengths of many shards add up to more than one parcel can hold.
    """
    try:
        return [content_record(held)]
    except UsageError:
        if len(held.shards) == 1:
            raise
        return [content_record(one) for one in by_shard(held, layout)]


def content_of(record: memoryview, limits: Limits) -> Content:
    """Decode a record that `content_record` encoded; DamagedError if it is malformed."""
    head, end = _content_head(record)
    sets = [Applied.from_bytes(data) for data in head.sets]
    if len(head.which) != len(head.shards) or not all(0 <= at < len(sets) for at in head.which):
        raise DamagedError("a record lacks the chunks of some of its shards")
    applied = [sets[at] for at in head.which]
    return Content(np.array(head.shards, np.uint16), applied, decode(record[end:], limits))


def shards_in(record: memoryview) -> list[int]:
    """Return the shards whose content a record states; the beginning of the record is enough."""
    return _content_head(record)[0].shards


def promised_digest(record: memoryview) -> int:
    """Return the digest that a record of content states."""
    return int.from_bytes(_content_head(record)[0].digest, "little")


def _content_head(record: memoryview) -> tuple[_ContentHead, int]:
    end = HEAD_LENGTH + int.from_bytes(record[:HEAD_LENGTH], "little")
    return _decoded(record[HEAD_LENGTH:end], _ContentHead), end


def note_record(key: str, value: bytes) -> bytes:
    """Encode a note, a key and its value, as a record."""
    return msgspec.msgpack.encode(_Note(key, value))


def noted(record: memoryview) -> tuple[str, bytes]:
    """Decode a note's key and value from a record that `note_record` encoded."""
    note = _decoded(record, _Note)
    return note.key, note.value


def shards_record(shards: Iterable[int]) -> bytes:
    """Encode the numbers of shards to hold or to drop as a record."""
    return msgspec.msgpack.encode([int(number) for number in shards])


def shards_of(record: memoryview) -> list[int]:
    """Decode shard numbers from a record that `shards_record` encoded."""
    return _decoded(record, list[_Shard])


def double_record(shards: int) -> bytes:
    """Encode the number of shards after a doubling as a record."""
    return msgspec.msgpack.encode(shards)


def doubled_to(record: memoryview) -> int:
    """Decode the number of shards from a record that `double_record` encoded."""
    return _decoded(record, _Number)


def release_record(job: bytes, chunks: BitMap, shards: Shards) -> bytes:
    """Encode the release of some chunks' deltas for some shards as a record."""
    return msgspec.msgpack.encode(_Release(job, chunks.serialize(), shards.tolist()))


def released(record: memoryview) -> tuple[bytes, BitMap, Shards]:
    """Decode job, chunks and shards from a record that `release_record` encoded."""
    found = _decoded(record, _Release)
    try:
        chunks = BitMap.deserialize(found.chunks)
    except (ValueError, IndexError) as error:
        raise DamagedError(f"a record cannot be decoded: {error}") from None
    return found.job, chunks, np.array(found.shards, np.uint16)


def _decoded(data: memoryview, kind: type[T]) -> T:
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedError(f"a record cannot be decoded: {fault_of(error)}") from None
