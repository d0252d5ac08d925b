"""Critical sections that Ctrl-C does not interrupt; it takes effect when the section ends."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def undisturbed() -> Iterator[None]:
    """Defer SIGINT (Ctrl-C) to the end of the block; outside the main thread, do nothing.

    Other threads do not need it, because Python raises KeyboardInterrupt in the main thread only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN):
        yield  # SIGINT is ignored, or (None) its handler is not Python's and cannot be restored
        return
    held: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *arguments: held.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held and callable(before):
            before(*held[0])
