"""What strangers, torn disks and old backups make of bytes, and what it costs to read that."""

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
"""Numbers at their ends, in either order of bytes."""


few = settings(max_examples=settings().max_examples // 3)
"""For what takes its time; with HYPOTHESIS_PROFILE=soak they are more, too."""


def _place(draw: st.DrawFn, size: int) -> int:
    """Draw a place, any one alike: hypothesis itself would draw the first ones mostly."""
    return draw(st.integers(0, (1 << 16) - 1)) * 40_503 % (1 << 16) * (size + 1) >> 16


@st.composite
def mangled(draw: st.DrawFn, *whole: bytes) -> bytes:
    """Draw what was whole once: flipped, cut, filled up, doubled, put together from two."""
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
    """Draw what was whole once, now and then what never was, and sometimes what still is."""
    return mangled(*whole) | mangled(*whole) | st.binary(max_size=200) | st.sampled_from(whole)


def peak_of(work: Callable[[], object]) -> int:
    """Return how many bytes some work took at its height, more than there were."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
