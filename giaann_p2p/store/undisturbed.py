"""Critical sections that Ctrl-C does not interrupt: it takes effect at their end."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def undisturbed() -> Iterator[None]:
    """Defer SIGINT to the end of the block; does nothing outside the main thread.

    No other thread needs it: Python raises KeyboardInterrupt only in the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN):
        yield  # ignored; or None: not set from Python, so it could not be restored
        return
    held: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *arguments: held.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held and callable(before):
            before(*held[0])
