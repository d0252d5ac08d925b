"""p2pd as a child process: starting it, reading its output, ending it.

p2pd ends by itself when this process is gone, even if this process was killed, because then the one
persistent connection between them breaks (see life.py). Before that connection exists, p2pd ends
after `start_within` seconds without one.
"""

import asyncio
import logging
import os
import signal
from collections import deque
from contextlib import suppress
from pathlib import Path

from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.program import DaemonError, known_program

__all__ = ["Daemon", "DaemonError"]
_LOG = logging.getLogger(__name__)
_READY = "Peer ID:"
"""The start of the line that p2pd prints when it is ready."""
_LAST_LINES = 5
"""The number of p2pd's last lines that are kept for error messages."""
_LONGEST_LINE = 1 << 20
"""The most bytes of a line that p2pd prints; longer lines are dropped."""
_END_WITHIN = 1.0
"""The seconds between SIGTERM and SIGKILL."""
_NO_RELAY = '{"Relay": {"Enabled": false}}'
"""The file of settings for a p2pd without relays, because its option -relay=0 has no effect."""
_RELAYED: dict[str, object] = {
    "relayBufferSize": 1 << 15,
    "relayMaxCircuits": 8,
    "relayMaxReservations": 64,
}
"""The limits on relaying for other peers: 64 peers with 8 streams each, and buffers of 32 KiB in
each direction, so 32 MiB in all. p2pd's own default is 16 MiB per stream and direction."""


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
        """The last lines that p2pd has printed, for error messages."""
        return " | ".join(self._said) or "no output"

    @classmethod
    async def start(cls, key_file: Path, socket: Path, config: HostConfig) -> "Daemon":
        """Start p2pd, and return when it is ready; raise DaemonError if it does not start."""
        program = await asyncio.to_thread(known_program)
        command = [str(program), *_options(key_file, socket, config)]
        if not config.uses_relays:
            _write_settings(socket)
        spawning = asyncio.create_task(_spawned(command, config))
        try:
            daemon = cls(await asyncio.shield(spawning))
        except OSError as error:
            raise DaemonError(
                f"p2pd cannot be started: {error}; reinstall hivemind for this machine"
            ) from None
        except asyncio.CancelledError:  # otherwise nobody would end the new process
            await cls(await spawning).stop()
            raise
        try:
            async with asyncio.timeout(config.start_within):
                await daemon._ready
        except TimeoutError:
            await daemon.stop()
            raise DaemonError(
                f"p2pd was not ready in {config.start_within:g} s: {daemon.last_words}; start the"
                " peer again when this machine is less busy"
            ) from None
        except BaseException:
            await daemon.stop()
            raise
        return daemon

    async def ended(self) -> str:
        """Wait for p2pd to end, and return its exit code and last lines as text."""
        code = await self._process.wait()
        return f"p2pd ended with exit code {code}: {self.last_words}"

    async def stop(self) -> None:
        """Terminate p2pd with SIGTERM, then with SIGKILL if it has not ended after a second."""
        self._ready.cancel()
        self._send(signal.SIGTERM)
        try:
            async with asyncio.timeout(_END_WITHIN):
                await self._process.wait()
        except TimeoutError:
            self.kill()
        await self._process.wait()
        await self._listener

    def kill(self) -> None:
        """Kill p2pd with SIGKILL, which works even if p2pd is stopped."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        """Send a signal to p2pd unless it has ended.

        Popen.send_signal would poll the process first, and may so take the exit code away from
        asyncio, which then logs "Unknown child process" and reports an exit code of 255.
        """
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

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
                    f"p2pd ended at once: {self.last_words}; check that the listen addresses"
                    " belong to this machine"
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
    except ValueError:  # the line exceeds the limit and was dropped
        return "(a very long line)"
    return data.decode(errors="replace").rstrip() or ("(an empty line)" if data else "")


def _options(key_file: Path, socket: Path, config: HostConfig) -> list[str]:
    low, high = config.connections
    relays = config.trusted_relays if config.auto_relay and config.uses_relays else ()
    options: dict[str, object] = {
        "listen": f"/unix{socket}",
        "id": key_file,
        "hostAddrs": ",".join(config.listen),
        "announceAddrs": ",".join(config.announce),
        "trustedRelays": ",".join(relays),
        "b": 0,
        "tls": 1,
        "f": "" if config.uses_relays else _settings(socket),
        "relay": int(config.uses_relays),
        "dhtClient": int(bool(relays)),  # p2pd needs a DHT client to keep relays; it answers nobody
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


def _settings(socket: Path) -> Path:
    return socket.with_name("p2pd.json")


def _write_settings(socket: Path) -> None:
    path = _settings(socket)
    try:
        path.write_text(_NO_RELAY)
    except OSError as error:
        raise DaemonError(
            f"p2pd's settings cannot be written to {path}: {error.strerror}; free some space there"
        ) from None


def _environment(config: HostConfig) -> dict[str, str]:
    """Return p2pd's environment variables; the user's own settings take precedence.

    By default p2pd would dial from the port that it listens on (TCP port reuse). Then, when two
    peers dial each other at once, they get one connection with two dialling ends, which fails
    ("noise: message is too short"). And when a peer comes back after its line was cut, it dials
    with the same ports as the dead connection, and fails until the other side gives that one up.
    Only hole punching through NATs, for peers that need relays, requires port reuse.
    """
    ours = {
        "GOGC": str(config.gogc),
        "GOMEMLIMIT": str(config.heap),
        "LIBP2P_TCP_REUSEPORT": str(config.auto_relay).lower(),
    }
    return {**ours, **os.environ, "GOLOG_LOG_LEVEL": "error"}
