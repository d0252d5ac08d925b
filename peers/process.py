"""How a daemon's process runs: its signals, its state for others to see, its end."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import typer
import uvloop

from giaann_p2p.errors import DiskError
from giaann_p2p.local.status_file import READY, Status, StatusFile
from giaann_p2p.store.memory.heap import give_back, keep_together
from giaann_p2p.terminal import LEFT_BEHIND
from peers.http import HttpServer, Page
from peers.log import log_to_stderr
from peers.options import Options

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LOOK_EVERY = 0.2
_TIDY_EVERY = 60.0
_FIRST_WORD, _WORD_EVERY = 2.0, 60.0
"""Seconds until a daemon that leaves says what it waits for, and says it again."""
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


class Departure(NamedTuple):
    """How long a daemon that is told to leave tries to hand over, and what it says meanwhile."""

    within: float
    """Seconds; 0 for as long as it takes."""
    left: Callable[[], str]
    """What is still to be handed over, and what that waits for."""
    kept: str
    """What becomes of it if it is not."""


def run(main: Coroutine[Any, Any, int], options: Options) -> None:
    """Run a daemon to its end; a signal before it lives cancels it."""
    log_to_stderr(as_json=options.log == "json", level=options.log_level)
    keep_together()

    async def guarded() -> int:
        task = asyncio.ensure_future(main)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        try:
            return await task
        except asyncio.CancelledError:
            LOG.info("ended before it began")
            return 0

    if code := uvloop.run(guarded()):
        raise typer.Exit(code)


async def last(node: Lasting, departure: Departure | None = None) -> int:
    """Run a node to its end, and return the exit code.

    The first signal lets it leave, the second ends it now; so does the end of its departure's time.
    """
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[None]] = []
    codes = [0]

    def second() -> None:
        LOG.info("ending now")
        tasks.append(loop.create_task(node.close()))

    def first() -> None:
        LOG.info("leaving; a second signal ends it at once")
        for number in _SIGNALS:
            loop.add_signal_handler(number, second)
        node.leave()
        if departure is not None:
            tasks.append(loop.create_task(_bounded(node, departure, codes)))

    for number in _SIGNALS:
        loop.add_signal_handler(number, first)
    tasks.append(loop.create_task(_tidying()))
    try:
        await node.run()
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        for task in tasks:
            task.cancel()  # what is to be closed has ended
        await asyncio.gather(*tasks, return_exceptions=True)
    return codes[-1]


async def _tidying() -> None:
    """Give memory that was freed back to the system, now and then: a daemon lives long, and what
    it needed once, for a shard that it sent say, leaves holes of some ten megabytes.
    """
    while True:
        await asyncio.sleep(_TIDY_EVERY)
        await asyncio.to_thread(give_back)


async def _bounded(node: Lasting, departure: Departure, codes: list[int]) -> None:
    """Say now and then why a node is still here; end it when its time is up."""
    try:
        async with asyncio.timeout(departure.within or None) as end:
            await _told(departure, end)
    except TimeoutError:
        codes.append(LEFT_BEHIND)
        LOG.warning(
            "ending after %g s, though %s. %s",
            departure.within,
            departure.left(),
            departure.kept,
        )
        await node.close()


async def _told(departure: Departure, end: asyncio.Timeout) -> None:
    pause = _FIRST_WORD
    while True:
        await asyncio.sleep(pause)
        pause = _WORD_EVERY
        when = end.when()
        now = asyncio.get_running_loop().time()
        long = "as long as it takes" if when is None else f"{max(0, when - now):.0f} s more"
        LOG.info(
            "%s; it waits %s, and a second signal ends it now. %s",
            departure.left(),
            long,
            departure.kept,
        )


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
