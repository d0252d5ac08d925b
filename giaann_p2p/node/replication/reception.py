"""Where the requests of other peers come in: read, counted, handed on, answered.

1. An update is answered when it is on the disk; meanwhile its ticket waits here, unless its sender
   has stopped waiting.
2. Over its bounds, or before this peer knows the others, an update is refused in words; how much
   may wait is shared between those who push (see `Shares`).
3. When this peer ends, whoever waits is told so.
"""

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter

from giaann_p2p.errors import MessageError
from giaann_p2p.net.errors import Reason
from giaann_p2p.net.errors import Refused as Turned
from giaann_p2p.node.answering import Answering
from giaann_p2p.node.counters import Counters
from giaann_p2p.node.gate import Gate
from giaann_p2p.node.shares import Shares
from giaann_p2p.swarm.actions import Reply
from giaann_p2p.swarm.answers import size_of
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import (
    BUSY,
    Message,
    Push,
    Pushed,
    Read,
    Refused,
    Rows,
    decode,
    encode,
)

_BUSY = f"{BUSY}: too many updates wait for the disk already; push again later"
_BEGINNING = "this peer has just begun and knows nobody yet; push again in a moment"
_LEAVING = "this peer has ended; ask another one"


class Reception:
    """`take` is given each update with its ticket; `fullness` tells how much room is taken."""

    def __init__(
        self,
        gate: Gate,
        answering: Answering,
        counters: Counters,
        take: Callable[[int, Push], None],
        fullness: Callable[[], float],
        patience: float,
    ) -> None:
        """Take how many seconds an update may wait before it is begun, too."""
        self.open = False
        """Whether updates are taken in."""
        self._gate, self._answering, self._counters = gate, answering, counters
        self._take, self._fullness = take, fullness
        self._shares = Shares()
        self._patience = patience
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._until: dict[int, float] = {}  # when it is too late to begin
        self._tickets = 0
        self._closed = False

    def __repr__(self) -> str:
        return f"<Reception: {len(self._waiting)} updates wait>"

    def answer(self, peer: bytes, body: bytes) -> bytes | Awaitable[bytes]:
        """Answer a request, at once where that is possible; see `net.transport.Handler`."""
        if self._closed:
            raise Turned(Reason.LEAVING, _LEAVING)
        counters, began = self._counters, perf_counter()
        counters.bytes_in += len(body)
        try:
            question = decode(body)
        except MessageError:
            counters.unreadable += 1
            raise
        self._gate.check(Peer(peer), question)
        answer = self._answering.at_once(question)
        if answer is None:
            return self._later(peer, question)
        self._count_read(began)
        return self._told(answer)

    def reply(self, reply: Reply) -> None:
        """Answer an update, if somebody still waits."""
        future = self._waiting.get(reply.ticket)
        if future is not None and not future.done():
            future.set_result(reply.message)

    def wants(self, ticket: int) -> bool:
        """Tell whether somebody waits for an update, and not for too long already."""
        future, now = self._waiting.get(ticket), asyncio.get_running_loop().time()
        return future is not None and not future.done() and now < self._until[ticket]

    def close(self) -> None:
        """Answer nothing any more, and tell those who wait."""
        self._closed = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(Turned(Reason.LEAVING, _LEAVING))

    async def _later(self, peer: bytes, question: Message) -> bytes:
        return self._told(await self._to(peer, question))

    def _told(self, answer: Message) -> bytes:
        """Count an answer, and return it as it is sent."""
        counters = self._counters
        if isinstance(answer, Refused):
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

    async def _to(self, peer: bytes, question: Message) -> Message:
        counters = self._counters
        began = perf_counter()
        if isinstance(question, Push):
            counters.pushes += 1
            answer = await self._pushed(peer, question)
            counters.pushed += isinstance(answer, Pushed)
            counters.push_seconds.took(perf_counter() - began)
        elif isinstance(question, Read):
            answer = await self._answering.to(question, peer)
            self._count_read(began)
        else:
            counters.questions += 1
            answer = self._gate.answer(question) or await self._answering.to(question, peer)
        return answer

    async def _pushed(self, peer: bytes, question: Push) -> Message:
        if not self.open:
            return Refused(_BEGINNING)
        if self._fullness() >= self._shares.most_for(peer):
            return Refused(_BUSY)
        self._tickets += 1
        ticket = self._tickets
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Message] = loop.create_future()
        size = len(question.parcel)
        self._shares.add(peer, size)
        self._waiting[ticket], self._until[ticket] = future, loop.time() + self._patience
        try:
            self._take(ticket, question)
            return await future
        finally:
            self._shares.drop(peer, size)
            del self._waiting[ticket], self._until[ticket]
