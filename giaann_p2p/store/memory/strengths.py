"""The strengths of many connections: a byte for each, and more only for the few unusual ones.

A pair of tokens adds 10 / (distance + 1) to its connection, so most strengths are small multiples
of such an increment. The 255 with the least product of multiple and distance form a table, the same
for all models. A strength in the table is stored as its *code*: its index there. All others have
the code 0; their values are stored one behind another, in the order of the connections.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import Bytes
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.spec import increment

_OTHER = 0
"""The code of strengths that are not in the table."""
_STEP_BITS = 8
_STEP = 1 << _STEP_BITS
_SLOT_BITS = 16
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _usual() -> Ints:
    """Return the strength of each code; 0 for `_OTHER`, because no strength is 0."""
    distances = range(1, 1 << 8)
    pairs = sorted(
        (d * n, n * increment(d)) for d in distances for n in range(1, (1 << 8) // d + 1)
    )
    return np.array([_OTHER, *dict.fromkeys(strength for _, strength in pairs)][: 1 << 8])


def _slots(units: Ints) -> Ints:
    found = units.astype(np.uint64)
    found *= _GOLDEN
    found >>= np.uint64(64 - _SLOT_BITS)
    return found.view(np.int64)


_USUAL = _usual()
_CODES = np.zeros(1 << _SLOT_BITS, np.uint8)
"""A hash table from strengths to codes; `_codes_of` checks what it finds there."""
_CODES[_slots(_USUAL)] = np.arange(len(_USUAL))


def decoded(codes: Bytes, rest: npt.NDArray[Any]) -> Ints:
    """Return the strengths of some codes; `rest`: the strengths whose code is 0, in order."""
    # Numpy looks up one-byte indices slowly; `take` releases the interpreter lock even for a few.
    units: Ints = _USUAL[codes.astype(np.intp)]
    if len(rest):
        units[np.logical_not(codes)] = rest  # where the code is `_OTHER`
    return units


def narrowed(values: Ints) -> npt.NDArray[Any]:
    """Return whole numbers in four bytes each if that is enough for all, else unchanged."""
    bits = int(np.bitwise_or.reduce(values))  # below 0 if one of them is
    return values if bits >> 32 else values.astype(np.uint32)


def _codes_of(units: Ints) -> Bytes:
    """Return the code of each strength; OverflowError if a strength is below 0."""
    if int(units.min(initial=0)) < 0:
        raise OverflowError("a connection's strength exceeds 63 bits")
    codes = _CODES[_slots(units)]
    codes *= (_USUAL.take(codes) == units).view(np.uint8)
    return codes


def _before(others: Ints, size: int) -> npt.NDArray[Any]:
    """Return how many of the ascending indices `others` precede each 256th index."""
    return narrowed(np.searchsorted(others, np.arange(0, size + 1, _STEP)))


class PlainStrengths(NamedTuple):
    """The arrays of strengths as memoryviews."""

    codes: memoryview
    rest: memoryview
    before: memoryview


@dataclass(frozen=True, eq=False)
class Strengths:
    """The strengths of m connections."""

    codes: Bytes
    """Shape [m]: the code of each strength."""
    rest: npt.NDArray[Any]
    """Shape [w]: the strengths with the code 0, in order, in four or eight bytes each."""
    before: npt.NDArray[Any]
    """Shape [m // 256 + 1]: how many values of `rest` precede each 256th connection."""

    @classmethod
    def of(cls, units: Ints) -> "Strengths":
        """Pack strengths; OverflowError if one is below 0, because its sum exceeded 63 bits."""
        codes = _codes_of(units)
        (others,) = np.logical_not(codes).nonzero()
        return cls(codes, narrowed(units[others]), _before(others, len(codes)))

    def woven(self, kept: Ints, at: Ints, more: Ints, added: Ints, new: Ints) -> "Strengths":
        """Return the strengths after a merge: `more` is added at indices `at`, `new` is inserted.

        `kept` and `added` are the positions of the old and the new strengths in the result. Only
        changed and new strengths are looked up in the table.
        """
        (others,) = np.logical_not(self.codes).nonzero()
        codes = self.codes[at]
        is_other = codes == _OTHER
        found = np.searchsorted(others, at[is_other])
        sums = decoded(codes, self.rest[found]) + more
        position, units = np.concatenate([kept[at], added]), np.concatenate([sums, new])
        codes = _codes_of(units)
        whole = np.empty(len(kept) + len(added), np.uint8)
        whole[kept] = self.codes
        whole[position] = codes
        unchanged = np.ones(len(others), np.bool_)
        unchanged[found] = False
        is_other = codes == _OTHER
        others = np.concatenate([kept[others[unchanged]], position[is_other]])
        rest = np.concatenate([self.rest[unchanged], units[is_other]])
        order = others.argsort()
        return Strengths(whole, narrowed(rest[order]), _before(others[order], len(whole)))

    def coded(self, start: int, end: int) -> tuple[bytes, int, int]:
        """Return the codes from index `start` to before `end`, and where their strengths in `rest`
        start and end.
        """
        plain = self.plain
        codes = plain.codes[start:end].tobytes()
        others = codes.count(_OTHER)
        if not others:
            return codes, 0, 0
        first = plain.before[start >> _STEP_BITS]
        first += plain.codes[start & -_STEP : start].tobytes().count(_OTHER)
        return codes, first, first + others

    def units(self, start: int, end: int) -> Ints:
        """Return the strengths from index `start` to before `end`, as 64-bit numbers."""
        codes, first, last = self.coded(start, end)
        return decoded(np.frombuffer(codes, np.uint8), self.rest[first:last])

    @property
    def nbytes(self) -> int:
        """The memory that the strengths take, in bytes."""
        return self.codes.nbytes + self.rest.nbytes + self.before.nbytes

    @cached_property
    def plain(self) -> PlainStrengths:
        """The arrays as memoryviews, which are faster for reading many rows one by one."""
        return PlainStrengths(self.codes.data, self.rest.data, self.before.data)
