"""How a daemon's process runs: its signals, its state for others to see, its end."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec
import uvloop

from giaann_p2p.errors import DiskError
from giaann_p2p.local.status_file import READY, Status, StatusFile
from giaann_p2p.store.memory.heap import keep_together
from peers.http import HttpServer, Page
from peers.log import log_to_stderr
from peers.options import Options

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LOOK_EVERY = 0.2
_RETRY = 10.0
LOG = logging.getLogger("giaann.daemon")


class Lasting(Protocol):
    """What runs until it is asked to leave."""

    async def run(self) -> None:
        """Live, until it has left, or is closed, or fails."""
        ...

    def leave(self) -> None:
        """Hand over what is to be handed over, then end."""
        ...

    async def close(self) -> None:
        """End now."""
        ...


def run(main: Coroutine[Any, Any, None], options: Options) -> None:
    """Run a daemon to its end; a signal before it lives cancels it."""
    log_to_stderr(as_json=options.log == "json", level=options.log_level)
    keep_together()

    async def guarded() -> None:
        task = asyncio.ensure_future(main)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            LOG.info("ended before it began")

    uvloop.run(guarded())


async def last(node: Lasting) -> None:
    """Run a node to its end: the first signal lets it leave, the second ends it now."""
    loop = asyncio.get_running_loop()
    ends: list[asyncio.Task[None]] = []

    def second() -> None:
        LOG.info("ending now")
        ends.append(loop.create_task(node.close()))

    def first() -> None:
        LOG.info("leaving; a second signal ends it at once")
        for number in _SIGNALS:
            loop.add_signal_handler(number, second)
        node.leave()

    for number in _SIGNALS:
        loop.add_signal_handler(number, first)
    try:
        await node.run()
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        await asyncio.gather(*ends, return_exceptions=True)


@asynccontextmanager
async def seen(
    options: Options, status: Callable[[], Status], metrics: Callable[[], Page]
) -> AsyncIterator[None]:
    """Let others see how a daemon is: its status file, and its pages, for as long as this lasts."""
    server, port = HttpServer(_pages(status, metrics)), options.metrics_port
    if port >= 0:
        await server.start("127.0.0.1", port)
        LOG.info("metrics at http://127.0.0.1:%d/metrics", server.port)

    def told() -> Status:
        return msgspec.structs.replace(status(), metrics_port=server.port)

    keeping = None
    if options.status_file:
        keeping = asyncio.create_task(_kept(StatusFile(Path(options.status_file)), told))
    try:
        yield
    finally:
        if keeping is not None:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        await server.close()


def _pages(
    status: Callable[[], Status], metrics: Callable[[], Page]
) -> dict[str, Callable[[], Page]]:
    def ready() -> Page:
        state = status().state
        return Page(200 if state == READY else 503, f"{state}\n".encode())

    return {
        "/healthz": lambda: Page(200, b"ok\n"),
        "/readyz": ready,
        "/metrics": metrics,
    }


async def _kept(file: StatusFile, told: Callable[[], Status]) -> None:
    """Write the status whenever it has changed."""
    last: Status | None = None
    while True:
        if (now := told()) != last:
            try:
                file.write(now)
                last = now
            except DiskError as error:
                LOG.warning("%s", error)
                await asyncio.sleep(_RETRY)
        await asyncio.sleep(_LOOK_EVERY)
