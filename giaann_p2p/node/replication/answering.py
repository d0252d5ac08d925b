"""Answers questions about the store without blocking the event loop.

1. A read of a few short rows is answered in the loop: it needs only memory, and no lock.
2. Everything else runs in a thread, because it may wait for the store, read the disk, or take long.
   The number of waiting questions is bounded, in all and for each peer. Offers of whole shards run
   one at a time, and so do digests, proofs and lists of nouns, and requests for carried deltas:
   each of the three kinds occupies one thread at most. A question that a thread has begun counts
   until the thread is done, even if its asker has gone; one that no thread has begun is then
   dropped.
3. The states of the shards are captured before a thread reads rows. If a shard of these rows has
   left memory meanwhile, they are read again, because they would look as if never learned.
"""

import asyncio
from collections import Counter
from concurrent.futures import Executor

import numpy as np

from giaann_p2p.node.options import Options
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.replication.answers import NOBODY, Answers, StateOf
from giaann_p2p.swarm.replication.carried_deltas import CarriedDeltas
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    BUSY,
    AskDigests,
    AskNouns,
    AskPart,
    AskProof,
    Compare,
    FetchCarried,
    Offer,
    Read,
    Refusal,
    Rows,
)
from giaann_p2p.swarm.wire.orphans import Orphans
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import unpacked

_NUMBER = 8
"""Length of a neuron's concept or feature in a message, in bytes."""
_TRIES = 3
"""Number of times that rows are read if their shards keep leaving memory."""
_NO_LONGER = Refusal(f"{BUSY}: nobody waits for this answer any more, or this peer is ending")


class _Asked:
    """A question that waits for a thread or is being answered in one."""

    __slots__ = ("question", "wanted")

    def __init__(self, question: Message) -> None:
        self.question = question
        self.wanted = True
        """Whether the asker still waits for the answer."""


class Answering:
    """Answers questions about one store, small reads in the event loop and all others in threads.

    `executor` provides the threads; None means the event loop's default.
    """

    def __init__(
        self,
        store: Store,
        state_of: StateOf,
        executor: Executor | None = None,
        options: Options | None = None,
        me: Peer = NOBODY,
        orphans: Orphans | None = None,
        carried: CarriedDeltas | None = None,
    ) -> None:
        self._store, self._state_of = store, state_of
        self._executor, self._options = executor, options or Options()
        self._answers = Answers(store, state_of, me, orphans, carried)
        self._offering, self._digesting = asyncio.Lock(), asyncio.Lock()
        self._carrying = asyncio.Lock()
        self._working: dict[asyncio.Future[Message], _Asked] = {}
        self._of_peers = Counter[bytes]()

    def __repr__(self) -> str:
        return f"<Answering: {len(self._working)} questions wait>"

    @property
    def busy(self) -> bool:
        """Whether too many questions wait for a thread; then only small reads are answered."""
        return len(self._working) >= self._options.waiting

    async def to(self, question: Message, peer: bytes = b"") -> Message:
        """Answer a peer's question about the store; a `Refusal` contains the reason."""
        if (answer := self.at_once(question)) is not None:
            return answer
        if self.busy:
            return Refusal(f"{BUSY}: too many questions wait already; ask another peer, or later")
        if self._of_peers[peer] >= self._options.waiting_of_peer:
            return Refusal(f"{BUSY}: too many questions of yours wait already; ask again later")
        asked = _Asked(question)
        try:
            return await asyncio.shield(self._begin(asked, peer))
        finally:
            asked.wanted = False

    def at_once(self, question: Message) -> Message | None:
        """Answer a small read in the event loop; return None for any other question."""
        if isinstance(question, Read) and self._is_small(question):
            return self._answers.to(question)
        return None

    async def end(self) -> None:
        """Wait until no thread works on a question; questions not begun yet are refused."""
        for asked in self._working.values():
            asked.wanted = False
        if self._working:
            await asyncio.wait([*self._working])

    def _is_small(self, question: Read) -> bool:
        concepts, features = question.concepts, question.features
        if len(concepts) > self._options.inline_neurons * _NUMBER:
            return False
        if len(concepts) != len(features) or len(concepts) % _NUMBER:
            return True  # malformed: refused without a read
        found = self._store.connections_of(
            np.frombuffer(concepts, "<u8"), np.frombuffer(features, "<u8")
        )
        return found <= self._options.inline_connections

    def _begin(self, asked: _Asked, peer: bytes) -> asyncio.Future[Message]:
        def over(answer: asyncio.Future[Message]) -> None:
            del self._working[answer]
            self._of_peers[peer] -= 1
            if not self._of_peers[peer]:
                del self._of_peers[peer]

        answer = self._answer(asked)
        self._working[answer] = asked
        self._of_peers[peer] += 1
        answer.add_done_callback(over)
        return answer

    def _answer(self, asked: _Asked) -> asyncio.Future[Message]:
        """Begin to answer; only a question that takes turns or several tries needs a task."""
        question = asked.question
        if isinstance(question, Read):
            return asyncio.get_running_loop().create_task(self._rows(asked))
        if isinstance(question, Offer | AskPart):
            return self._in_turn(self._offering, asked)
        if isinstance(question, AskDigests | AskProof | AskNouns):
            return self._in_turn(self._digesting, asked)
        if isinstance(question, FetchCarried):
            return self._in_turn(self._carrying, asked)
        return self._in_thread(asked)

    def _in_turn(self, lock: asyncio.Lock, asked: _Asked) -> asyncio.Task[Message]:
        async def answer() -> Message:
            async with lock:
                return await self._in_thread(asked) if asked.wanted else _NO_LONGER

        return asyncio.get_running_loop().create_task(answer())

    def _in_thread(self, asked: _Asked) -> asyncio.Future[Message]:
        if isinstance(asked.question, Compare | AskDigests):
            return self._work(Answers(self._store, self._states().__getitem__), asked)
        return self._work(self._answers, asked)

    async def _rows(self, asked: _Asked) -> Message:
        for _ in range(_TRIES):
            states = self._states()
            answer = await self._work(Answers(self._store, states.__getitem__), asked)
            if not isinstance(answer, Rows) or self._still(states, answer):
                return answer
        return Refusal(f"{BUSY}: the shards of these rows are being moved; ask another peer")

    def _states(self) -> tuple[ReplicaState, ...]:
        return tuple(map(self._state_of, range(self._store.layout.shards)))

    def _still(self, before: tuple[ReplicaState, ...], answer: Rows) -> bool:
        """Return whether no shard of the rows stopped serving while they were read."""
        gone = [n for n, was in enumerate(before) if was.serves and not self._state_of(n).serves]
        return not np.setdiff1d(gone, unpacked(answer.moved, len(before))).size

    def _work(self, answers: Answers, asked: _Asked) -> asyncio.Future[Message]:
        def answer() -> Message:
            return answers.to(asked.question) if asked.wanted else _NO_LONGER

        return asyncio.get_running_loop().run_in_executor(self._executor, answer)
