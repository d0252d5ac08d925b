"""Answers questions about the store without blocking the event loop.

1. A read of a few short rows is answered in the loop: it needs only memory, and no lock. So is a
   comparison that finds no difference: it needs only a snapshot of the sets of chunks.
2. Everything else runs in a thread, because it may wait for the store, read the disk, or take long.
   The number of waiting questions is bounded, in all and for each peer. Offers of whole shards run
   one at a time, and so do digests, proofs and lists of nouns, and requests for carried deltas:
   each of the three kinds occupies one thread at most. The peers take turns in each kind, and for
   the threads (see `fair_queue`): otherwise the proof that one peer asks for would wait for all
   digests that another one asked for before, and time out. A question that a thread has begun
   counts until the thread is done, even if its asker has gone; one that no thread has begun is
   then dropped.
3. The states of a question's shards are captured before a thread reads rows. If one of them has
   left memory meanwhile, the read is repeated, because its rows look as if never learned.
4. When the peer has divided its shards, `follow` switches to decisions on the new ones. Answers in
   progress still count the former shards: rows are read again, and everything else is refused (see
   `Answers`).
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial

import numpy as np

from giaann_p2p.node.options import Options
from giaann_p2p.node.replication.fair_queue import FairQueue
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.replication.answers import NOBODY, Answers, StateOf
from giaann_p2p.swarm.replication.carried_deltas import CarriedDeltas
from giaann_p2p.swarm.replication.set_comparison import Sets
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    BUSY,
    AskDigests,
    AskNouns,
    AskPart,
    AskProof,
    Compare,
    Compared,
    FetchCarried,
    Offer,
    Refusal,
)
from giaann_p2p.swarm.wire.orphans import Orphans
from giaann_p2p.swarm.wire.row_messages import Read, ReadSlice, Rows

_NUMBER = 8
"""Length of a neuron's concept or feature in a message, in bytes."""
_TRIES = 3
"""Number of times that rows are read if their shards keep leaving memory."""
_NO_LONGER = Refusal(f"{BUSY}: nobody waits for this answer any more, or this peer is ending")


class _Asked:
    """A question that waits for a thread or is being answered in one."""

    __slots__ = ("answers", "doublings", "peer", "question", "wanted")

    def __init__(
        self, question: Message, peer: bytes, doublings: int | None, answers: Answers
    ) -> None:
        self.question, self.peer, self.doublings = question, peer, doublings
        self.answers = answers
        """The source of answers that was current when the question arrived."""
        self.wanted = True
        """Whether the asker still waits for the answer."""


class Answering:
    """Answers questions about one store, small reads in the event loop and all others in threads.

    `executor` provides the threads; None means the event loop's default. `held` returns the sets of
    chunks of some shards from a snapshot; None means that comparisons always take a thread.
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
        held: Callable[[Sequence[int]], Sets] | None = None,
    ) -> None:
        self._held = held
        self._store, self._executor, self._options = store, executor, options or Options()
        self._made = partial(Answers, store, me=me, orphans=orphans)
        self._answers = self._made(state_of, carried=carried)
        self._threads = FairQueue[Message](self._options.threads)
        self._offering, self._digesting = FairQueue[Message](1), FairQueue[Message](1)
        self._carrying = FairQueue[Message](1)
        self._working: dict[asyncio.Future[Message], _Asked] = {}
        self._of_peers = Counter[bytes]()

    def __repr__(self) -> str:
        return f"<Answering: {len(self._working)} questions wait>"

    def follow(self, state_of: StateOf, carried: CarriedDeltas) -> None:
        """From now on, answer by new decisions, for the shards into which the store was divided."""
        self._answers = self._made(state_of, carried=carried)

    @property
    def busy(self) -> bool:
        """Whether too many questions wait for a thread; then only small reads are answered."""
        return len(self._working) >= self._options.waiting

    async def to(
        self, question: Message, peer: bytes = b"", doublings: int | None = None
    ) -> Message:
        """Answer a peer's question about the store; a `Refusal` contains the reason.

        `doublings`: how often the question's number of shards was doubled (see `Answers.to`).
        """
        if (answer := self.at_once(question, doublings)) is not None:
            return answer
        if self.busy:
            return Refusal(f"{BUSY}: too many questions wait already; ask another peer, or later")
        if self._of_peers[peer] >= self._options.waiting_of_peer:
            return Refusal(f"{BUSY}: too many questions of yours wait already; ask again later")
        asked = _Asked(question, peer, doublings, self._answers)
        try:
            return await asyncio.shield(self._begin(asked))
        finally:
            asked.wanted = False

    def at_once(self, question: Message, doublings: int | None = None) -> Message | None:
        """Answer a small read in the event loop; return None for any other question."""
        if isinstance(question, Read) and self._is_small(question):
            return self._answers.to(question, doublings)
        return None

    def alike(self, question: Compare) -> Compared | None:
        """Answer a comparison in the event loop if it finds no difference; else return None."""
        return self._answers.alike(question, self._held) if self._held is not None else None

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

    def _begin(self, asked: _Asked) -> asyncio.Future[Message]:
        peer = asked.peer

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
        """Begin to answer; only a question that is retried needs a task."""
        question = asked.question
        if isinstance(question, Read | ReadSlice):
            return asyncio.get_running_loop().create_task(self._rows(asked))
        if isinstance(question, Offer | AskPart):
            return self._offering.begin(asked.peer, partial(self._in_thread, asked))
        if isinstance(question, AskDigests | AskProof | AskNouns):
            return self._digesting.begin(asked.peer, partial(self._in_thread, asked))
        if isinstance(question, FetchCarried):
            return self._carrying.begin(asked.peer, partial(self._in_thread, asked))
        return self._in_thread(asked)

    def _in_thread(self, asked: _Asked) -> asyncio.Future[Message]:
        if not asked.wanted:
            return _dropped()
        if isinstance(asked.question, Compare | AskDigests):
            return self._work(asked.answers.captured(asked.question), asked)
        return self._work(asked.answers, asked)

    async def _rows(self, asked: _Asked) -> Message:
        for _ in range(_TRIES):
            answers = self._answers
            before = answers.captured(asked.question)
            answer = await self._work(before, asked)
            if not isinstance(answer, Rows):
                return answer
            if answers is self._answers and not answers.serves_less_than(before):
                return answer
        return Refusal(f"{BUSY}: the shards of these rows are being moved; ask another peer")

    def _work(self, answers: Answers, asked: _Asked) -> asyncio.Future[Message]:
        def answer() -> Message:
            return answers.to(asked.question, asked.doublings) if asked.wanted else _NO_LONGER

        def begun() -> asyncio.Future[Message]:
            if not asked.wanted:
                return _dropped()
            return asyncio.get_running_loop().run_in_executor(self._executor, answer)

        return self._threads.begin(asked.peer, begun)


def _dropped() -> asyncio.Future[Message]:
    """Return the result of a question that nobody waits for."""
    result: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    result.set_result(_NO_LONGER)
    return result
