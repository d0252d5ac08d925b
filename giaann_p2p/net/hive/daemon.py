"""p2pd as a child process: started, listened to, ended.

It ends by itself as soon as this process is gone, even if that was killed: for then the one
persistent connection to it breaks (see life.py); before there is one, after `start_within`.
"""

import asyncio
import logging
import os
from collections import deque
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from giaann_p2p.errors import GiaannError
from giaann_p2p.net.hive.config import HostConfig

_LOG = logging.getLogger(__name__)
_READY = "Peer ID:"
_LAST_LINES = 5
_LONGEST_LINE = 1 << 20
_END_WITHIN = 1.0


class DaemonError(GiaannError):
    """p2pd cannot be started; the message has its own last words."""


class Daemon:
    """One process of p2pd."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._said: deque[str] = deque(maxlen=_LAST_LINES)
        self._ready = asyncio.get_running_loop().create_future()
        self._listener = asyncio.create_task(self._listen())

    def __repr__(self) -> str:
        code = self._process.returncode
        return f"<p2pd {self.pid}: {'runs' if code is None else f'ended with {code}'}>"

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def last_words(self) -> str:
        """What it has printed last."""
        return " | ".join(self._said) or "it said nothing"

    @classmethod
    async def start(cls, key_file: Path, socket: Path, config: HostConfig) -> "Daemon":
        """Start one, and return when it is ready; DaemonError if it does not start."""
        spawning = asyncio.create_task(_spawned(_command(key_file, socket, config), config))
        try:
            daemon = cls(await asyncio.shield(spawning))
        except OSError as error:
            raise DaemonError(
                f"p2pd cannot be started: {error}; install hivemind again, for this machine"
            ) from None
        except asyncio.CancelledError:  # a half-made process would be nobody's
            await cls(await spawning).stop()
            raise
        try:
            async with asyncio.timeout(config.start_within):
                await daemon._ready
        except TimeoutError:
            await daemon.stop()
            raise DaemonError(
                f"p2pd was not ready in {config.start_within:g} s: {daemon.last_words}; on a busy"
                " machine give it more in start_within"
            ) from None
        except BaseException:
            await daemon.stop()
            raise
        return daemon

    async def ended(self) -> str:
        """Wait for its end, and return what is known of it."""
        code = await self._process.wait()
        return f"p2pd ended with {code}: {self.last_words}"

    async def stop(self) -> None:
        """End it; if it does not go, kill it."""
        self._ready.cancel()
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(_END_WITHIN):
                await self._process.wait()
        except TimeoutError:
            self.kill()
        await self._process.wait()
        await self._listener

    def kill(self) -> None:
        """End it at once, even if it was stopped."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def _listen(self) -> None:
        output = self._process.stdout
        while output is not None and (line := await _line(output)):
            _LOG.debug("p2pd: %s", line)
            self._said.append(line)
            if line.startswith(_READY) and not self._ready.done():
                self._ready.set_result(None)
        await self._process.wait()
        if not self._ready.done():
            self._ready.set_exception(
                DaemonError(
                    f"p2pd ended at once: {self.last_words}; see that the listen addresses are of"
                    " this machine"
                )
            )


async def _spawned(command: list[str], config: HostConfig) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=_environment(config),
        limit=_LONGEST_LINE,
        start_new_session=True,  # Ctrl-C is for the peer, which needs it until all is handed over
    )


async def _line(output: asyncio.StreamReader) -> str:
    try:
        data = await output.readline()
    except ValueError:  # longer than any should be; it was dropped
        return "(a very long line)"
    return data.decode(errors="replace").rstrip() or ("(an empty line)" if data else "")


def _command(key_file: Path, socket: Path, config: HostConfig) -> list[str]:
    low, high = config.connections
    options: dict[str, object] = {
        "listen": f"/unix{socket}",
        "id": key_file,
        "hostAddrs": ",".join(config.listen),
        "announceAddrs": ",".join(config.announce),
        "trustedRelays": ",".join(config.trusted_relays),
        "dhtServer": 1,  # who asks p2pd for a peer without an address, is helped by all others
        "b": 0,
        "tls": 1,
        "relay": int(config.relay),
        "autoRelay": int(config.auto_relay),
        "relayService": int(config.serve_relay),
        "natPortMap": int(config.uses_nat),
        "autonat": int(config.uses_nat),
        "connManager": 1,
        "connLo": low,
        "connHi": high,
        "idleTimeout": f"{config.start_within}s",
    }
    program = files("hivemind") / "hivemind_cli" / "p2pd"
    return [str(program), *(f"-{name}={value}" for name, value in options.items() if value != "")]


def _environment(config: HostConfig) -> dict[str, str]:
    """Return what p2pd is to know; what a user has set of it goes before ours.

    p2pd would dial from the port that it listens at. Then two peers that dial each other at once
    get one connection with two dialling ends, which fails ("noise: message is too short"), and a
    peer that comes back after its line was cut dials over the dead connection's very ports, until
    the other side gives that up. Only holes in NATs, for peers that need relays, want it.
    """
    ours = {"GOGC": str(config.gogc), "LIBP2P_TCP_REUSEPORT": str(config.auto_relay).lower()}
    return {**ours, **os.environ, "GOLOG_LOG_LEVEL": "error"}
