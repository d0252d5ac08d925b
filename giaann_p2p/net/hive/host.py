"""This peer on the network: its own p2pd process, under supervision.

1. p2pd is a child process that uses the peer's own key, so its libp2p id names the peer.
2. When p2pd ends or stops answering, all streams break, `on_death` is called with the reason, and
   p2pd is restarted with the same key and ports, with exponential backoff while that fails. Calls
   made meanwhile fail at once with a ConnectionError.
3. Hooks registered with `each_life` repeat the setup that every start of p2pd requires. If a hook
   fails, that p2pd is killed as well: without the setup this peer would stay half on the network.
4. While p2pd exceeds its limits, strangers are disconnected; if that does not help, p2pd is
   restarted (see watchdog.py).
5. A p2pd that was started without relays is restarted with them before an address of a relay is
   dialled for the first time.
6. `close` leaves no process, socket or task.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

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
"""The seconds of uptime after which an end of p2pd resets the backoff before restarts."""
_PORT_TRIES, _PORT_PAUSE = 20, 0.05
"""How often listen ports in use are checked again, and the seconds between two checks."""
_CIRCUIT = "/p2p-circuit"
"""The part of an address that leads through a relay."""
Hook = Callable[[Life], Awaitable[None]]


class Host:
    """A peer's p2pd under supervision; made by `start`, in the event loop that uses it."""

    def __init__(
        self, key_file: Path, config: HostConfig, on_death: Callable[[str], None] | None = None
    ) -> None:
        self.config = config
        self.identity = open_key_file(key_file)
        self.me: Peer = self.identity.peer
        self.deaths = 0
        """The number of times that p2pd has ended on its own or was killed."""
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
        self.is_up = True
        """Whether p2pd runs and, after a restart, all hooks have run: others can reach this peer.
        """
        self._is_able = asyncio.Event()  # unset while p2pd is being restarted with relays
        self._is_able.set()

    def __repr__(self) -> str:
        return f"<Host {self.identity!r}: {self._life or 'no p2pd now'}>"

    @classmethod
    async def start(
        cls,
        key_file: Path,
        config: HostConfig | None = None,
        on_death: Callable[[str], None] | None = None,
    ) -> "Host":
        """Start p2pd; raise DaemonError if that fails, and UsageError for a wrong key file."""
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
        """The known addresses at which others reach this peer, each with its /p2p/ part."""
        return self._last_addresses if self._life is None else self._life.addresses

    @property
    def control(self) -> Control:
        """The control socket of the running p2pd; raises ConnectionError while none runs."""
        if self._life is None:
            raise ConnectionRefusedError("p2pd is being restarted; try again")
        return self._life.control

    @property
    def pid(self) -> int | None:
        """The process id of p2pd, for monitoring; None while none runs."""
        return None if self._life is None else self._life.daemon.pid

    @property
    def figures(self) -> Figures | None:
        """The resource use of p2pd; None if it cannot be read, or while no p2pd runs."""
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
        """Run a hook after each restart of p2pd, but not now."""
        self._hooks.append(hook)

    def forget(self, hook: Hook) -> None:
        """Unregister a hook, so that it no longer runs after restarts of p2pd."""
        self._hooks.remove(hook)

    def accept(self, accept: Accept | None) -> None:
        """Pass each stream that a peer opens to a callback from now on; None refuses streams."""
        self._accept = accept

    async def connect(self, addresses: Sequence[str], within: float = 5.0) -> list[Peer]:
        """Connect to peers by their addresses, and return the peers that answered.

        Raises UsageError if an address is invalid.
        """
        ways: dict[Peer, list[str]] = {}
        for address in addresses:
            ways.setdefault(peer_of_address(address), []).append(way_to(address))
        ways.pop(self.me, None)
        await self._enable_relays([way for found in ways.values() for way in found])
        control = self.control
        tries = [control.connect(peer, found, within) for peer, found in ways.items()]
        ends = await asyncio.gather(*tries, return_exceptions=True)
        for end in ends:
            if end is not None and not isinstance(end, OSError):
                raise end
        return [peer for peer, end in zip(ways, ends, strict=True) if end is None]

    async def open_stream(self, peer: Peer, ways: Sequence[str], within: float) -> Pipe:
        """Open a stream; dial `ways` unless p2pd is connected; raise OSError if that fails."""
        await self._enable_relays(ways)
        control = self.control
        if ways:
            await control.connect(peer, ways, within)
        return await control.open_stream(peer, STREAMS, within)

    async def _enable_relays(self, ways: Sequence[str]) -> None:
        """If an address leads through a relay, wait until p2pd has been restarted with relays."""
        if not any(_CIRCUIT in way for way in ways):
            return
        if not self.config.uses_relays and self._life is not None:
            self.config = msgspec.structs.replace(self.config, relay=True)
            self._is_able.clear()
            self._life.kill("p2pd needs relays to reach a peer")
        async with asyncio.timeout(self.config.start_within):
            await self._is_able.wait()

    async def close(self) -> None:
        """End p2pd and its supervision, and remove its sockets."""
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
                raise UsageError(
                    f"p2pd runs as another peer than {self.identity}: the key file has changed;"
                    " restore it"
                )
        except OSError as error:
            await life.close("p2pd could not be set up")
            raise DaemonError(f"p2pd has started but does not answer: {error}") from None
        except BaseException:
            await life.close("p2pd could not be set up")
            raise
        self.config = self.config.settled(ports_of(life.addresses))
        return life

    async def _keep(self, life: Life) -> None:
        backoff = usual = Backoff(self.config.again_after, self.config.again_most)
        while True:
            since = time.monotonic()
            why = await life.ended()
            self._life, self._last_addresses, self.is_up = None, life.addresses, False
            await life.close(why)
            self.deaths += 1
            self._disconnected += life.watchdog.disconnected
            _LOG.warning("%s; restarting it", why)
            if self._on_death is not None:
                self._on_death(why)
            if time.monotonic() - since > _SETTLED:
                backoff = usual
            backoff = backoff.failed()
            life = await self._begin_again(backoff)
            self._life = life
            done = [await _done(hook(life), life) for hook in list(self._hooks)]
            self.is_up = all(done)
            self._is_able.set()

    async def _begin_again(self, backoff: Backoff) -> Life:
        while True:
            await asyncio.sleep(backoff.pause)
            try:
                return await self._begin()
            except (GiaannError, OSError) as error:
                _LOG.warning("%s; trying again", error)
            except Exception:  # noqa: BLE001  (else this peer would stay unreachable for good)
                _LOG.exception("p2pd could not be restarted; trying again")
            backoff = backoff.failed()

    async def _wait_for_ports(self) -> None:
        """Wait for an earlier p2pd to free the listen ports; raise DaemonError if it does not."""
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
            pipe.abort("this peer takes no streams")
        else:
            self._accept(peer, pipe)


async def _done(work: Awaitable[None], life: Life) -> bool:
    try:
        await work
    except (GiaannError, OSError) as error:  # the next run may be better
        _LOG.warning(
            "the setup after a restart of p2pd failed, restarting it again: %s",
            str(error) or repr(error),
        )
    except Exception:  # noqa: BLE001  (else no p2pd would be started any more)
        _LOG.exception("the setup after a restart of p2pd failed, restarting it again")
    else:
        return True
    life.daemon.kill()
    return False
