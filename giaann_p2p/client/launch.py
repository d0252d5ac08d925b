"""Starts a client's p2pd early, while the rest of the client is still being imported.

p2pd takes as long to start as the client's modules take to import, and runs in a process of its
own. So this module imports no more than starting p2pd needs: no numpy, no model, no directory.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path

from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.host import Host
from giaann_p2p.net.hive.key_file import open_key_file
from giaann_p2p.swarm.wire.identity import Peer

ANYWHERE = HostConfig(listen=("/ip4/127.0.0.1/tcp/0",), relay=False, gogc=400)
"""Default host configuration: no peer dials a client, but p2pd has to listen somewhere. Without
relays, and with few garbage collections, p2pd starts with a quarter of the processor time."""


class Launch:
    """A p2pd that is starting, with a key made for it; made by `launched`."""

    def __init__(self, key: Path, config: HostConfig) -> None:
        self.me: Peer = open_key_file(key).peer
        self._starting = asyncio.create_task(Host.start(key, config))

    def __repr__(self) -> str:
        return f"<Launch: p2pd {'has started' if self._starting.done() else 'is starting'}>"

    async def meanwhile(self, module: str) -> None:
        """Import a module in a thread, so that p2pd can be started at the same time."""
        await asyncio.to_thread(import_module, module)

    async def host(self) -> Host:
        """Wait for p2pd, and return its host; DaemonError if p2pd does not start."""
        return await asyncio.shield(self._starting)

    async def close(self) -> None:
        """End p2pd, even while it is still starting."""
        self._starting.cancel()
        (end,) = await asyncio.gather(self._starting, return_exceptions=True)
        if isinstance(end, Host):
            await end.close()


@asynccontextmanager
async def launched(config: HostConfig = ANYWHERE) -> AsyncIterator[Launch]:
    """Start p2pd with a new key, for the duration of the context; the key is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="giaann-visit-") as folder:
        launch = Launch(Path(folder) / "key", config)
        try:
            yield launch
        finally:
            await launch.close()
