"""Arrays as bytes: what comes back, how small it is, and what is refused."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.errors import DamagedError
from giaann_p2p.store.codec.arrays import TYPES, Array, pack, unpack, zstd
from giaann_p2p.store.codec.cursor import Cursor, varint

MIB = 1 << 20
U8_SAME, U8_PLAIN, U8_ZSTD, WIDE_I64_ZSTD = 0, 0x20, 0x40, 0x5D


@st.composite
def arrays(draw: st.DrawFn) -> Array:
    """Draw an array whose values span little or much, anywhere in its type's range."""
    dtype = draw(st.sampled_from(TYPES))
    bounds = np.iinfo(dtype)
    low = draw(st.integers(bounds.min, bounds.max) | st.sampled_from([0, bounds.min]))
    high = min(int(bounds.max), low + draw(st.sampled_from([0, 1, 255, 256, 65536, 1 << 64])))
    few = draw(st.lists(st.integers(low, high) | st.sampled_from([low, high]), max_size=20))
    return np.array(few * draw(st.sampled_from([1, 40])), dtype)


def assert_back(given_arrays: list[Array]) -> None:
    items = sum(map(len, given_arrays))
    found = unpack(pack(given_arrays), len(given_arrays), items)
    for one, two in zip(given_arrays, found, strict=True):
        assert one.dtype == two.dtype
        assert one.tolist() == two.tolist()
        assert two.flags.writeable
        assert two.flags.c_contiguous
    assert pack(found) == pack(given_arrays)


def refused(data: bytes, match: str, count: int = 1, most: int = 1000) -> None:
    with pytest.raises(DamagedError, match=match):
        unpack(data, count, most)


@given(st.lists(arrays(), max_size=4))
def test_arrays_come_back(drawn: list[Array]) -> None:
    assert_back(drawn)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_type_reaches_both_ends_of_its_range(dtype: np.dtype[np.uint64]) -> None:
    bounds = np.iinfo(dtype)
    ends = [bounds.min, bounds.max]
    assert_back([np.array(ends, dtype), np.array(ends[:1], dtype), np.array(ends[1:], dtype)])
    assert_back([np.array(ends * 100, dtype), np.array([], dtype)])


@pytest.mark.parametrize("size", [63, 64, 1 << 17, (1 << 17) + 1, 1 << 20])
def test_sizes_about_the_borders_of_zstd(size: int) -> None:
    noise = np.random.default_rng(1).integers(0, 256, size)
    assert_back([(np.arange(size) % 50).astype(np.uint8), noise.astype(np.uint8)])
    assert_back([noise.astype(np.int64), noise * 1000])


def test_each_array_takes_its_smallest_form() -> None:
    noise = np.random.default_rng(1).integers(0, 256, 10_000)
    assert len(pack([np.full(10_000, -5, np.int64)])) <= 13
    assert len(pack([noise + (1 << 40)])) <= 10_000 + 10  # one byte each, and none lost to zstd
    assert len(pack([noise % 16])) < 5_200
    assert len(pack([np.repeat(noise[:100], 100).astype(np.uint32) << 20])) < 1_000
    assert pack([np.arange(256, dtype=np.int64)])[0] == 0x25  # narrowed to bytes, plain
    assert pack([np.array([1, 2], np.uint8)]) == bytes([U8_PLAIN, 2, 0, 1, 2])  # no base for this


def test_what_is_missing_or_too_much_is_refused() -> None:
    data = pack([np.arange(300, dtype=np.int64), np.arange(5, dtype=np.uint8)])
    for size in range(len(data)):
        refused(data[:size], "byte", 2)
    refused(data + b"\0", r"1 surplus bytes from byte", 2)
    refused(data, "surplus bytes", 1)
    refused(data, "data too short", 3)


def test_more_items_than_allowed_are_refused() -> None:
    data = pack([np.arange(9), np.arange(9)])
    assert len(unpack(data, 2, 18)) == 2
    refused(data, "has 9 values; 8 are allowed", 2, 17)


def test_heads_that_pack_never_writes_are_refused() -> None:
    refused(bytes([6, 0, 0]), "cannot start an array: 0x06")
    refused(bytes([0x60, 0, 0]), "cannot start an array: 0x60")
    refused(bytes([0x80, 0, 0]), "cannot start an array: 0x80")
    refused(bytes([U8_PLAIN | 0x08, 1, 0, 1, 1]), "cannot start an array")  # wider than its type


