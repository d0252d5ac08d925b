"""One run of p2pd, and everything that ends with it: its sockets, streams and calls."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from giaann_p2p.errors import UsageError
from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.control import Control, opened_by
from giaann_p2p.net.hive.daemon import Daemon, DaemonError
from giaann_p2p.net.hive.peer_id import libp2p_id, peer_of_id
from giaann_p2p.net.hive.pipe import Pipe
from giaann_p2p.net.hive.stream_counts import StreamCounts
from giaann_p2p.net.hive.watchdog import Watchdog
from giaann_p2p.swarm.wire.identity import Peer

if TYPE_CHECKING:  # it imports hivemind
    from giaann_p2p.net.hive.unary import Unary

_LOG = logging.getLogger(__name__)
STREAMS = "/giaann/frames/1"
"""The libp2p protocol name of the streams that peers open to each other."""
_GREET_WITHIN = 5.0
"""The seconds that p2pd has to name the peer that opened a stream."""
Accept = Callable[[Peer, Pipe], None]


class Life:
    """One run of p2pd, from its start to its end."""

    def __init__(
        self,
        daemon: Daemon,
        folder: Path,
        config: HostConfig,
        accept: Accept,
        knows: Callable[[Peer], bool],
    ) -> None:
        self.daemon = daemon
        self.control = Control(_socket(folder))
        self.watchdog = Watchdog(self.control, daemon.pid, config.watch, self._knows)
        self.addresses: tuple[str, ...] = ()
        """The addresses of this peer that p2pd last reported; they may change when the machine
        changes networks."""
        self._folder, self._config = folder, config
        self._unary: Unary | None = None
        self._opening = asyncio.Lock()  # held while `unary` makes the client
        self._accept, self._others_know = accept, knows
        self._openings = StreamCounts()
        self._dropping: set[Peer] = set()
        self._greeting: set[asyncio.Task[None]] = set()
        self._server: asyncio.AbstractServer | None = None
        self._watches: list[asyncio.Task[None]] = []
        self._why = ""

    def __repr__(self) -> str:
        return f"<Life of {self.daemon!r}: {len(self.control.streams)} streams>"

    @classmethod
    async def start(
        cls,
        key_file: Path,
        folder: Path,
        config: HostConfig,
        accept: Accept,
        knows: Callable[[Peer], bool],
    ) -> "Life":
        """Start p2pd with its sockets in a folder; raise DaemonError if that fails.

        `knows` returns whether a peer that this peer has not dialled is known, and so not a
        stranger.
        """
        for left in (_socket(folder), _arrivals(folder)):
            left.unlink(missing_ok=True)  # a killed p2pd leaves its sockets behind
        daemon = await Daemon.start(key_file, _socket(folder), config)
        life = cls(daemon, folder, config, accept, knows)
        try:
            async with asyncio.timeout(config.start_within):
                await life._open()
        except OSError as error:
            await life.close("p2pd could not be set up")
            raise DaemonError(f"p2pd has started but does not answer: {error}") from None
        except BaseException:
            await life.close("p2pd could not be set up")
            raise
        return life

    async def unary(self) -> "Unary":
        """Return hivemind's client of this p2pd, which the first call makes; OSError if it fails.

        It is made late because it imports hivemind, and a peer without a directory needs none.
        """
        from giaann_p2p.net.hive.unary import Unary

        async with self._opening:
            if self._unary is None:
                self._unary = await Unary.open(_socket(self._folder))
            return self._unary

    async def ended(self) -> str:
        """Wait for p2pd to end, and return the reason."""
        why = await self.daemon.ended()
        return self._why or why

    def kill(self, why: str) -> None:
        """Kill p2pd, so that it is restarted; `why` becomes the reason of its end."""
        self._why = self._why or why
        self.daemon.kill()

    async def close(self, why: str) -> None:
        """End p2pd and all its connections; all pending calls fail at once."""
        if self._server is not None:
            self._server.close()
        tasks = [*self._greeting, *self._watches]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.control.close(why)
        if self._unary is not None:
            await self._unary.close()
        await self.daemon.stop()

    async def _open(self) -> None:
        await self.control.hold()
        loop, arrivals = asyncio.get_running_loop(), _arrivals(self._folder)
        self._server = await loop.create_unix_server(self._arrival, str(arrivals))
        await self.control.take_streams(STREAMS, arrivals)
        self.addresses = await self.control.addresses()
        self._watches = [asyncio.create_task(one) for one in (self._check(), self._bound())]

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
            if self._openings.too_many(peer, asyncio.get_running_loop().time()):
                pipe.abort()
                await self._drop(peer)
            else:
                self._accept(peer, pipe)

    async def _drop(self, peer: Peer) -> None:
        """Disconnect a peer that opens too many streams; the peer may connect again."""
        if peer in self._dropping:
            return
        self._dropping.add(peer)
        try:
            await self.control.disconnect([libp2p_id(peer)])
        except OSError as error:
            _LOG.debug("a peer that opens too many streams cannot be disconnected: %s", error)
        finally:
            self._dropping.discard(peer)

    async def _check(self) -> None:
        """Refresh this peer's addresses from p2pd regularly; kill p2pd if it is of no use."""
        while True:
            await asyncio.sleep(self._config.check_every)
            try:
                found = await self.control.addresses(self._config.answer_within)
            except OSError:
                self.kill(f"p2pd did not answer for {self._config.answer_within:g} s")
                return
            except Exception as error:  # noqa: BLE001  (p2pd would not be checked any more)
                self.kill(f"p2pd's answer cannot be read: {error!r}")
                return
            self.addresses = found or self.addresses  # none: between two networks
            if self._unary is not None:
                self._unary.forget_done()
                if self._unary.is_deaf:
                    self.kill("hivemind does not read from p2pd any more")
                    return

    async def _bound(self) -> None:
        """Run the watchdog, and kill p2pd when the watchdog demands a restart."""
        self.kill(await self.watchdog.run())

    def _knows(self, number: bytes) -> bool:
        try:
            peer = peer_of_id(number)
        except UsageError:
            return False
        return self.control.has_dialled(peer) or self._others_know(peer)


class _Arrival(Pipe):
    """A stream that another peer has opened; `greet` is called once p2pd delivers the stream."""

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
