"""Encodes arrays of integers as bytes, each in the smallest of a few simple forms.

An array is first narrowed to the smallest unsigned width that holds its values; its minimum is
subtracted if that makes them narrower. If all values are the same, they are then omitted.
Otherwise they are stored as they are; or byte-shuffled (all first bytes, all second bytes, ...) and
compressed by zstd, if that is smaller. The encoding of an array: one byte with type, width and
form; the number of values; the base; for zstd the number of compressed bytes; the bytes. Numbers
are LEB128.

Equal arrays have equal encodings, as long as zstd is the same version. `unpack` does not trust its
input: it allocates no more memory than it was allowed, and raises DamagedError for anything that
`pack` cannot have written.
"""

import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from giaann_p2p.errors import DamagedError
from giaann_p2p.store.codec.cursor import Cursor, varint

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Array = npt.NDArray[Any]

TYPES = tuple(np.dtype(name) for name in ("u1", "u2", "u4", "u8", "i4", "i8"))
_BOUNDS = {dtype: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) for dtype in TYPES}

_WIDTHS = (1, 2, 4, 8)
_SAME, _PLAIN, _ZSTD = range(3)
_least, _greatest = np.minimum.reduce, np.maximum.reduce  # np.min and np.max only call these
_WORTH_A_TRY = 64
"""The least number of bytes for which zstd is tried; below it, its frame costs more than it saves.
"""

_WINDOW_BITS = 19
"""The binary logarithm of zstd's window in bytes; a frame that requires a larger one is refused."""

_SMALLER: Mapping[int, int] = {
    zstd.CompressionParameter.compression_level: 1,
    zstd.CompressionParameter.window_log: _WINDOW_BITS,
}


class _Own(threading.local):
    """One zstd compressor per thread: creating one takes twenty times as long as using it."""

    def __init__(self) -> None:
        self.compressor = zstd.ZstdCompressor(options=_SMALLER)


_OWN = _Own()
_BOUNDED: Mapping[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_BITS}


def pack(arrays: Sequence[Array]) -> bytes:
    """Encode one-dimensional arrays of integers as bytes, one after the other."""
    return b"".join(_packed(array) for array in arrays)


def unpack(data: bytes | memoryview, arrays: int, most_items: int, start: int = 0) -> list[Array]:
    """Decode the arrays that `pack` encoded, from offset `start` to the end of the data.

    DamagedError unless these are exactly `arrays` arrays, with at most `most_items` values in
    total.
    """
    cursor, found = Cursor(data, start), []
    for _ in range(arrays):
        found.append(_unpacked(cursor, most_items))
        most_items -= len(found[-1])
    cursor.end()
    return found


def _packed(array: Array) -> bytes:
    low, high = (int(_least(array)), int(_greatest(array))) if len(array) else (0, 0)
    width = _width(high - low)
    base = 0 if low != high and low >= 0 and _width(high) == width else low
    form, body = (_SAME, b"") if low == high else _smallest(_narrowed(array, base, width))
    head = bytes([TYPES.index(array.dtype) | width.bit_length() - 1 << 3 | form << 5])
    size = varint(len(body)) if form == _ZSTD else b""
    return head + varint(len(array)) + varint(base % (1 << 64)) + size + body


def _width(span: int) -> int:
    """Return the least width in bytes that holds every number from 0 to `span`."""
    return next(width for width in _WIDTHS if span >> 8 * width == 0)


def _narrowed(array: Array, base: int, width: int) -> Array:
    if base:
        # A difference may wrap around; viewed as unsigned it is right.
        array = (array - array.dtype.type(base)).view(f"u{array.itemsize}")
    return array.astype(f"<u{width}")


def _smallest(array: Array) -> tuple[int, bytes]:
    plain = array.tobytes()
    if len(plain) < _WORTH_A_TRY:
        return _PLAIN, plain
    compressed = _OWN.compressor.compress(_shuffled(array), zstd.ZstdCompressor.FLUSH_FRAME)
    return (_ZSTD, compressed) if len(compressed) < len(plain) else (_PLAIN, plain)


def _shuffled(array: Array) -> bytes:
    return array.view(np.uint8).reshape(-1, array.itemsize).T.tobytes()


def _unpacked(cursor: Cursor, most_items: int) -> Array:
    at, head = cursor.at, cursor.byte()
    number, width, form = head & 7, 1 << (head >> 3 & 3), head >> 5
    if number >= len(TYPES) or form > _ZSTD or width > TYPES[number].itemsize:
        raise DamagedError(f"byte {at} cannot start an array: {head:#04x}")
    dtype, count, base = TYPES[number], cursor.varint(), cursor.varint()
    if count > most_items:
        raise DamagedError(f"the array at byte {at} has {count} values; {most_items} are allowed")
    if dtype.kind == "i" and base >> 63:
        base -= 1 << 64
    narrow = _narrow(cursor, form, count, width)
    _check_range(dtype, base, narrow, at)
    return _widened(narrow, dtype, base, count)


def _narrow(cursor: Cursor, form: int, count: int, width: int) -> Array:
    """Return an array's values relative to its base; empty if all are equal."""
    if form == _SAME:
        return np.empty(0, np.uint8)
    if form == _PLAIN:
        return np.frombuffer(cursor.take(count * width), f"<u{width}")
    at = cursor.at
    shuffled = _decompressed(cursor.take(cursor.varint()), count * width, at)
    columns = np.empty((count, width), np.uint8)
    for i in range(width):
        columns[:, i] = shuffled[i * count : (i + 1) * count]
    return columns.reshape(-1).view(f"<u{width}")


def _decompressed(frame: memoryview, size: int, at: int) -> npt.NDArray[np.uint8]:
    """Decompress one whole zstd frame; DamagedError unless it has exactly `size` bytes.

    `at`: the frame's offset, for the error's message.
    """
    opened = zstd.ZstdDecompressor(options=_BOUNDED)
    try:
        if zstd.get_frame_info(frame).decompressed_size != size:
            raise DamagedError(f"the zstd frame at byte {at} does not have the stated size")
        found = opened.decompress(frame, max_length=size)
    except zstd.ZstdError as error:
        raise DamagedError(f"invalid zstd frame at byte {at}: {error}") from None
    if len(found) != size or not opened.eof or opened.unused_data:
        raise DamagedError(f"the zstd frame at byte {at} does not have the stated size")
    return np.frombuffer(found, np.uint8)


def _check_range(dtype: np.dtype[Any], base: int, narrow: Array, at: int) -> None:
    low, high = _BOUNDS[dtype]
    if low <= base and base + (1 << 8 * narrow.itemsize) <= high:
        return  # any values of this width are in range
    if not low <= base <= base + int(narrow.max(initial=0)) <= high:
        raise DamagedError(f"the array at byte {at} has values out of the range of {dtype}")


def _widened(narrow: Array, dtype: np.dtype[Any], base: int, count: int) -> Array:
    if not len(narrow):
        return np.full(count, base, dtype)
    wide = narrow.astype(dtype)
    if base:
        wide += dtype.type(base)
    return wide
