"""The canonical compact encoding of a set of shards.

The first byte selects the form: the gaps between members, the gaps between non-members, or a bitmap
with one bit per shard. A gap is a varint: seven bits per byte, lowest first. Gaps are used only
where they are shorter than the bitmap, so each set has one encoding; any other is refused. The
empty set and the full set take one byte each, a thousand of 65,536 shards take some 1,100 bytes,
and no set takes more than `most_bytes`.
"""

from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from giaann_p2p.errors import MessageError, UsageError
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.layout import Shards, divided

_Bytes = npt.NDArray[np.uint8]
_LONGEST_GAP = 3
_OTHER_FORM = "a set of shards is not in its canonical encoding"


class _Form(IntEnum):
    MEMBERS = 0
    OTHERS = 1
    BITS = 2


def most_bytes(count: int) -> int:
    """Return the maximum length of an encoded subset of `count` shards, in bytes."""
    return 1 + _bits_length(count)


def packed(shards: Shards, count: int) -> bytes:
    """Encode a set of shards, given in ascending order, of a swarm with `count` shards."""
    return _packed_again(shards.astype("<u2", copy=False).tobytes(), count)


@lru_cache(maxsize=1024)  # a peer announces the same sets again and again
def _packed_again(data: bytes, count: int) -> bytes:
    shards = np.frombuffer(data, "<u2")
    if len(shards) and (int(shards[-1]) >= count or not np.all(shards[1:] > shards[:-1])):
        raise UsageError(f"a set of shards must be in ascending order, and below {count}")
    return _packed(_mask_of(shards, count))


@lru_cache(maxsize=128)  # up to 128 KiB each
def unpacked(data: bytes, count: int) -> Shards:
    """Decode a set of shards of a swarm with `count` shards, and return it in ascending order.

    MessageError unless the encoding is canonical.
    """
    if not 1 <= len(data) <= most_bytes(count):
        raise MessageError(f"a set of shards has 1 to {most_bytes(count)} bytes, not {len(data)}")
    form, body = data[0], np.frombuffer(data, np.uint8)[1:]
    if form == _Form.BITS:
        mask = _of_bits(body, count)
        shards, is_canonical = np.flatnonzero(mask), _packed(mask) == data
    elif form == _Form.MEMBERS:
        shards = _of_gaps(body, count)
        is_canonical = 2 * len(shards) <= count and len(body) < _bits_length(count)
    elif form == _Form.OTHERS:
        shards = np.flatnonzero(~_mask_of(_of_gaps(body, count), count))
        is_canonical = 2 * len(shards) > count and len(body) < _bits_length(count)
    else:
        raise MessageError(f"a set of shards has the unknown form {form}")
    if not is_canonical:
        raise MessageError(_OTHER_FORM)
    found: Shards = shards.astype(np.uint16)
    found.flags.writeable = False
    return found


def is_doubled(after: int, before: int) -> bool:
    """Return whether `after` is equal to `before`, or is `before` doubled any number of times."""
    return after >= before and after & (after - 1) == 0


def children(shards: Iterable[int], before: int, after: int) -> list[int]:
    """Return the children of some shards when the swarm's `before` shards become `after` shards."""
    return [child for shard in shards for child in range(shard, after, before)]


def recounted(shards: Shards, before: int, after: int, *, whole: bool = True) -> Shards:
    """Convert a set of shards of a swarm with `before` shards to one with `after`, ascending.

    When the number of shards doubles, shard s of N is divided into its children s and s + N. If
    `after` is the larger number, the result has all children of the shards. If it is the smaller
    one, the result has the shards whose children are all in the set; or, if `whole` is false, those
    of which any child is in the set.
    """
    if after == before:
        return shards
    if after > before:
        return divided(shards, before, after)
    there = np.bincount(shards & (after - 1), minlength=after)  # shape [after]: children of each
    return np.flatnonzero(there >= (before // after if whole else 1)).astype(np.uint16)


def _packed(mask: npt.NDArray[np.bool_]) -> bytes:
    size, length = int(np.count_nonzero(mask)), _bits_length(len(mask))
    form = _Form.MEMBERS if 2 * size <= len(mask) else _Form.OTHERS
    if min(size, len(mask) - size) < length:  # a gap takes a byte or more
        gaps = _gaps(np.flatnonzero(mask ^ bool(form)))
        if len(gaps) < length:
            return bytes([form]) + gaps.tobytes()
    return bytes([_Form.BITS]) + np.packbits(mask, bitorder="little").tobytes()


def _bits_length(count: int) -> int:
    return (count + 7) // 8


def _mask_of(shards: Shards | Ints, count: int) -> npt.NDArray[np.bool_]:
    mask = np.zeros(count, np.bool_)
    mask[shards] = True
    return mask


def _of_bits(body: _Bytes, count: int) -> npt.NDArray[np.bool_]:
    if len(body) != _bits_length(count):
        raise MessageError(
            f"a set of shards has a bitmap of {len(body)} bytes, not {_bits_length(count)}"
        )
    return np.unpackbits(body, bitorder="little")[:count].astype(np.bool_)


def _gaps(shards: Ints) -> _Bytes:
    gaps = np.diff(shards, prepend=-1) - 1
    parts = np.stack([gaps & 127, gaps >> 7 & 127, gaps >> 14], axis=1)  # [gaps, _LONGEST_GAP]
    lengths = 1 + (gaps >= 1 << 7) + (gaps >= 1 << 14)
    place = np.arange(_LONGEST_GAP)
    parts[place < lengths[:, None] - 1] |= 128  # another byte follows
    return parts[place < lengths[:, None]].astype(np.uint8)


def _of_gaps(body: _Bytes, count: int) -> Ints:
    if not len(body):
        return np.zeros(0, np.int64)
    last = np.flatnonzero(body < 128)
    starts = np.concatenate([[0], last + 1])
    lengths = np.diff(starts)
    if starts[-1] != len(body) or lengths.max() > _LONGEST_GAP:
        raise MessageError("a set of shards has gaps that are cut off or too long")
    if np.any((lengths > 1) & (body[last] == 0)):
        raise MessageError(_OTHER_FORM)
    place = np.arange(len(body)) - np.repeat(starts[:-1], lengths)
    gaps = np.add.reduceat((body & 127).astype(np.int64) << 7 * place, starts[:-1])
    shards = np.cumsum(gaps + 1) - 1
    if shards[-1] >= count:
        raise MessageError(f"a set of shards contains shard {shards[-1]}, but there are {count}")
    return shards