def test_values_beyond_their_type_are_refused() -> None:
    assert unpack(bytes([U8_PLAIN, 1, 250, 1, 5]), 1, 9)[0].tolist() == [255]
    refused(bytes([U8_PLAIN, 1, 250, 1, 6]), "values out of the range of uint8")
    refused(bytes([U8_SAME, 1, 128, 2]), "values out of the range of uint8")
    minus = varint((1 << 64) - 1)
    assert unpack(bytes([5, 1]) + minus, 1, 9)[0].tolist() == [-1]
    refused(bytes([U8_SAME, 1]) + minus, "values out of the range of uint8")
    refused(bytes([4, 1]) + varint(1 << 31), "values out of the range of int32")


def framed(body: bytes, count: int, head: int = U8_ZSTD) -> bytes:
    return bytes([head]) + varint(count) + b"\0" + varint(len(body)) + body


def unsized(body: bytes) -> bytes:
    plain = {zstd.CompressionParameter.content_size_flag: 0}
    return zstd.compress(body, options=plain)


def test_frames_that_do_not_hold_what_is_told_are_refused() -> None:
    body = zstd.compress(bytes(100))
    assert len(unpack(framed(body, 100), 1, 100)[0]) == 100
    for count in (0, 99, 101):
        refused(framed(body, count), "not have the stated size")
    refused(framed(body + body, 100), "not have the stated size")
    refused(framed(body + b"x", 100), "not have the stated size")
    refused(framed(body[:-1], 100), "not have the stated size")
    refused(framed(unsized(bytes(100)), 100), "not have the stated size")
    summed = zstd.compress(bytes(100), options={zstd.CompressionParameter.checksum_flag: 1})
    refused(framed(summed[:-1], 100), "not have the stated size")  # all its bytes, but not its end
    refused(framed(b"", 100), "invalid zstd frame")
    refused(framed(b"nonsense" * 9, 100), "invalid zstd frame")


def test_a_frame_that_wants_a_large_window_is_refused() -> None:
    far = zstd.compress(bytes(4 * MIB), options={zstd.CompressionParameter.window_log: 21})
    refused(framed(far, 4 * MIB), "invalid zstd frame", most=4 * MIB)


def lying(size: int, told: int) -> bytes:
    """A frame of zeros that tells another size, in four bytes."""
    small = {zstd.CompressionParameter.window_log: 17}
    body = bytearray(zstd.compress(bytes(size), options=small))
    assert body[4] & 0xC0 == 0x80
    at = 5 if body[4] & 0x20 else 6
    body[at : at + 4] = told.to_bytes(4, "little")
    return bytes(body)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(bytes([U8_SAME]) + varint(1 << 60) + b"\0", id="constant"),
        pytest.param(bytes([U8_PLAIN]) + varint(1 << 60) + b"\0", id="plain"),
        pytest.param(bytes([U8_PLAIN]) + varint(1000) + b"\0", id="plain but short"),
        pytest.param(framed(zstd.compress(bytes(64 * MIB)), 1000), id="bomb"),
        pytest.param(framed(lying(64 * MIB, 1000), 1000), id="lying bomb"),
        pytest.param(framed(lying(64 * MIB, 8000), 1000, WIDE_I64_ZSTD), id="too wide"),
        pytest.param(bytes([U8_ZSTD, 9, 0]) + varint(1 << 63), id="long frame"),
    ],
)
def test_what_is_refused_takes_no_memory(data: bytes) -> None:
    tracemalloc.start()
    try:
        refused(data, "byte")
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@given(st.integers(0, (1 << 64) - 1))
def test_numbers_come_back(number: int) -> None:
    cursor = Cursor(varint(number))
    assert cursor.varint() == number
    cursor.end()


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DamagedError, match="at byte 0 has no end"):
        Cursor(b"\xff" * 10 + b"\x01").varint()
    with pytest.raises(DamagedError, match="at byte 0 has more than 64 bits"):
        Cursor(b"\xff" * 9 + b"\x02").varint()
    with pytest.raises(DamagedError, match="needed at byte 1"):
        Cursor(b"\xff").varint()
