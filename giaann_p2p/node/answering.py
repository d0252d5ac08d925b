"""Answering questions about the store without holding up the loop.

1. A question for a few rows is answered at once: it asks the memory alone, and no lock.
2. All else is a thread's work, for it may wait for the store, or read a disk, or take long. So many
   questions may wait for a thread, and no more. Whole shards are offered one after the other.
3. What a shard is, is looked at before a thread begins; rows are read anew if one of their shards
   was let go meanwhile, and what is gone from memory would pass for never learned.
"""

import asyncio
from concurrent.futures import Executor

import numpy as np

from giaann_p2p.node.options import Options
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.answers import Answers, StateOf
from giaann_p2p.swarm.messages import (
    AskDigests,
    AskPart,
    Compare,
    Message,
    Offer,
    Read,
    Refused,
    Rows,
)
from giaann_p2p.swarm.replica import State
from giaann_p2p.swarm.shardset import unpacked

BUSY = "busy"
"""How a refusal begins that is none if it is asked again later."""
_NUMBER = 8  # bytes of half a neuron
_TRIES = 3


class Answering:
    """See the module. `executor` has the threads; None is the loop's own."""

    def __init__(
        self,
        store: Store,
        state_of: StateOf,
        executor: Executor | None = None,
        options: Options | None = None,
    ) -> None:
        self._store, self._state_of = store, state_of
        self._executor, self._options = executor, options or Options()
        self._shards = store.layout.shards
        self._answers = Answers(store, state_of)
        self._offering = asyncio.Lock()
        self._working: set[asyncio.Future[Message]] = set()
        self._waiting = 0

    def __repr__(self) -> str:
        return f"<Answering: {self._waiting} questions wait>"

    @property
    def busy(self) -> bool:
        """Whether so much waits that no more is taken on, but for small reads."""
        return self._waiting >= self._options.waiting

    async def to(self, question: Message) -> Message:
        """Answer; `Refused` tells why not."""
        if (answer := self.at_once(question)) is not None:
            return answer
        if self.busy:
            return Refused(f"{BUSY}: too many questions wait already; ask another peer, or later")
        self._waiting += 1
        try:
            if isinstance(question, Offer | AskPart):
                async with self._offering:
                    return await self._in_thread(question)
            return await self._in_thread(question)
        finally:
            self._waiting -= 1

    def at_once(self, question: Message) -> Message | None:
        """Answer a question for a few rows; None for any other."""
        if isinstance(question, Read) and self._is_small(question):
            return self._answers.to(question)
        return None

    async def end(self) -> None:
        """Return when no thread works for this any more."""
        if self._working:
            await asyncio.wait(self._working)

    def _is_small(self, question: Read) -> bool:
        return len(question.concepts) <= self._options.inline_neurons * _NUMBER

    async def _in_thread(self, question: Message) -> Message:
        if isinstance(question, Read):
            return await self._rows(question)
        if isinstance(question, Compare | AskDigests):
            return await self._work(Answers(self._store, self._states().__getitem__), question)
        return await self._work(self._answers, question)

    async def _rows(self, question: Read) -> Message:
        for _ in range(_TRIES):
            states = self._states()
            answer = await self._work(Answers(self._store, states.__getitem__), question)
            if not isinstance(answer, Rows) or self._still(states, answer):
                return answer
        return Refused(f"{BUSY}: the shards of these rows are on the move; ask another peer")

    def _states(self) -> tuple[State, ...]:
        return tuple(map(self._state_of, range(self._shards)))

    def _still(self, before: tuple[State, ...], answer: Rows) -> bool:
        """Tell whether no shard was let go that rows were read of."""
        gone = [n for n, was in enumerate(before) if was.serves and not self._state_of(n).serves]
        return not np.setdiff1d(gone, unpacked(answer.moved, self._shards)).size

    async def _work(self, answers: Answers, question: Message) -> Message:
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._executor, answers.to, question)
        self._working.add(future)
        future.add_done_callback(self._working.discard)
        return await asyncio.shield(future)
