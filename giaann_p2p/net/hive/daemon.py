"""p2pd as a child process: starting it, reading its output, ending it.

p2pd ends by itself when this process is gone, even if this process was killed: the one persistent
connection to it breaks then (see life.py). Until there is one, it ends after `start_within`
seconds.
"""

import asyncio
import logging
import os
from collections import deque
from contextlib import suppress
from pathlib import Path

from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.program import DaemonError, known_program

__all__ = ["Daemon", "DaemonError"]
_LOG = logging.getLogger(__name__)
_READY = "Peer ID:"
_LAST_LINES = 5
_LONGEST_LINE = 1 << 20
_END_WITHIN = 1.0
_RELAYED: dict[str, object] = {
    "relayBufferSize": 1 << 15,
    "relayMaxCircuits": 8,
    "relayMaxReservations": 64,
}
"""The limits on relaying for others: 64 peers, 8 streams of each, 32 KiB each way, 32 MiB in all.
p2pd's own default is 16 MiB per stream and direction."""


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
        """The process id of p2pd."""
        return self._process.pid

    @property
    def last_words(self) -> str:
        """The last lines that p2pd has printed."""
        return " | ".join(self._said) or "it said nothing"

    @classmethod
    async def start(cls, key_file: Path, socket: Path, config: HostConfig) -> "Daemon":
        """Start p2pd, and return when it is ready; DaemonError if it does not start."""
        program = await asyncio.to_thread(known_program)
        command = [str(program), *_options(key_file, socket, config)]
        spawning = asyncio.create_task(_spawned(command, config))
        try:
            daemon = cls(await asyncio.shield(spawning))
        except OSError as error:
            raise DaemonError(
                f"p2pd cannot be started: {error}; install hivemind again, for this machine"
            ) from None
        except asyncio.CancelledError:  # nobody would end a half-made process
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
        """Wait for p2pd to end, and return its exit code and last lines."""
        code = await self._process.wait()
        return f"p2pd ended with {code}: {self.last_words}"

    async def stop(self) -> None:
        """Terminate p2pd; kill it if it has not ended after a second."""
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
        """Kill p2pd, which works even if it was stopped."""
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
        start_new_session=True,  # Ctrl-C is for the peer, which needs p2pd until handover ends
    )


async def _line(output: asyncio.StreamReader) -> str:
    try:
        data = await output.readline()
    except ValueError:  # longer than any line should be; it was dropped
        return "(a very long line)"
    return data.decode(errors="replace").rstrip() or ("(an empty line)" if data else "")


def _options(key_file: Path, socket: Path, config: HostConfig) -> list[str]:
    low, high = config.connections
    relays = config.trusted_relays if config.auto_relay and config.relay else ()
    options: dict[str, object] = {
        "listen": f"/unix{socket}",
        "id": key_file,
        "hostAddrs": ",".join(config.listen),
        "announceAddrs": ",".join(config.announce),
        "trustedRelays": ",".join(relays),
        "b": 0,
        "tls": 1,
        "relay": int(config.relay),
        "dhtClient": int(bool(relays)),  # p2pd keeps no relays without one; it answers nobody
        "autoRelay": int(bool(relays)),
        "relayDiscovery": 0,
        "relayService": int(config.serve_relay),
        **_RELAYED,
        "natPortMap": int(config.uses_nat),
        "autonat": int(config.uses_nat),
        "connManager": 1,
        "connLo": low,
        "connHi": high,
        "connGrace": f"{config.grace:g}s",
        "idleTimeout": f"{config.start_within}s",
    }
    return [f"-{name}={value}" for name, value in options.items() if value != ""]


def _environment(config: HostConfig) -> dict[str, str]:
    """Return p2pd's environment; the user's own settings take precedence.

    By default p2pd would dial from the port that it listens on (TCP port reuse). Then two peers
    that dial each other at once get one connection with two dialling ends, which fails ("noise:
    message is too short"), and a peer that comes back after its line was cut dials over the dead
    connection's very ports, until the other side gives that up. Only hole punching through NATs,
    for peers that need relays, wants it.
    """
    ours = {
        "GOGC": str(config.gogc),
        "GOMEMLIMIT": str(config.heap),
        "LIBP2P_TCP_REUSEPORT": str(config.auto_relay).lower(),
    }
    return {**ours, **os.environ, "GOLOG_LOG_LEVEL": "error"}
