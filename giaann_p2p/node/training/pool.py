"""Hands as an event loop has them: chunks go to whoever is free."""

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from giaann_p2p.node.hands import Gone, Hand, Here
from giaann_p2p.node.lesson import Made, Task, Teach


class Pool:
    """See the module. To be made within the loop that uses it."""

    def __init__(
        self, hands: Sequence[Hand], teach: Teach, log: logging.Logger | None = None
    ) -> None:
        """Take hands, one at least, which end with this."""
        self._log = log or logging.getLogger("giaann.compute")
        self._teach = teach
        self._threads = ThreadPoolExecutor(len(hands), "giaann-hands")
        self._hands = list(hands)
        self._free: asyncio.Queue[Hand] = asyncio.Queue()
        self._working: set[asyncio.Future[Made | str]] = set()
        for hand in hands:
            hand.teach(teach)
            self._free.put_nowait(hand)

    def __repr__(self) -> str:
        return f"<Pool: {len(self._working)} of {len(self._hands)} work>"

    async def learn(self, task: Task) -> Made | str:
        """Return what came of a chunk, or why nothing did."""
        hand = await self._free.get()
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, hand.learn, task)
        self._working.add(future)
        future.add_done_callback(lambda done: self._done(hand, done))
        try:
            return await asyncio.shield(future)
        except Gone:
            return "the process that was to parse it has ended"

    async def close(self) -> None:
        """End all; what is being learned is waited for."""
        if self._working:
            await asyncio.wait(self._working)
        for hand in self._hands:
            hand.end()
        self._threads.shutdown()

    def _done(self, hand: Hand, future: asyncio.Future[Made | str]) -> None:
        self._working.discard(future)
        if not future.cancelled() and isinstance(future.exception(), Gone):
            self._log.error("a process that parses has ended: a thread of this one takes its place")
            self._hands.remove(hand)
            hand.end()
            hand = Here()
            hand.teach(self._teach)
            self._hands.append(hand)
        self._free.put_nowait(hand)
