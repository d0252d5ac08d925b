"""Serves a brain on this machine. Its work runs in threads; a few prompts advance in turn.

The parser is not made for several threads, so prompts are parsed one at a time. After that, each
token is a piece of work of its own, so a long answer does not keep a short one waiting.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from giaann_p2p import __version__
from giaann_p2p.client.prompting import Answer
from giaann_p2p.gateway.backend import Facts, Learned, Progress, Teaching
from giaann_p2p.gateway.brain_answer import BrainAnswer
from giaann_p2p.gateway.brain_columns import BrainNouns, column_of
from giaann_p2p.gateway.brain_lessons import Lessons
from giaann_p2p.gateway.daemon_pool import DaemonPool
from giaann_p2p.gateway.views import Found, Jobs, PeersNow, ShownColumn, ShownJob
from giaann_p2p.model.manner import Manner, require, require_small
from giaann_p2p.solo.answer import Answer as Thought
from giaann_p2p.solo.brain import Brain
from giaann_p2p.solo.jobs import jobs

THREADS = 4
"""Threads that compute answers. Python runs one at a time, except for what torch and numpy do."""
_END_WITHIN = 5.0
"""Seconds that the threads have to end when the gateway does."""
_LOG = logging.getLogger("giaann.gateway")
_T = TypeVar("_T")


class BrainBackend:
    """A brain behind the interface of `backend.Backend`."""

    def __init__(self, brain: Brain, name: str, *, training: bool = False) -> None:
        self._brain, self._name, self._training = brain, name, training
        self._threads = DaemonPool(THREADS, "giaann-brain")
        self._stops: set[threading.Event] = set()
        """For each answer, an event that makes its thread stop within a step."""
        self._parsing = threading.Lock()
        self._lessons = Lessons(brain, self._parsing)
        self._nouns = BrainNouns(brain.store)

    def __repr__(self) -> str:
        return f"<BrainBackend: {self._name}>"

    @property
    def facts(self) -> Facts:
        """The description of the brain."""
        return Facts(
            kind="brain",
            name=self._name,
            profile=self._brain.spec.profile,
            model=self._name,
            version=__version__,
            training=self._training,
            shards=self._brain.store.layout.shards,
            replicas=1,
        )

    @property
    def lacking(self) -> str:
        """Empty: a brain can always answer prompts."""
        return ""

    @property
    def lost(self) -> str:
        """Empty: a brain that has lost data does not open."""
        return ""

    @asynccontextmanager
    async def answering(self, prompt: str, manner: Manner) -> AsyncIterator[Answer]:
        """Continue a prompt for as long as the context lasts; then its thread stops."""
        require(manner, self._brain.spec.profile)
        require_small(prompt, manner)
        stop = threading.Event()
        self._stops.add(stop)
        try:
            yield BrainAnswer(prompt, lambda: self._thought(prompt, manner, stop), self._run)
        finally:
            stop.set()
            self._stops.discard(stop)

    async def overview(self) -> None:
        """Return None: a brain has no peers."""

    async def status(self) -> dict[str, Any]:
        """Return the size of what is known, and the texts that were learned."""
        return await self._run(self._status)

    async def peers(self) -> PeersNow:
        """Return nothing: a brain has no peers."""
        return PeersNow()

    async def column(self, noun: str, words: int, leads: int) -> ShownColumn | None:
        """Return a noun's column; None if it was never learned."""
        return await self._run(lambda: column_of(self._brain.store, noun, words, leads))

    async def search(self, prefix: str, most: int) -> Found:
        """Return nouns that begin with a text, the most frequent first."""
        return await self._run(lambda: self._nouns.search(prefix, most))

    async def jobs(self) -> Jobs:
        """Return the texts that were learned."""
        texts = await self._run(lambda: list(jobs(self._brain.store)))
        shown = [
            ShownJob(
                id=f"{one.name} {one.epoch}",
                name=one.name,
                chunks=one.chunks,
                of=one.chunks if one.complete else None,
                mine=True,
            )
            for one in texts
        ]
        return Jobs(jobs=shown)

    async def train(self, name: str, text: str) -> Teaching:
        """Learn a text; yield its progress, and at the end the report."""
        found: Progress | Learned
        async for found in self._lessons.learn(name, text):
            yield found

    async def close(self) -> None:
        """Stop the threads' work; wait for its end, but not for long."""
        for stop in self._stops:
            stop.set()
        ended = await asyncio.gather(
            self._lessons.end(_END_WITHIN), asyncio.to_thread(self._threads.end, _END_WITHIN)
        )
        if not all(ended):
            _LOG.warning("some work of this gateway had not stopped when it ended")

    def _thought(self, prompt: str, manner: Manner, stop: threading.Event) -> Thought:
        with self._parsing:
            return self._brain.stream(
                prompt,
                max_tokens=manner.max_tokens,
                timing=manner.timing,
                beam=manner.beam,
                variant=manner.variant,
                sampling=manner.sampling,
                should_stop=stop.is_set,
            )

    def _status(self) -> dict[str, Any]:
        known = self._brain.store.statistics()
        texts = [{"name": one.name, "chunks": one.chunks} for one in jobs(self._brain.store)]
        return {
            "verdict": "healthy",
            "columns": known.columns,
            "rows": known.rows,
            "connections": known.connections,
            "texts": texts,
            "do": "",
        }

    async def _run(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
