"""This peer on the network: its own p2pd, supervised.

1. p2pd is a child process with the peer's own key; its libp2p id is the peer.
2. When it ends, or stops answering, all streams break, `on_death` is called with the reason, and it
   is restarted with the same key and ports, with exponential backoff while that fails. Calls made
   meanwhile fail at once with a ConnectionError.
3. Hooks registered with `each_life` repeat the setup that each start of p2pd requires. If a hook
   fails, that p2pd is killed, too: without the setup this peer would be half on the network for
   good.
4. While it exceeds its limits, strangers are disconnected, then it is restarted (see watchdog.py).
5. `close` leaves no process, socket or task.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from giaann_p2p.backoff import Backoff
from giaann_p2p.errors import GiaannError, UsageError
from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.control import Control
from giaann_p2p.net.hive.daemon import DaemonError
from giaann_p2p.net.hive.daemon_limits import Figures
from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.net.hive.life import STREAMS, Accept, Life
from giaann_p2p.net.hive.peer_id import peer_of_address, way_to
from giaann_p2p.net.hive.pipe import Pipe
from giaann_p2p.net.hive.ports import ports_of, taken
from giaann_p2p.net.hive.process import figures_of
from giaann_p2p.net.hive.runtime import Runtime
from giaann_p2p.swarm.wire.identity import Peer

_LOG = logging.getLogger(__name__)
_SETTLED = 60.0
"""Seconds of uptime after which the end of p2pd resets the restart backoff."""
_PORT_TRIES, _PORT_PAUSE = 20, 0.05
Hook = Callable[[Life], Awaitable[None]]


class Host:
    """A peer's p2pd; made by `start`, in the loop that it is used in."""

    def __init__(
        self, key_file: Path, config: HostConfig, on_death: Callable[[str], None] | None = None
    ) -> None:
        self.config = config
        self.identity = open_key_file(key_file)
        self.me: Peer = self.identity.peer
        self.deaths = 0
        """The number of times that p2pd has ended."""
        self._disconnected = 0  # strangers disconnected in runs of p2pd that are over
        self._known: list[Callable[[Peer], bool]] = []
        self._key_file = key_file
        self._on_death = on_death
        self._runtime = Runtime(config.folder)
        self._life: Life | None = None
        self._last_addresses: tuple[str, ...] = ()
        self._hooks: list[Hook] = []
        self._accept: Accept | None = None
        self._supervisor: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Host {self.identity!r}: {self._life or 'no p2pd now'}>"

    @classmethod
    async def start(
        cls,
        key_file: Path,
        config: HostConfig | None = None,
        on_death: Callable[[str], None] | None = None,
    ) -> "Host":
        """Start p2pd; DaemonError if it cannot be started, UsageError for a wrong key file."""
        host = cls(key_file, config or HostConfig(), on_death)
        try:
            host._life = await host._begin()
        except BaseException:
            host._runtime.close()
            raise
        host._supervisor = asyncio.create_task(host._keep(host._life))
        return host

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses at which others reach this peer, with its /p2p/ part, as far as known."""
        return self._last_addresses if self._life is None else self._life.addresses

    @property
    def control(self) -> Control:
        """The control socket of the running p2pd; ConnectionError while there is none."""
        if self._life is None:
            raise ConnectionRefusedError("p2pd is being started again")
        return self._life.control

    @property
    def pid(self) -> int | None:
        """The process id of p2pd, for monitoring; None while there is none."""
        return None if self._life is None else self._life.daemon.pid

    @property
    def figures(self) -> Figures | None:
        """The resource use of p2pd; None if it cannot be known, or while there is none."""
        return None if self.pid is None else figures_of(self.pid)

    @property
    def disconnected(self) -> int:
        """The number of strangers that were disconnected because p2pd exceeded its limits."""
        now = 0 if self._life is None else self._life.watchdog.disconnected
        return self._disconnected + now

    def know(self, knows: Callable[[Peer], bool]) -> None:
        """Register a predicate of known peers, which are never disconnected as strangers."""
        self._known.append(knows)

    async def each_life(self, hook: Hook) -> None:
        """Run a hook now, and again after each restart of p2pd."""
        self.next_lives(hook)
        if self._life is not None:
            await hook(self._life)

    def next_lives(self, hook: Hook) -> None:
        """Run a hook after each restart of p2pd."""
        self._hooks.append(hook)

    def forget(self, hook: Hook) -> None:
        """Remove a hook."""
        self._hooks.remove(hook)

    def accept(self, accept: Accept | None) -> None:
        """Deliver the streams that others open to a callback from now on; None refuses them."""
        self._accept = accept

    async def connect(self, addresses: Sequence[str], within: float = 5.0) -> list[Peer]:
        """Connect to peers by their addresses, and return the peers that answered.

        UsageError if an address is invalid.
        """
        ways: dict[Peer, list[str]] = {}
        for address in addresses:
            ways.setdefault(peer_of_address(address), []).append(way_to(address))
        ways.pop(self.me, None)
        control = self.control
        tries = [control.connect(peer, found, within) for peer, found in ways.items()]
        ends = await asyncio.gather(*tries, return_exceptions=True)
        for end in ends:
            if end is not None and not isinstance(end, OSError):
                raise end
        return [peer for peer, end in zip(ways, ends, strict=True) if end is None]

    async def open_stream(self, peer: Peer, ways: Sequence[str], within: float) -> Pipe:
        """Open a stream, dialling these ways unless p2pd is connected; OSError if that fails."""
        control = self.control
        if ways:
            await control.connect(peer, ways, within)
        return await control.open_stream(peer, STREAMS, within)

    async def close(self) -> None:
        """End p2pd."""
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.gather(self._supervisor, return_exceptions=True)
        life, self._life = self._life, None
        if life is not None:
            self._last_addresses = life.addresses
            await life.close("this peer is leaving the network")
        self._runtime.close()

    async def _begin(self) -> Life:
        await self._wait_for_ports()
        folder = self._runtime.path
        life = await Life.start(self._key_file, folder, self.config, self._welcome, self._knows)
        try:
            if await life.control.me() != self.me:
                raise UsageError(f"p2pd is not {self.identity}: the key file has changed")
        except OSError as error:
            await life.close("it never began")
            raise DaemonError(f"p2pd has started and does not answer: {error}") from None
        except BaseException:
            await life.close("it never began")
            raise
        self.config = self.config.settled(ports_of(life.addresses))
        return life

    async def _keep(self, life: Life) -> None:
        backoff = usual = Backoff(self.config.again_after, self.config.again_most)
        while True:
            since = time.monotonic()
            why = await life.ended()
            self._life, self._last_addresses = None, life.addresses
            await life.close(why)
            self.deaths += 1
            self._disconnected += life.watchdog.disconnected
            _LOG.warning("%s; it is started again", why)
            if self._on_death is not None:
                self._on_death(why)
            if time.monotonic() - since > _SETTLED:
                backoff = usual
            backoff = backoff.failed()
            life = await self._begin_again(backoff)
            self._life = life
            for hook in list(self._hooks):
                await _done(hook(life), life)

    async def _begin_again(self, backoff: Backoff) -> Life:
        while True:
            await asyncio.sleep(backoff.pause)
            try:
                return await self._begin()
            except (GiaannError, OSError) as error:
                _LOG.warning("%s; trying again", error)
            backoff = backoff.failed()

    async def _wait_for_ports(self) -> None:
        """Wait for a p2pd that is ending to release its ports."""
        for _ in range(_PORT_TRIES):
            if not (address := taken(self.config.listen)):
                return
            await asyncio.sleep(_PORT_PAUSE)
        raise DaemonError(
            f"another process listens at {address} already: end it, or listen at another port"
        )

    def _knows(self, peer: Peer) -> bool:
        return any(knows(peer) for knows in self._known)

    def _welcome(self, peer: Peer, pipe: Pipe) -> None:
        if self._accept is None:
            pipe.abort("nobody takes streams here")
        else:
            self._accept(peer, pipe)


async def _done(work: Awaitable[None], life: Life) -> None:
    try:
        await work
    except (GiaannError, OSError) as error:  # the next run may be better
        _LOG.warning("after p2pd was started again: %s", str(error) or repr(error))
        life.daemon.kill()
