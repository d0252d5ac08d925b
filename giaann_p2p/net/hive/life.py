"""One run of p2pd, and all that lasts as long as it does: its socket, its streams, its calls."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from hivemind.p2p import P2P
from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError
from hivemind.utils.multiaddr import Multiaddr

from giaann_p2p.errors import UsageError
from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.control import Control, opened_by
from giaann_p2p.net.hive.daemon import Daemon, DaemonError
from giaann_p2p.net.hive.pipe import Pipe
from giaann_p2p.swarm.identity import Peer

STREAMS = "/giaann/frames/1"
"""What libp2p calls the streams that peers open to each other."""
_GREET_WITHIN = 5.0
Accept = Callable[[Peer, Pipe], None]


class Life:
    """From a start of p2pd to its end."""

    def __init__(self, daemon: Daemon, folder: Path, config: HostConfig, accept: Accept) -> None:
        self.daemon = daemon
        self.control = Control(_socket(folder))
        self.p2p: P2P
        """What hivemind makes unary calls with."""
        self.addresses: tuple[str, ...] = ()
        """Where this peer can be reached, as p2pd has told last; a machine may move."""
        self._config = config
        self._accept = accept
        self._greeting: set[asyncio.Task[None]] = set()
        self._server: asyncio.AbstractServer | None = None
        self._watch: asyncio.Task[None] | None = None
        self._why = ""

    def __repr__(self) -> str:
        return f"<Life of {self.daemon!r}: {len(self.control.streams)} streams>"

    @classmethod
    async def start(
        cls, key_file: Path, folder: Path, config: HostConfig, accept: Accept
    ) -> "Life":
        """Start p2pd, with its sockets in a folder; DaemonError if it cannot be."""
        for left in (_socket(folder), _arrivals(folder)):
            left.unlink(missing_ok=True)  # a p2pd that was killed left its own
        life = cls(await Daemon.start(key_file, _socket(folder), config), folder, config, accept)
        try:
            async with asyncio.timeout(config.start_within):
                await life._open(folder)
        except (OSError, P2PDaemonError, asyncio.IncompleteReadError) as error:
            await life.close("it never began")
            raise DaemonError(f"p2pd has started and does not answer: {error}") from None
        except BaseException:
            await life.close("it never began")
            raise
        return life

    async def ended(self) -> str:
        """Wait for its end, and return why."""
        why = await self.daemon.ended()
        return self._why or why

    async def close(self, why: str) -> None:
        """End all: who waits for anything of it fails at once."""
        if self._watch is not None:
            self._watch.cancel()
        if self._server is not None:
            self._server.close()
        tasks = [*self._greeting, *([self._watch] if self._watch else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.control.close(why)
        if hasattr(self, "p2p"):
            await _close(self.p2p)
        await self.daemon.stop()

    async def _open(self, folder: Path) -> None:
        # p2pd ends when this one breaks; until it has come there is the other bound.
        self.p2p = await P2P.replicate(Multiaddr(f"/unix{_socket(folder)}"))
        loop, arrivals = asyncio.get_running_loop(), _arrivals(folder)
        self._server = await loop.create_unix_server(self._arrival, str(arrivals))
        await self.control.take_streams(STREAMS, arrivals)
        self.addresses = await self.control.addresses()
        self._watch = asyncio.create_task(self._check())

    def _arrival(self) -> Pipe:
        return _Arrival(self.control.streams, self._greet)

    def _greet(self, pipe: Pipe) -> None:
        task = asyncio.create_task(self._welcome(pipe))
        self._greeting.add(task)
        task.add_done_callback(self._greeting.discard)

    async def _welcome(self, pipe: Pipe) -> None:
        try:
            peer, _ = await opened_by(pipe, _GREET_WITHIN)
        except (OSError, UsageError):
            pipe.abort()
        except asyncio.CancelledError:
            pipe.abort()
            raise
        else:
            self._accept(peer, pipe)

    async def _check(self) -> None:
        """Ask p2pd where it is; kill it if it answers no more: it was stopped, or hangs."""
        while True:
            await asyncio.sleep(self._config.check_every)
            try:
                found = await self.control.addresses(self._config.answer_within)
            except OSError:
                self._why = f"p2pd did not answer for {self._config.answer_within:g} s"
                self.daemon.kill()
                return
            self.addresses = found or self.addresses  # none: between two networks
            _forget_done(self.p2p)


class _Arrival(Pipe):
    """A stream that another peer has opened."""

    def __init__(self, among: set[Pipe], greet: Callable[[Pipe], None]) -> None:
        super().__init__(among)
        self._greet = greet

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._greet(self)


def _socket(folder: Path) -> Path:
    return folder / "p2pd.sock"


def _arrivals(folder: Path) -> Path:
    return folder / "streams.sock"


async def _close(p2p: P2P) -> None:
    """Close hivemind's connection to p2pd, and see to the tasks that it lets fall."""
    control = p2p._client.control
    handling = list(control._handler_tasks.values())
    await p2p.shutdown()
    for task in handling:
        task.cancel()
    tasks = [control._read_task, control._write_task, *handling]
    await asyncio.gather(*tasks, return_exceptions=True)


def _forget_done(p2p: P2P) -> None:
    """Forget calls that others have cancelled: hivemind keeps them for ever."""
    tasks = p2p._client.control._handler_tasks
    for number in [number for number, task in tasks.items() if task.done()]:
        del tasks[number]
