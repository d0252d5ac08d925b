"""Strangers flood the p2pd of a swarm's bootstrap peer, below all that would ask for a token."""

import asyncio
import re
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from giaann_p2p.client.session import visit
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.net.hive.peer_id import peer_of_address
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.member_messages import AskManifest, ManifestIs
from giaann_p2p.swarm.wire.messages import decode, encode
from tests.e2e.conftest import NewSwarm

pytestmark = pytest.mark.e2e
BOOTSTRAP = "bootstrap-1"
ENOUGH = 24
"""Strangers that were disconnected: eight come at a time."""
PATIENCE = 60.0
PAUSE = 0.1
MOST_MB = 150
_METRIC = re.compile(r"^(giaann_p2pd_\w+) (\S+)$", re.MULTILINE)
_PORT = re.compile(r"/tcp/(\d+)/")


def test_a_members_calls_are_answered_while_strangers_flood_p2pd(new_swarm: NewSwarm) -> None:
    shown = {"bootstrap": ["--metrics-port", "0"]}
    with new_swarm(storages=1, replicas=1, shards=4, arguments=shown) as swarm:
        asyncio.run(flooded(swarm))


async def flooded(swarm: LocalSwarm) -> None:
    link = Link.read(swarm.link)
    bootstrap = peer_of_address(link.addresses[0])
    found = _PORT.search(link.addresses[0])
    assert found is not None
    most, asked = 0.0, 0
    async with visit(link) as visiting:
        async with attacker("pings", found[1]):
            while (told := await takes(swarm))["strangers_disconnected_total"] < ENOUGH:
                most = max(most, told["resident_memory_bytes"])
                answer = await visiting.place.transport.call(
                    bootstrap, encode(AskManifest()), timeout=PATIENCE
                )
                assert isinstance(decode(answer), ManifestIs)
                asked += 1
                await asyncio.sleep(PAUSE)
        told = await settled(swarm)
    print(f"p2pd took {most / 1e6:.0f} MB at most, {told['resident_memory_bytes'] / 1e6:.0f} MB")
    assert asked
    assert told["restarts_total"] == 0


async def settled(swarm: LocalSwarm) -> dict[str, float]:
    """Return what p2pd takes once what was freed has gone back to the system."""
    while True:
        told = await takes(swarm)
        if told["resident_memory_bytes"] <= MOST_MB * 1e6:
            return told
        await asyncio.sleep(PAUSE)


async def takes(swarm: LocalSwarm) -> dict[str, float]:
    """Return what the bootstrap peer's page shows of its p2pd."""
    address = f"http://127.0.0.1:{swarm.peer(BOOTSTRAP).metrics_port}/metrics"

    def read() -> str:
        with urllib.request.urlopen(address) as page:
            return str(page.read().decode())

    text = await asyncio.to_thread(read)
    return {
        name.removeprefix("giaann_p2pd_"): float(value) for name, value in _METRIC.findall(text)
    }


@asynccontextmanager
async def attacker(flood: str, port: str) -> AsyncIterator[None]:
    module = "tests.benchmarks.p2pd_flood.attacker"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, flood, "127.0.0.1", port, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield
        assert process.returncode is None
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
