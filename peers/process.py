"""A daemon's process: its signals, its status file and HTTP pages, and its end."""

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
from giaann_p2p.exit_codes import LEFT_BEHIND
from giaann_p2p.local.status_file import READY, Status, StatusFile
from giaann_p2p.store.memory.heap import give_back, keep_together
from giaann_p2p.swarm.members.departure import Decision
from peers.http import HttpServer, Page
from peers.log import log_to_stderr
from peers.options import Options

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LOOK_EVERY = 0.2
"""Seconds between two checks of the status, or of a handover's progress."""
_TIDY_EVERY = 60.0
"""Seconds between two returns of freed memory to the system."""
_FIRST_WORD, _WORD_EVERY = 2.0, 60.0
"""Seconds until a leaving daemon first logs what it waits for, and seconds between repetitions."""
_RETRY = 10.0
"""Seconds until a status file that could not be written is tried again."""
LOG = logging.getLogger("giaann.daemon")


class Lasting(Protocol):
    """A node that runs until it is asked to leave."""

    async def run(self) -> None:
        """Run the node until it has left, is closed, or fails."""
        ...

    def leave(self) -> None:
        """Start to leave: hand over what other peers need, then end."""
        ...

    async def close(self) -> None:
        """End the node now, without a handover."""
        ...


class Departure(NamedTuple):
    """The time limit of a leaving daemon's handover, and its reports meanwhile."""

    within: float
    """Time limit of the handover, in seconds; 0 means no limit."""
    left: Callable[[], str]
    """Returns a phrase that says what is not handed over yet, and what prevents that."""
    kept: Callable[[], str]
    """Returns a sentence that says what happens to shards that are not handed over."""
    decided: Callable[[], Decision]
    """Returns whether the daemon keeps waiting for its handover, or leaves."""
    go: Callable[[], None]
    """Ends a daemon that has nothing to hand over."""


def run(main: Coroutine[Any, Any, int], options: Options) -> None:
    """Run a daemon to its end; a signal that arrives before its node runs cancels it."""
    log_to_stderr(as_json=options.log == "json", level=options.log_level)
    keep_together()

    async def guarded() -> int:
        task = asyncio.ensure_future(main)
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, task.cancel)
        try:
            return await task
        except asyncio.CancelledError:
            LOG.info("ended by a signal before it had started")
            return 0

    if code := uvloop.run(guarded()):
        raise typer.Exit(code)


async def last(node: Lasting, departure: Departure | None = None) -> int:
    """Run a node to its end, and return the daemon's exit code.

    The first signal asks the node to leave. A second signal ends it, and so does the time limit. A
    signal after the node's end, while the daemon tidies up, is only logged: otherwise it would end
    the process with a traceback. The next signal ends the process.
    """
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[None]] = []
    codes = [0]

    def second() -> None:
        LOG.info("ending now")
        tasks.append(loop.create_task(node.close()))

    def first() -> None:
        LOG.info("leaving; a second signal ends this peer at once")
        for number in _SIGNALS:
            loop.add_signal_handler(number, second)
        node.leave()
        if departure is not None:
            tasks.append(loop.create_task(_bounded(node, departure, codes)))

    def too_late() -> None:
        LOG.info("ending already; a further signal ends this peer before it has tidied up")
        for number in _SIGNALS:
            loop.remove_signal_handler(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, first)
    tasks.append(loop.create_task(_tidying()))
    try:
        await node.run()
    finally:
        for number in _SIGNALS:
            loop.add_signal_handler(number, too_late)
        for task in tasks:
            task.cancel()  # the node has ended, so nothing is left to close
        await asyncio.gather(*tasks, return_exceptions=True)
    return codes[-1]


async def _tidying() -> None:
    """Give freed memory back to the system every minute, until cancelled.

    Otherwise memory that a long-running daemon needed once, for example to send a shard, would stay
    with the process: some ten megabytes.
    """
    while True:
        await asyncio.sleep(_TIDY_EVERY)
        await asyncio.to_thread(give_back)


async def _bounded(node: Lasting, departure: Departure, codes: list[int]) -> None:
    """Log why a leaving node still runs; end it when waiting cannot help, or at the time limit."""
    try:
        async with asyncio.timeout(departure.within or None) as end:
            if await _waited(departure, end) is Decision.LEAVE:
                departure.go()
                return
        LOG.warning("leaving now: %s. %s", departure.left(), departure.kept())
    except TimeoutError:
        words = departure.left(), departure.kept()
        LOG.warning("ending after %g s, though %s. %s", departure.within, *words)
    codes.append(LEFT_BEHIND)
    await node.close()


async def _waited(departure: Departure, end: asyncio.Timeout) -> Decision:
    """Log every minute what the node waits for; return the decision that ends the wait."""
    clock = asyncio.get_running_loop().time
    due = clock() + _FIRST_WORD
    while (decision := departure.decided()) is Decision.WAIT:
        if (now := clock()) >= due:
            due = now + _WORD_EVERY
            when = end.when()
            long = "as long as it takes" if when is None else f"{max(0, when - now):.0f} s more"
            ends = "a second signal ends it now"
            words = departure.left(), long, ends, departure.kept()
            LOG.info("%s; this peer waits %s, and %s. %s", *words)
        await asyncio.sleep(min(_LOOK_EVERY, due - now))
    return decision


@asynccontextmanager
async def seen(
    options: Options, status: Callable[[], Status], metrics: Callable[[], Page]
) -> AsyncIterator[None]:
    """Publish a daemon's state while the context lasts: its status file and its HTTP pages."""
    server, port = HttpServer(_pages(status, metrics)), options.metrics_port
    if port >= 0:
        await server.start("127.0.0.1", port)
        LOG.info("metrics at http://127.0.0.1:%d/metrics", server.port)

    def current() -> Status:
        return msgspec.structs.replace(status(), metrics_port=server.port)

    keeping = None
    if options.status_file:
        keeping = asyncio.create_task(_kept(StatusFile(Path(options.status_file)), current))
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
        found = status()
        said = f"{found.state}; {found.note}" if found.note else found.state
        return Page(200 if found.state == READY else 503, f"{said}\n".encode())

    return {
        "/healthz": lambda: Page(200, b"ok\n"),
        "/readyz": ready,
        "/metrics": metrics,
    }


async def _kept(file: StatusFile, status: Callable[[], Status]) -> None:
    """Write the status file whenever the daemon's status changes; retry 10 s after a disk error."""
    last: Status | None = None
    while True:
        if (now := status()) != last:
            try:
                file.write(now)
                last = now
            except DiskError as error:
                LOG.warning("%s", error)
                await asyncio.sleep(_RETRY)
        await asyncio.sleep(_LOOK_EVERY)
