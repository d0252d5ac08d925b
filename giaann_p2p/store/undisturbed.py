"""Work that Ctrl-C does not cut in two: it waits for the end, and takes effect then."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold SIGINT back. Python raises KeyboardInterrupt in the main thread only, so others pass."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN):
        yield  # None: somebody handles it without Python, and could not be given it back; or nobody
        return
    held: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *arguments: held.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held and callable(before):
            before(*held[0])
