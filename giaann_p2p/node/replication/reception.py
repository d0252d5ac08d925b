"""Receives the requests of other peers: decodes, counts, dispatches and answers them.

1. An update is answered once it is on the disk, unless its sender has stopped waiting by then.
2. An update is refused, with a reason, if the queue is full or this peer has not found the other
   peers yet. The queue is shared among the peers that push (see `Shares`).
3. A refusal that names a retry time is held back for part of that time, up to a second. So a peer
   that keeps pushing beyond its budget costs this peer few refusals.
4. When this peer ends, all waiting updates are refused as leaving.
5. If a question names shards by another number of shards than this peer's, or if this peer is
   dividing its shards, the answer is this peer's edition of the swarm's rules. Reads are answered
   in any case (see `Answers`).
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from time import perf_counter

import msgspec

from giaann_p2p.errors import MessageError
from giaann_p2p.net.errors import Reason
from giaann_p2p.net.errors import Refused as Turned
from giaann_p2p.node.counters import Counters
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.replication.answering import Answering
from giaann_p2p.node.replication.shares import Shares
from giaann_p2p.swarm.replication.answers import size_of
from giaann_p2p.swarm.wire.actions import Reply
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Counting, Message
from giaann_p2p.swarm.wire.messages import (
    BUSY,
    Carry,
    Compare,
    Compared,
    Push,
    Pushed,
    PushFrom,
    Refusal,
    decode_question,
    doublings_of,
    encode,
)
from giaann_p2p.swarm.wire.row_messages import Read, ReadSlice, Rows

_BUSY = f"{BUSY}: too many updates wait for the disk already; push again later"
_BEGINNING = "this peer has just started and knows no other peer yet; push again in a moment"
_LEAVING = "this peer has ended; ask another one"
_HELD_BACK = 1.0
"""Maximum seconds for which a refusal is held back: well below any caller's timeout."""


