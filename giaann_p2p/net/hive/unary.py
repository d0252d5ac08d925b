"""hivemind's client of a p2pd, for unary calls; only the peer directory makes any.

Importing this module imports hivemind.
"""

import asyncio
from pathlib import Path
from typing import Any

from hivemind.p2p import P2P
from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError
from hivemind.utils.multiaddr import Multiaddr


class Unary:
    """A connection to a p2pd for unary calls; made by `open`."""

    def __init__(self, p2p: P2P) -> None:
        self.p2p = p2p

    def __repr__(self) -> str:
        return f"<Unary: {len(self._control._handler_tasks)} calls of other peers>"

    @classmethod
    async def open(cls, socket: Path) -> "Unary":
        """Connect to the p2pd at a socket; raise OSError if that fails."""
        try:
            return cls(await P2P.replicate(Multiaddr(f"/unix{socket}")))
        except (P2PDaemonError, asyncio.IncompleteReadError) as error:
            raise ConnectionAbortedError(f"p2pd takes no unary calls: {error}") from None

    def forget_done(self) -> None:
        """Remove finished calls from hivemind's table, which keeps cancelled calls for ever."""
        tasks = self._control._handler_tasks
        for number in [number for number, task in tasks.items() if task.done()]:
            del tasks[number]

    async def close(self) -> None:
        """Close the connection, and cancel the tasks that hivemind leaves running."""
        control = self._control
        handling = list(control._handler_tasks.values())
        await self.p2p.shutdown()
        for task in handling:
            task.cancel()
        tasks = [control._read_task, control._write_task, *handling]
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def _control(self) -> Any:  # noqa: ANN401  (hivemind has no types)
        return self.p2p._client.control
