"""The questions that a peer has asked others and that are not answered yet.

Where there is a connection, a question takes no task: an answer goes from the stream that brings it
to whoever waits. Only for a peer that is to be dialled first, a task waits.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from giaann_p2p.errors import GiaannError, PeerError
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.transport import Transport
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.messages import Message, decode, encode

T = TypeVar("T")

Then = Callable[[Message | None], None]
"""Is told what was answered, or None if there was no answer in time that can be read."""


class _Asked:
    """One question."""

    def __init__(self, then: Then, data: bytes, deadline: float) -> None:
        self.then, self.data, self.deadline = then, data, deadline
        self.drop: Callable[[], object] = lambda: None
        """Makes nobody wait any longer."""


class Calls:
    """`failed` is told of what should never happen: an error in a `Then`."""

    def __init__(self, transport: Transport, failed: Callable[[BaseException], None]) -> None:
        self.made = self.unanswered = 0
        self.bytes_out = self.bytes_in = 0
        self._transport, self._failed = transport, failed
        self._open: dict[_Asked, Call] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._open)

    def __repr__(self) -> str:
        return f"<Calls: {len(self)} open, {self.made:,} made>"

    def start(self, call: Call, then: Then) -> None:
        """Ask, and tell what comes of it; never before this has returned."""
        self.made += 1
        loop = asyncio.get_running_loop()
        asked = _Asked(then, b"", loop.time() + call.timeout)
        self._open[asked] = call
        try:
            asked.data = encode(call.message)
            drop = self._transport.ask(
                call.peer, asked.data, timeout=call.timeout, told=partial(self._told, asked)
            )
        except GiaannError:  # too much is under way, or all is closed here
            asked.drop = loop.call_soon(self._over, asked, None).cancel
            return
        if drop is not None:
            self.bytes_out += len(asked.data)
            asked.drop = drop
        else:
            self._start_task(asked)

    def cancel(self, unwanted: Callable[[Call], bool]) -> None:
        """Wait no longer for some answers; nobody is told."""
        for asked in [asked for asked, call in self._open.items() if unwanted(call)]:
            del self._open[asked]
            asked.drop()

    async def end(self) -> None:
        """Wait no longer for any; return when no task is left."""
        self.cancel(lambda call: True)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start_task(self, asked: _Asked) -> None:
        task = asyncio.get_running_loop().create_task(self._call(asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        asked.drop = task.cancel

    async def _call(self, asked: _Asked) -> None:
        peer, left = self._open[asked].peer, asked.deadline - asyncio.get_running_loop().time()
        self.bytes_out += len(asked.data)
        try:
            self._over(asked, await self._transport.call(peer, asked.data, timeout=left))
        except GiaannError:  # unreachable, refused, late, or closed here
            self._over(asked, None)

    def _told(self, asked: _Asked, answer: bytes | PeerError) -> None:
        if isinstance(answer, bytes):
            self._over(asked, answer)
        elif isinstance(answer, Unreachable) and asked in self._open:
            self._start_task(asked)  # nothing was sent: another connection may do
        else:
            self._over(asked, None)

    def _over(self, asked: _Asked, data: bytes | None) -> None:
        """Tell what was answered, if anybody still waits for it."""
        if self._open.pop(asked, None) is None:
            return
        answer = None
        try:
            if data is not None:
                self.bytes_in += len(data)
                answer = decode(data)
        except GiaannError:
            answer = None
        self.unanswered += answer is None
        try:
            asked.then(answer)
        except Exception as error:  # noqa: BLE001  (it is told to who may end this peer)
            self._failed(error)


def fail(waiting: Iterable[asyncio.Future[T]], error: BaseException) -> None:
    """Tell all who wait of an error that nobody planned for; if nobody does, tell the loop."""
    told = [future for future in waiting if not future.done()]
    for future in told:
        future.set_exception(error)
    if not told:
        words = "a peer failed in a way that it did not expect"
        asyncio.get_running_loop().call_exception_handler({"message": words, "exception": error})
