"""Daemons as they are, each behind a relay: others are told the relay's address alone.

So whatever peers send each other is under way for a while. Each is an entry for a local swarm.
"""

import os
import socket
from collections.abc import Callable, Sequence

from bootstrap import daemon as bootstrap_daemon
from peers.compute import daemon as compute_daemon
from peers.storage import daemon as storage_daemon
from tests.benchmarks.swarm.relay import be_relay

DELAY = "GIAANN_BENCHMARK_DELAY"
"""A variable: seconds that all bytes are under way."""
_LOOPBACK = "127.0.0.1"
ENTRIES = {
    role: f"tests.benchmarks.swarm.far:{role}" for role in ("bootstrap", "storage", "compute")
}


def bootstrap(arguments: list[str]) -> int:
    """Be a bootstrap peer."""
    return _behind_relay(bootstrap_daemon.main, arguments)


def storage(arguments: list[str]) -> int:
    """Be a storage peer."""
    return _behind_relay(storage_daemon.main, arguments)


def compute(arguments: list[str]) -> int:
    """Be a compute peer."""
    return _behind_relay(compute_daemon.main, arguments)


def _behind_relay(main: Callable[[list[str]], int], arguments: Sequence[str]) -> int:
    port, me = _free_port(), os.getpid()
    with socket.create_server((_LOOPBACK, 0)) as listening:
        announced = listening.getsockname()[1]
        if not os.fork():
            be_relay(listening, port, float(os.environ[DELAY]), me)
    return main(told(arguments, port, announced))


def told(arguments: Sequence[str], port: int, announced: int) -> list[str]:
    """Return a daemon's arguments: it listens at one port, and says that it is at another."""
    found = list(arguments)
    found[found.index("--listen") + 1] = _address(port)
    return [*found, "--announce", _address(announced)]


def _free_port() -> int:
    with socket.create_server((_LOOPBACK, 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _address(port: int) -> str:
    return f"/ip4/{_LOOPBACK}/tcp/{port}"
