"""A storage peer that joins, and takes in all that another holds.

Its bytes are held to those of a bare stream, and its connections to what taking them in costs by
itself: as a connection comes in two bytes, no peer of one core can take in half of what a stream
brings.
"""

import asyncio
import re
import time
import urllib.request

from giaann_p2p.local.peer import ProcessState, View
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.store.layout import Layout
from tests.benchmarks.network.bare import Bare
from tests.benchmarks.network.figures import Figure
from tests.benchmarks.network.learned import Learned
from tests.benchmarks.network.taking_in import alone
from tests.benchmarks.targets import Target

_SENT = re.compile(rb"^giaann_sent_bytes_total (\S+)$", re.MULTILINE)
_KEPT = re.compile(rb"^giaann_retained_delta_bytes (\S+)$", re.MULTILINE)
_PAUSE = 0.02
_RELEASED_WITHIN = 90.0
_WITHIN = 180.0
_PIECE, _UNDER_WAY = 1 << 18, 4


_BULK = 1 << 14
"""Bytes between two looks that are more than questions about what there is."""


async def syncs(swarm: LocalSwarm, bare: Bare, work: Learned, seconds: float) -> list[Figure]:
    """Let a peer join, and look how fast the other one sends."""
    (first,) = [peer for peer in swarm.peers() if peer.role == "storage"]
    await asyncio.to_thread(_wait_until_released, first)
    echo = await bare.rate(bytes(_PIECE), seconds, _UNDER_WAY)
    size, took, joining = await asyncio.to_thread(_joined, swarm, first)
    by_itself = await asyncio.to_thread(alone, work, Layout())
    rate = by_itself.connections / took
    return [
        Figure("a joining peer: bytes taken in", size / 1e6, "MB"),
        Figure("a joining peer: from its start to being ready", joining, "s"),
        Figure("a joining peer: between the first byte and the last", took, "s"),
        Figure("a joining peer: rate", size / took / 1e6, "MB/s"),
        Figure("the bare stream", echo / 1e6, "MB/s"),
        Figure("a joining peer, of the bare stream", size / took / echo, "x", Target(least=0.5)),
        Figure("a joining peer: connections", rate, "a second"),
        Figure("taking in by itself", by_itself.rate, "connections a second"),
        Figure("a joining peer, of taking in", rate / by_itself.rate, "x", Target(least=0.5)),
    ]


def _wait_until_released(peer: View) -> None:
    """Wait until no delta is kept: then shards go as a whole."""
    until = time.monotonic() + _RELEASED_WITHIN
    while _read(peer, _KEPT) and time.monotonic() < until:
        time.sleep(1)


def _joined(swarm: LocalSwarm, first: View) -> tuple[float, float, float]:
    """Return how many bytes were sent, in how many seconds, and the seconds until all was ready."""
    before = last = _read(first, _SENT)
    began = ended = time.monotonic()
    begun = 0.0
    (name,) = swarm.add("storage")
    while (now := time.monotonic()) < began + _WITHIN:
        sent = _read(first, _SENT)
        if sent >= last + _BULK:
            begun = begun or now
            ended = now
        last = sent
        if swarm.peer(name).state is ProcessState.READY:
            return last - before, ended - begun, now - began
        time.sleep(_PAUSE)
    raise SystemExit(f"{name} is not ready within {_WITHIN:g} s")


def _read(peer: View, value: re.Pattern[bytes]) -> float:
    address = f"http://127.0.0.1:{peer.metrics_port}/metrics"
    with urllib.request.urlopen(address) as page:
        found = value.search(page.read())
    if found is None:
        raise SystemExit(f"{peer.name} does not tell {value.pattern!r}")
    return float(found[1])
