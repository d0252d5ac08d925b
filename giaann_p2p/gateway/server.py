"""Runs a gateway: binds its address, serves, and shuts down gracefully.

After SIGTERM or Ctrl-C it accepts no new connection, disconnects listeners to events, and gives
answers under way some seconds to end. A second signal ends it at once.
"""

import asyncio
import logging
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import uvicorn

from giaann_p2p.errors import UsageError
from giaann_p2p.gateway.app import Gateway
from giaann_p2p.gateway.connection import connection_with

_LOG = logging.getLogger("giaann.gateway")
_MOST_HEAD = 16 << 10
"""Maximum size of a request's head, in bytes."""
_BACKLOG = 512
_OTHER_FILES = 512
"""Files that a gateway may need besides its connections."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; UsageError if that fails."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise UsageError(f"{host} is not an address of this machine: {error.strerror}") from None
    door = socket.socket(family, kind, protocol)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(address)
        door.listen(_BACKLOG)
    except OSError as error:
        door.close()
        why = error.strerror or str(error)
        raise UsageError(
            f"cannot listen at {host}:{port}: {why}; choose another with --listen, 0 for any port"
        ) from None
    door.setblocking(False)
    return door


def address_of(door: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = door.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """uvicorn's server without its signal handlers; it disconnects listeners to shut down."""

    def __init__(self, gateway: Gateway, connections: int = 0) -> None:
        limits = gateway.context.limits
        connections = connections or limits.connections
        super().__init__(
            uvicorn.Config(
                gateway.guard,
                http=connection_with(limits, connections),  # type: ignore[arg-type]
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                h11_max_incomplete_event_size=_MOST_HEAD,
                timeout_graceful_shutdown=max(1, round(limits.drain_seconds)),
            )
        )
        self._gateway = gateway
        self.ready = asyncio.Event()
        """Set once requests are answered."""
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # the guard logs what matters

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers: `run` does."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer requests."""
        await super().startup(sockets)
        self.ready.set()

    def stop(self) -> None:
        """Begin to shut down; the second time, end at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._gateway.drain()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down; disconnect listeners first, because uvicorn would wait for them."""
        self._gateway.drain()
        await self._gateway.feed.end()
        await super().shutdown(sockets)


def cancel_at_signals() -> None:
    """Have signals cancel this task, so that it cleans up, until `run` handles them."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    if task is not None:
        for number in SIGNALS:
            loop.add_signal_handler(number, task.cancel)


async def run(gateway: Gateway, door: socket.socket, tell: Callable[[], None]) -> None:
    """Serve a gateway until a signal ends it; call `tell` once it answers.

    Later signals, while the caller cleans up, have no effect.
    """
    most = allow_files(gateway.context.limits.connections)
    server, loop = Server(gateway, most), asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, _ask, server)
    serving = asyncio.create_task(server.serve(sockets=[door]))
    ready = asyncio.create_task(server.ready.wait())
    await asyncio.wait([serving, ready], return_when=asyncio.FIRST_COMPLETED)
    if not serving.done():
        tell()
    await serving


def allow_files(connections: int) -> int:
    """Raise the limit of open files for `connections`; return how many connections it permits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(1, min(connections, soft - _OTHER_FILES))
    return connections


def _ask(server: Server) -> None:
    if not server.should_exit:
        _LOG.info("shutting down; a second signal ends the gateway at once")
    server.stop()