class Reception:
    """Entry point for the requests of other peers to a storage peer.

    `take` receives each update with its ticket and sender. `carry` answers a sender that asks this
    peer to carry a delta. `fullness` returns the used fraction of the store's queue; 1 means full.
    `is_dividing` returns whether the store is dividing its shards now.
    """

    def __init__(
        self,
        gate: Gate,
        answering: Answering,
        counters: Counters,
        take: Callable[[int, Peer, Push | PushFrom], None],
        carry: Callable[[Peer, Carry], Message],
        differs: Callable[[Peer], None],
        fullness: Callable[[], float],
        is_dividing: Callable[[], bool],
        patience: float,
    ) -> None:
        """Refuse updates until `open` is set; an update may wait `patience` seconds for its write.

        `differs` is called with a peer whose question shows that its chunks differ from those here.
        """
        self.open = False
        """Whether updates are accepted."""
        self._gate, self._answering, self._counters = gate, answering, counters
        self._take, self._carry, self._differs = take, carry, differs
        self._fullness, self._is_dividing = fullness, is_dividing
        self._shares = Shares()
        self._patience = patience
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._until: dict[int, float] = {}  # by ticket: latest time at which its write may begin
        self._tickets = 0
        self._closed = False

    def __repr__(self) -> str:
        return f"<Reception: {len(self._waiting)} updates wait>"

    def answer(self, peer: bytes, body: bytes) -> bytes | Awaitable[bytes]:
        """Answer an encoded request, synchronously if possible: a `net.transport.Handler`."""
        if self._closed:
            raise Turned(Reason.LEAVING, _LEAVING)
        counters, began = self._counters, perf_counter()
        counters.bytes_in += len(body)
        try:
            question, doublings = decode_question(body), doublings_of(body)
        except MessageError:
            counters.unreadable += 1
            raise
        self._gate.check(Peer(peer), question)
        if isinstance(question, Compare) and self._counts_alike(doublings):
            compared = self._answering.alike(question)
            if compared is not None:
                counters.questions += 1
                return self._told(compared)
        answer = self._answering.at_once(question, doublings)
        if answer is None:
            return self._later(peer, question, doublings)
        self._count_read(began)
        return self._told(answer)

    def reply(self, reply: Reply) -> None:
        """Answer the pushed update with this ticket, if its sender still waits."""
        future = self._waiting.get(reply.ticket)
        if future is not None and not future.done():
            future.set_result(reply.message)

    def queued(self, ticket: int) -> None:
        """Start the time for which an update may wait, because its rows have arrived now."""
        if ticket in self._until:
            self._until[ticket] = asyncio.get_running_loop().time() + self._patience

    def wants(self, ticket: int) -> bool:
        """Return whether to write an update: its sender waits, and it has not waited too long."""
        future, now = self._waiting.get(ticket), asyncio.get_running_loop().time()
        return future is not None and not future.done() and now < self._until[ticket]

    def close(self) -> None:
        """Refuse all further requests, and the updates that wait for an answer."""
        self._closed = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(Turned(Reason.LEAVING, _LEAVING))

    async def _later(self, peer: bytes, question: Message, doublings: int) -> bytes:
        answer = await self._to(peer, question, doublings)
        if isinstance(answer, Refusal) and answer.again:
            del question  # its bytes are not needed while the refusal waits
            answer = await _held_back(answer)
        return self._told(answer)

    def _told(self, answer: Message) -> bytes:
        """Count an answer in this peer's counters, and return it encoded."""
        counters = self._counters
        if isinstance(answer, Refusal):
            counters.refused += 1
            counters.busy += answer.is_busy
        elif isinstance(answer, Rows):
            rows, connections = size_of(answer)
            counters.rows += rows
            counters.connections += connections
        data = encode(answer)
        counters.bytes_out += len(data)
        return data

    def _count_read(self, began: float) -> None:
        self._counters.reads += 1
        self._counters.read_seconds.took(perf_counter() - began)

    async def _to(self, peer: bytes, question: Message, doublings: int) -> Message:
        counters = self._counters
        began = perf_counter()
        if isinstance(question, Counting) and not self._counts_alike(doublings):
            return self._gate.counts_otherwise(Peer(peer))
        if isinstance(question, Push | PushFrom):
            counters.pushes += 1
            answer = await self._pushed(peer, question)
            counters.pushed += isinstance(answer, Pushed)
            counters.push_seconds.took(perf_counter() - began)
        elif isinstance(question, Carry):
            answer = self._carry(Peer(peer), question) if self.open else Refusal(_BEGINNING)
        elif isinstance(question, Read | ReadSlice):
            answer = await self._answering.to(question, peer, doublings)
            self._count_read(began)
        else:
            counters.questions += 1
            answer = self._gate.answer(question) or await self._answering.to(question, peer)
        of_holder = isinstance(question, Compare) and question.job is None
        if of_holder and isinstance(answer, Compared) and answer.is_different:
            self._differs(Peer(peer))
        return answer

    def _counts_alike(self, doublings: int) -> bool:
        """Return whether a question counts the shards as this peer does, and can be answered now.

        While shards are being divided, a question would wait for that and occupy a thread.
        """
        return doublings == self._gate.rules().layout.doublings and not self._is_dividing()

    async def _pushed(self, peer: bytes, question: Push | PushFrom) -> Message:
        if not self.open:
            return Refusal(_BEGINNING)
        if self._fullness() >= self._shares.most_for(peer):
            return Refusal(_BUSY)
        self._tickets += 1
        ticket = self._tickets
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Message] = loop.create_future()
        size = len(question.parcel) if isinstance(question, Push) else 0
        self._shares.add(peer, size)
        self._waiting[ticket], self._until[ticket] = future, math.inf
        try:
            self._take(ticket, Peer(peer), question)
            return await future
        finally:
            self._shares.drop(peer, size)
            del self._waiting[ticket], self._until[ticket]


async def _held_back(refusal: Refusal) -> Refusal:
    """Sleep for part of a refusal's retry time; return the refusal with the time that is left."""
    held = min(refusal.again / 2, _HELD_BACK)  # not all of it: 0 would mean "unknown"
    await asyncio.sleep(held)
    return msgspec.structs.replace(refusal, again=refusal.again - held)
