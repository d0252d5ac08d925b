"""Turns at compute peers: as many prompts at a time as they answer for one client, in order.

A compute peer refuses a client's prompts beyond a number, and the client asks again a second later.
Here they wait in line instead, so that each slot is taken again as soon as it is free.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from giaann_p2p.gateway.failures import Busy

_LOOK_EVERY = 1.0
"""Seconds between two looks for new room, which a new compute peer brings."""


class Turns:
    """A queue for turns: `room` returns how many may be taken at once now."""

    def __init__(self, room: Callable[[], int]) -> None:
        self._room, self._now = room, 0
        self._line: deque[asyncio.Future[None]] = deque()

    def __repr__(self) -> str:
        return f"<Turns: {self._now} taken, {len(self._line)} wait>"

    @asynccontextmanager
    async def turn(self, within: float) -> AsyncIterator[float]:
        """Take a turn during the context; yield the seconds waited; Busy after `within` seconds."""
        clock = asyncio.get_running_loop().time
        began = clock()
        await self._take(within)
        try:
            yield clock() - began
        finally:
            self._now -= 1
            self._go_on()

    async def _take(self, within: float) -> None:
        if not self._line and self._now < self._room():
            self._now += 1
            return
        mine = asyncio.get_running_loop().create_future()
        self._line.append(mine)
        try:
            async with asyncio.timeout(within):
                await self._until_on(mine)
        except BaseException as error:
            if mine.done() and not mine.cancelled():  # the turn came at the same moment
                self._now -= 1
                self._go_on()
            else:
                mine.cancel()
                with suppress(ValueError):
                    self._line.remove(mine)
            if isinstance(error, TimeoutError):
                raise Busy("the compute peers are busy with other prompts; ask again") from None
            raise

    async def _until_on(self, mine: asyncio.Future[None]) -> None:
        """Wait for a turn; the first in line looks for new room, because nothing reports it."""
        self._go_on()
        while not mine.done():
            await asyncio.wait([mine], timeout=_LOOK_EVERY)
            if self._line and self._line[0] is mine:
                self._go_on()

    def _go_on(self) -> None:
        """Give free turns to the prompts that have waited longest."""
        while self._line and self._now < self._room():
            self._now += 1
            self._line.popleft().set_result(None)
