"""Damaged bytes, as from strangers, torn disks and old backups, and the cost of reading them."""

import tracemalloc
from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st

_EXTREMES = [fill * width for width in (1, 2, 4, 8) for fill in (b"\x00", b"\xff", b"\x7f")] + [
    b"\xff\x7f",
    b"\xff\xff\xff\x7f",
    b"\x00\x00\x00\x80",
    b"\x01\x00\x00\x00",
    b"\x00\x00\x00\x01",
]
"""The extremes of integers, in either byte order."""


few = settings(max_examples=settings().max_examples // 3)
"""Settings for slow tests: a third of the examples, also with HYPOTHESIS_PROFILE=soak."""


def _place(draw: st.DrawFn, size: int) -> int:
    """Draw a place, all equally likely: hypothesis itself would mostly draw the first ones."""
    return draw(st.integers(0, (1 << 16) - 1)) * 40_503 % (1 << 16) * (size + 1) >> 16


@st.composite
def mangled(draw: st.DrawFn, *whole: bytes) -> bytes:
    """Draw valid bytes, and damage them: flip, cut, insert, omit, overwrite, splice or double."""
    data = draw(st.sampled_from(whole))
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        at = _place(draw, len(data))
        end = min(len(data), at + draw(st.integers(0, 40)))
        way = draw(
            st.sampled_from(["flip", "cut", "insert", "leave out", "extreme", "splice", "double"])
        )
        if way == "flip" and at < len(data):
            data = data[:at] + bytes([data[at] ^ draw(st.integers(1, 255))]) + data[at + 1 :]
        elif way == "cut":
            data = data[:at]
        elif way == "insert":
            data = data[:at] + draw(st.binary(max_size=9)) + data[at:]
        elif way == "leave out":
            data = data[:at] + data[end:]
        elif way == "extreme":
            number = draw(st.sampled_from(_EXTREMES))
            data = data[:at] + number + data[at + len(number) :]
        elif way == "splice":
            other = draw(st.sampled_from(whole))
            data = data[:at] + other[_place(draw, len(other)) :]
        elif way == "double":
            data = data[:end] + data[at:]
    return data


def hostile(*whole: bytes) -> st.SearchStrategy[bytes]:
    """Draw mostly damaged bytes, sometimes random ones, and sometimes valid ones."""
    return mangled(*whole) | mangled(*whole) | st.binary(max_size=200) | st.sampled_from(whole)


def peak_of(work: Callable[[], object]) -> int:
    """Return the peak memory of some work, in bytes beyond what was in use before."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
