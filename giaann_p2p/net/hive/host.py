"""This peer on the network: a p2pd of its own, kept running.

1. p2pd is a child process with the peer's own key; its id is the peer.
2. When it ends, or answers no more, all streams break, `on_death` is told why, and it is started
   again: with the same key and ports, after a pause that grows while it fails. Whatever is asked
   meanwhile fails at once, with a ConnectionError.
3. What must be set up anew in each of its lives is done by those that `each_life` has named. Where
   that fails, that life is ended, too: without it this peer would be half on the network for good.
4. `close` leaves no process, socket or task.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from giaann_p2p.errors import GiaannError, UsageError
from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.control import Control
from giaann_p2p.net.hive.daemon import DaemonError
from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.net.hive.life import STREAMS, Accept, Life
from giaann_p2p.net.hive.peer_id import peer_of_address, way_to
from giaann_p2p.net.hive.pipe import Pipe
from giaann_p2p.net.hive.ports import ports_of, taken
from giaann_p2p.net.hive.runtime import Runtime
from giaann_p2p.swarm.identity import Peer

_LOG = logging.getLogger(__name__)
_SETTLED = 60.0
"""Seconds after which a p2pd that ends has not failed to start."""
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
        """How often p2pd has ended."""
        self._key_file = key_file
        self._on_death = on_death
        self._runtime = Runtime(config.folder)
        self._life: Life | None = None
        self._last_addresses: tuple[str, ...] = ()
        self._hooks: list[Hook] = []
        self._accept: Accept | None = None
        self._keeper: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Host {self.identity!r}: {self._life or 'no p2pd now'}>"

    @classmethod
    async def start(
        cls,
        key_file: Path,
        config: HostConfig | None = None,
        on_death: Callable[[str], None] | None = None,
    ) -> "Host":
        """Start p2pd; DaemonError if it cannot be started, UsageError for a wrong file."""
        host = cls(key_file, config or HostConfig(), on_death)
        try:
            host._life = await host._begin()
        except BaseException:
            host._runtime.close()
            raise
        host._keeper = asyncio.create_task(host._keep(host._life))
        return host

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where others reach this peer, with its /p2p/ part, as far as is known by now."""
        return self._last_addresses if self._life is None else self._life.addresses

    @property
    def control(self) -> Control:
        """What p2pd can be told now; ConnectionError while there is none."""
        if self._life is None:
            raise ConnectionRefusedError("p2pd is being started again")
        return self._life.control

    @property
    def pid(self) -> int | None:
        """The process of p2pd, for who watches it."""
        return None if self._life is None else self._life.daemon.pid

    async def each_life(self, hook: Hook) -> None:
        """Do something now, and again in each further life of p2pd."""
        self.next_lives(hook)
        if self._life is not None:
            await hook(self._life)

    def next_lives(self, hook: Hook) -> None:
        """Do something in each further life of p2pd."""
        self._hooks.append(hook)

    def forget(self, hook: Hook) -> None:
        """Do it no more."""
        self._hooks.remove(hook)

    def accept(self, accept: Accept | None) -> None:
        """Hand over the streams that others open, from now on; with None refuse them."""
        self._accept = accept

    async def connect(self, addresses: Sequence[str], within: float = 5.0) -> list[Peer]:
        """Connect to peers by their addresses, and return those that answered.

        UsageError if an address is none.
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
        """Open a stream; by these ways, unless p2pd is connected. OSError if it cannot be."""
        control = self.control
        if ways:
            await control.connect(peer, ways, within)
        return await control.open_stream(peer, STREAMS, within)

    async def close(self) -> None:
        """End p2pd."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        life, self._life = self._life, None
        if life is not None:
            self._last_addresses = life.addresses
            await life.close("this peer is leaving the network")
        self._runtime.close()

    async def _begin(self) -> Life:
        await self._wait_for_ports()
        life = await Life.start(self._key_file, self._runtime.path, self.config, self._welcome)
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
        pause = self.config.again_after
        while True:
            since = time.monotonic()
            why = await life.ended()
            self._life, self._last_addresses = None, life.addresses
            await life.close(why)
            self.deaths += 1
            _LOG.warning("%s; it is started again", why)
            if self._on_death is not None:
                self._on_death(why)
            if time.monotonic() - since > _SETTLED:
                pause = self.config.again_after
            life = await self._begin_again(pause)
            pause = min(2 * pause, self.config.again_most)
            self._life = life
            for hook in list(self._hooks):
                await _done(hook(life), life)

    async def _begin_again(self, pause: float) -> Life:
        while True:
            await asyncio.sleep(pause)
            try:
                return await self._begin()
            except (GiaannError, OSError) as error:
                _LOG.warning("%s; trying again", error)
            pause = min(2 * pause, self.config.again_most)

    async def _wait_for_ports(self) -> None:
        """Wait for ports that a p2pd which is ending still has."""
        for _ in range(_PORT_TRIES):
            if not (address := taken(self.config.listen)):
                return
            await asyncio.sleep(_PORT_PAUSE)
        raise DaemonError(
            f"another process listens at {address} already: end it, or listen at another port"
        )

    def _welcome(self, peer: Peer, pipe: Pipe) -> None:
        if self._accept is None:
            pipe.abort("nobody takes streams here")
        else:
            self._accept(peer, pipe)


async def _done(work: Awaitable[None], life: Life) -> None:
    try:
        await work
    except (GiaannError, OSError) as error:  # the next life may be better
        _LOG.warning("after p2pd was started again: %s", str(error) or repr(error))
        life.daemon.kill()
