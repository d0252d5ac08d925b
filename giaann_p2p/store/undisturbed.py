"""Critical sections that Ctrl-C does not interrupt; it takes effect when the section ends."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class _Held:
    """The handler of SIGINT in a section: it keeps the signals for the section's end."""

    def __init__(self) -> None:
        self.arguments: list[tuple[int, FrameType | None]] = []

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.arguments.append((number, frame))


@contextmanager
def undisturbed() -> Iterator[None]:
    """Defer SIGINT (Ctrl-C) to the end of the block; outside the main thread, do nothing.

    Other threads do not need it, because Python raises KeyboardInterrupt in the main thread only.
    A section within another one leaves the signals to the outer section.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN) or isinstance(before, _Held):
        yield  # SIGINT is ignored, or (None) its handler is not Python's and cannot be restored
        return
    held = _Held()
    signal.signal(signal.SIGINT, held)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held.arguments and callable(before):
            before(*held.arguments[0])
