"""hivemind's client of a p2pd, for unary calls; only the peer directory makes any.

Importing this module imports hivemind.
"""

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID

from hivemind.p2p import P2P
from hivemind.p2p.p2p_daemon_bindings.utils import P2PDaemonError
from hivemind.utils.multiaddr import Multiaddr


class _Calls(dict[UUID, asyncio.Future[Any]]):
    """The calls of hivemind's client that wait for an answer.

    The answer to a call that has just been cancelled may arrive before its task has noticed. Then
    hivemind would set the result of a future that is done, and that error ends the task that reads
    from p2pd: no call of this peer would be answered any more, nor any call of others. This happens
    to peers that get the processor late, when an answer and its timeout come at once.
    """

    def __contains__(self, number: object) -> bool:
        call = self.get(number) if isinstance(number, UUID) else None
        return call is not None and not call.done()


class Unary:
    """A connection to a p2pd for unary calls; made by `open`."""

    def __init__(self, p2p: P2P) -> None:
        self.p2p = p2p
        self._control._pending_calls = _Calls(self._control._pending_calls)

    def __repr__(self) -> str:
        return f"<Unary: {len(self._control._handler_tasks)} calls of other peers>"

    @classmethod
    async def open(cls, socket: Path) -> "Unary":
        """Connect to the p2pd at a socket; raise OSError if that fails."""
        try:
            return cls(await P2P.replicate(Multiaddr(f"/unix{socket}")))
        except (P2PDaemonError, asyncio.IncompleteReadError) as error:
            raise ConnectionAbortedError(f"p2pd takes no unary calls: {error}") from None

    @property
    def is_deaf(self) -> bool:
        """Whether hivemind has ceased to read from p2pd, so that all calls hang for ever."""
        return bool(self._control._read_task.done())

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
