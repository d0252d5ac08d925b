"""Whatever its bytes are, a part of the store's is read to what can be written again, or damaged.

Parcels have a file of their own, `test_parcel_hostile.py`.
"""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from giaann_p2p.errors import DamagedError, MessageError, UsageError
from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.codec import parcel, plain, sheaf
from giaann_p2p.store.codec.arrays import pack, unpack
from giaann_p2p.store.content import Content
from giaann_p2p.store.layout import MOST_SHARDS, Layout
from giaann_p2p.store.records import (
    Kind,
    content_record,
    note_record,
    release_record,
    shards_record,
)
from giaann_p2p.store.seal import Seal
from giaann_p2p.store.state import StoreState
from giaann_p2p.store.transfer import Export, Import, Manifest
from giaann_p2p.store.update import cut, update_head, update_of, update_record
from tests import helpers_parcel
from tests.helpers import SMALL, assert_same
from tests.helpers_hostile import few, hostile, peak_of
from tests.helpers_store import JOB, JOBS, lessons
from tests.unit.store.codec import test_plain, test_sheaf

ROW_LIMITS, LIMITS = test_sheaf.LIMITS, helpers_parcel.LIMITS
LAYOUT = Layout(shards=4)
LESSONS = lessons(6, seed=2)
MOST_MEMORY = 4 << 20
"""Bytes that reading some hundreds of bytes may take; these limits allow a tenth of that to be."""

Again = Callable[[Any], bytes]


class Parser(NamedTuple):
    """What reads bytes, and what writes the same again."""

    samples: tuple[bytes, ...]
    read: Callable[[bytes], Any]
    write: Again
    refuses: tuple[type[Exception], ...] = (DamagedError,)
    read_again: Callable[[bytes], Any] | None = None
    """Where what is written is of another form."""


def applied(*sets: tuple[bytes, BitMap]) -> bytes:
    return Applied(dict(sets)).to_bytes()


SETS = (
    applied(),
    applied((JOB, BitMap([1, 5, 1 << 31])), (JOBS[1], BitMap(range(300)))),
    applied((JOB, BitMap([*range(0, 200_000, 3), *range(70_000, 90_000)]))),
)
EXPORT = Export(Content(np.array([3], np.uint16), [Applied.from_bytes(SETS[1])], LESSONS[0].delta))
SEALS = ((), (b"words", b"a shape", b"a branch"), ())
RECORDS = tuple(
    update_record(
        one.update(shards)._replace(seal=Seal(*seal)),
        np.array(shards, np.uint16),
        parcel.encode(one.delta),
        LAYOUT,
    )
    for seal, one, shards in zip(SEALS, LESSONS, ([0, 1, 2, 3], [2], []), strict=False)
)


def rows_of(found: sheaf.SheafRows | plain.PlainRows) -> bytes:
    """Write rows plainly, which refuses again what no rows are."""
    neurons = sorted(found.neurons)
    rows = found.read(Question([Neuron(*neuron) for neuron in neurons]))
    assert all(row is not None for row in rows)
    return plain.encode([row for row in rows if row])


