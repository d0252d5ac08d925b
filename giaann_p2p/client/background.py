"""An event loop in a thread of its own, for a main thread that waits for a person."""

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Background:
    """Runs coroutines, one or many, until it is left; what still runs then is cancelled."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._loop = self._runner.get_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="giaann-loop")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._runner.close()

    def run(self, deed: Coroutine[Any, Any, T]) -> T:
        """Wait for what a coroutine comes to; if this is interrupted, it is cancelled first."""
        future = asyncio.run_coroutine_threadsafe(deed, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise
