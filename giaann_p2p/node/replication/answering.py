"""Answering questions about the store without holding up the loop.

1. A question for a few short rows is answered at once: it asks the memory alone, and no lock.
2. All else is a thread's work, for it may wait for the store, or read a disk, or take long. So many
   questions may wait for a thread, and no more, and fewer of one peer. Whole shards are offered one
   after the other, and so are digests and proofs: who asks for these keeps one thread at most. A
   question counts until its thread is done with it, also when nobody waits for
   the answer any more; if no thread has begun with it by then, none will.
3. What a shard is, is looked at before a thread begins; rows are read anew if one of their shards
   was let go meanwhile, and what is gone from memory would pass for never learned.
"""

import asyncio
from collections import Counter
from concurrent.futures import Executor

import numpy as np

from giaann_p2p.node.options import Options
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.answers import NOBODY, Answers, StateOf
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import (
    BUSY,
    AskDigests,
    AskPart,
    AskProof,
    Compare,
    Message,
    Offer,
    Read,
    Refused,
    Rows,
)
from giaann_p2p.swarm.orphans import Orphans
from giaann_p2p.swarm.replica import State
from giaann_p2p.swarm.shardset import unpacked

_NUMBER = 8  # bytes of half a neuron
_TRIES = 3
_NO_LONGER = Refused(f"{BUSY}: nobody waits for this any more, or this peer ends")


class _Asked:
    """A question under way."""

    __slots__ = ("question", "wanted")

    def __init__(self, question: Message) -> None:
        self.question = question
        self.wanted = True
        """Whether anybody waits for its answer."""


class Answering:
    """See the module. `executor` has the threads; None is the loop's own."""

    def __init__(
        self,
        store: Store,
        state_of: StateOf,
        executor: Executor | None = None,
        options: Options | None = None,
        me: Peer = NOBODY,
        orphans: Orphans | None = None,
    ) -> None:
        self._store, self._state_of = store, state_of
        self._executor, self._options = executor, options or Options()
        self._shards = store.layout.shards
        self._answers = Answers(store, state_of, me, orphans)
        self._offering, self._digesting = asyncio.Lock(), asyncio.Lock()
        self._working: dict[asyncio.Task[Message], _Asked] = {}
        self._of_peers = Counter[bytes]()

    def __repr__(self) -> str:
        return f"<Answering: {len(self._working)} questions wait>"

    @property
    def busy(self) -> bool:
        """Whether so much waits that no more is taken on, but for small reads."""
        return len(self._working) >= self._options.waiting

    async def to(self, question: Message, peer: bytes = b"") -> Message:
        """Answer what a peer asks; `Refused` tells why not."""
        if (answer := self.at_once(question)) is not None:
            return answer
        if self.busy:
            return Refused(f"{BUSY}: too many questions wait already; ask another peer, or later")
        if self._of_peers[peer] >= self._options.waiting_of_peer:
            return Refused(f"{BUSY}: too many questions of yours wait already; ask again later")
        asked = _Asked(question)
        try:
            return await asyncio.shield(self._begin(asked, peer))
        finally:
            asked.wanted = False

    def at_once(self, question: Message) -> Message | None:
        """Answer a question for a few rows; None for any other."""
        if isinstance(question, Read) and self._is_small(question):
            return self._answers.to(question)
        return None

    async def end(self) -> None:
        """Return when no thread works for this any more."""
        for asked in self._working.values():
            asked.wanted = False
        if self._working:
            await asyncio.wait([*self._working])

    def _is_small(self, question: Read) -> bool:
        concepts, features = question.concepts, question.features
        if len(concepts) > self._options.inline_neurons * _NUMBER:
            return False
        if len(concepts) != len(features) or len(concepts) % _NUMBER:
            return True  # nothing is to be read
        found = self._store.connections_of(
            np.frombuffer(concepts, "<u8"), np.frombuffer(features, "<u8")
        )
        return found <= self._options.inline_connections

    def _begin(self, asked: _Asked, peer: bytes) -> asyncio.Task[Message]:
        def over(task: asyncio.Task[Message]) -> None:
            del self._working[task]
            self._of_peers[peer] -= 1
            if not self._of_peers[peer]:
                del self._of_peers[peer]

        task = asyncio.get_running_loop().create_task(self._answer(asked))
        self._working[task] = asked
        self._of_peers[peer] += 1
        task.add_done_callback(over)
        return task

    async def _answer(self, asked: _Asked) -> Message:
        if isinstance(asked.question, Offer | AskPart):
            async with self._offering:
                return await self._in_thread(asked)
        if isinstance(asked.question, AskDigests | AskProof):
            async with self._digesting:
                return await self._in_thread(asked)
        return await self._in_thread(asked)

    async def _in_thread(self, asked: _Asked) -> Message:
        if isinstance(asked.question, Read):
            return await self._rows(asked)
        if isinstance(asked.question, Compare | AskDigests):
            return await self._work(Answers(self._store, self._states().__getitem__), asked)
        return await self._work(self._answers, asked)

    async def _rows(self, asked: _Asked) -> Message:
        for _ in range(_TRIES):
            states = self._states()
            answer = await self._work(Answers(self._store, states.__getitem__), asked)
            if not isinstance(answer, Rows) or self._still(states, answer):
                return answer
        return Refused(f"{BUSY}: the shards of these rows are on the move; ask another peer")

    def _states(self) -> tuple[State, ...]:
        return tuple(map(self._state_of, range(self._shards)))

    def _still(self, before: tuple[State, ...], answer: Rows) -> bool:
        """Tell whether no shard was let go that rows were read of."""
        gone = [n for n, was in enumerate(before) if was.serves and not self._state_of(n).serves]
        return not np.setdiff1d(gone, unpacked(answer.moved, self._shards)).size

    async def _work(self, answers: Answers, asked: _Asked) -> Message:
        def answer() -> Message:
            return answers.to(asked.question) if asked.wanted else _NO_LONGER

        if not asked.wanted:
            return _NO_LONGER
        return await asyncio.get_running_loop().run_in_executor(self._executor, answer)