def arrays_again(arrays: list[Any]) -> bytes:
    packed = pack(arrays)
    for one, other in zip(arrays, unpack(packed, 3, 1000), strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
    return packed


def update_again(record: bytes) -> bytes:
    update = update_of(memoryview(record), LIMITS)
    told = update_head(memoryview(record))
    assert (update.job, update.chunk, update.shards.tolist()) == (*told[:2], told[2].tolist())
    return update_record(update, update.shards, update.parcel, LAYOUT)


PARSERS = {
    "arrays": Parser(
        (
            pack([np.arange(99, dtype=t) for t in ("u1", "i8", "u4")]),
            pack([np.zeros(300, "u8"), np.arange(600) ** 3 % 1000, np.empty(0, "i4")]),
        ),
        lambda data: unpack(data, 3, 1000),
        arrays_again,
    ),
    "sheaf": Parser(
        tuple(sheaf.encode(test_sheaf.bound(test_sheaf.drawn(seed)), 3, 4) for seed in (3, 4, 5)),
        partial(sheaf.decode, limits=ROW_LIMITS),
        rows_of,
        read_again=partial(plain.decode, limits=ROW_LIMITS),
    ),
    "plain": Parser(
        tuple(
            plain.encode([test_plain.row_of(seed), test_plain.ROW][: seed + 1]) for seed in range(3)
        ),
        partial(plain.decode, limits=ROW_LIMITS),
        rows_of,
    ),
    "set of chunks": Parser(SETS, Applied.from_bytes, Applied.to_bytes),
    "set of chunks from others": Parser(SETS, Applied.received, Applied.to_bytes, (MessageError,)),
    "manifest of a shard": Parser(
        (EXPORT.manifest.to_bytes(),), Manifest.from_bytes, Manifest.to_bytes
    ),
    "update": Parser(RECORDS, bytes, update_again),
}


def read_or_refused(parser: Parser, data: bytes) -> Any:  # noqa: ANN401
    try:
        found = parser.read(data)
        written = parser.write(found)
    except parser.refuses:
        return None
    assert parser.write((parser.read_again or parser.read)(written)) == written
    return found


@pytest.mark.parametrize("name", PARSERS)
def test_what_is_whole_is_read(name: str) -> None:
    parser = PARSERS[name]
    for data in parser.samples:
        assert read_or_refused(parser, data) is not None


@pytest.mark.parametrize("name", PARSERS)
@given(st.data())
def test_bytes_are_what_can_be_written_again_or_refused(name: str, data: st.DataObject) -> None:
    parser = PARSERS[name]
    read_or_refused(parser, data.draw(hostile(*parser.samples)))


# What is read promises no more than it can hold.

HUGE = (1 << 31) - 1


@pytest.mark.parametrize("name", PARSERS)
@few
@given(st.data())
def test_reading_takes_no_more_memory_than_its_limits_allow(name: str, data: st.DataObject) -> None:
    parser = PARSERS[name]
    drawn = data.draw(hostile(*parser.samples))
    assert peak_of(lambda: read_or_refused(parser, drawn)) < MOST_MEMORY


@given(hostile(*map(bytes, (EXPORT.part(0),))), st.booleans())
def test_parts_of_a_shard_are_what_was_promised_or_refused(part: bytes, promised: bool) -> None:
    """Also where the one who sent them has promised the digest of what is no part."""
    manifest = EXPORT.manifest
    if promised:
        digest = hashlib.blake2b(part, digest_size=16).digest()
        manifest = msgspec.structs.replace(manifest, parts=[digest])
    taken = Import(Manifest.from_bytes(manifest.to_bytes()), LIMITS)
    try:
        taken.take(0, part)
        found = taken.content()
    except DamagedError:
        assert part != EXPORT.part(0)
        return
    assert_same(found.delta, LESSONS[0].delta)
    assert found.applied == [EXPORT.applied]


@given(st.integers(-(1 << 40), 1 << 40), st.integers(-(1 << 20), 1 << 20))
def test_numbers_of_a_manifest_are_those_of_a_shard(connections: int, shard: int) -> None:
    lie = msgspec.structs.replace(EXPORT.manifest, connections=connections, shard=shard)
    try:
        found = Manifest.from_bytes(lie.to_bytes())
    except DamagedError:
        return
    assert 0 <= found.connections <= HUGE
    assert 0 <= found.shard < MOST_SHARDS


# Records whose checksum is right, and which say what can or cannot be.


def taught() -> StoreState:
    state = StoreState(SMALL, LAYOUT)
    for kind, payload in HISTORY:
        state.replay(kind, memoryview(payload))
    return state


HELD = Content(
    np.array([1, 2], np.uint16),
    [Applied.from_bytes(SETS[1]), Applied.from_bytes(SETS[0])],
    cut(LESSONS[1].update(range(4)), np.array([1, 2], np.uint16), LAYOUT).delta,
)
HISTORY: list[tuple[int, bytes]] = [
    (Kind.HOLD, shards_record(range(4))),
    (Kind.NOTE, note_record("word", b"of the caller")),
    (Kind.UPDATE, RECORDS[0]),
    (Kind.CONTENT, content_record(HELD)),
    (Kind.RELEASE, release_record(JOB, BitMap([0, 5]), np.array([0, 3], np.uint16))),
    (Kind.DROP, shards_record([3])),
]
PAYLOADS = [payload for _, payload in HISTORY]


@given(st.sampled_from([*Kind, 7, 255]), hostile(*PAYLOADS))
def test_a_record_says_what_can_be_or_is_refused(kind: int, payload: bytes) -> None:
    state = taught()
    try:
        state.replay(kind, memoryview(payload))
    except (DamagedError, UsageError):
        return
    held = state.content(state.capture(state.shards.tolist()))
    assert set(held.shards.tolist()) <= set(range(LAYOUT.shards))
    assert parcel.decode(parcel.encode(held.delta), state.limits).neurons == held.delta.neurons


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (Kind.RELEASE, msgspec.msgpack.encode([JOB, BitMap([1]).serialize(), [70_000]])),
        (Kind.RELEASE, msgspec.msgpack.encode([JOB, BitMap([1]).serialize(), [-1]])),
        (Kind.DROP, msgspec.msgpack.encode([1 << 40])),
        (Kind.CONTENT, content_record(HELD).replace(b"\x92\x01\x02", b"\x92\x01\xff", 1)),
        (Kind.CONTENT, content_record(HELD).replace(b"\x92\x01\x02", b"\x92\x01\x07", 1)),
        (Kind.NOTE, b"\x92\xa1\xff\xc4\x00"),
        (Kind.NOTE, b"\x93\xa1a\xc4\x00" + b"\x91" * 100_000),
    ],
    ids=["released 70000", "released -1", "dropped", "held -1", "held 7", "no UTF-8", "deep"],
)
def test_a_record_that_once_raised_something_else(kind: int, payload: bytes) -> None:
    assert payload not in PAYLOADS
    with pytest.raises((DamagedError, UsageError)):
        taught().replay(kind, memoryview(payload))
