"""A pool of learn workers for use from an event loop: each chunk goes to a free worker."""

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from giaann_p2p.node.training.learn_workers import LearnWorker, ThreadWorker, WorkerGone
from giaann_p2p.node.training.learner import Made, Task, Teach


class Pool:
    """Learn workers, each called in a thread of its own; create the pool within the event loop."""

    def __init__(
        self, learn_workers: Sequence[LearnWorker], teach: Teach, log: logging.Logger | None = None
    ) -> None:
        """Create a pool of at least one learn worker; `close` ends the workers."""
        self._log = log or logging.getLogger("giaann.compute")
        self._teach = teach
        self._threads = ThreadPoolExecutor(len(learn_workers), "giaann-hands")
        self._learn_workers = list(learn_workers)
        self._free: asyncio.Queue[LearnWorker] = asyncio.Queue()
        self._working: set[asyncio.Future[Made | str]] = set()
        for hand in learn_workers:
            hand.teach(teach)
            self._free.put_nowait(hand)

    def __repr__(self) -> str:
        return f"<Pool: {len(self._working)} of {len(self._learn_workers)} work>"

    async def learn(self, task: Task) -> Made | str:
        """Return a chunk's result, or the reason why it could not be learned."""
        hand = await self._free.get()
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, hand.learn, task)
        self._working.add(future)
        future.add_done_callback(lambda done: self._done(hand, done))
        try:
            return await asyncio.shield(future)
        except WorkerGone:
            return "the process that parsed it has ended"

    async def close(self) -> None:
        """Wait until the chunks in work are learned, then end all learn workers."""
        if self._working:
            await asyncio.wait(self._working)
        for hand in self._learn_workers:
            hand.end()
        self._threads.shutdown()

    def _done(self, hand: LearnWorker, future: asyncio.Future[Made | str]) -> None:
        self._working.discard(future)
        if not future.cancelled() and isinstance(future.exception(), WorkerGone):
            self._log.error("a worker process has ended: a thread of this process replaces it")
            self._learn_workers.remove(hand)
            hand.end()
            hand = ThreadWorker()
            hand.teach(self._teach)
            self._learn_workers.append(hand)
        self._free.put_nowait(hand)
