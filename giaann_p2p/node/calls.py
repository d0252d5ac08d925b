"""The questions that a peer has asked others and that are not answered yet: a task for each."""

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

from giaann_p2p.errors import GiaannError
from giaann_p2p.net.transport import Transport
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.messages import Message, decode, encode

T = TypeVar("T")

Then = Callable[[Message | None], None]
"""Is told what was answered, or None if there was no answer in time that can be read."""


class Calls:
    """`failed` is told of what should never happen: an error in a `Then`."""

    def __init__(self, transport: Transport, failed: Callable[[BaseException], None]) -> None:
        self.made = self.unanswered = 0
        self.bytes_out = self.bytes_in = 0
        self._transport, self._failed = transport, failed
        self._open: dict[asyncio.Task[None], Call] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __repr__(self) -> str:
        return f"<Calls: {len(self)} open, {self.made:,} made>"

    def start(self, call: Call, then: Then) -> None:
        """Ask, and tell what comes of it."""
        self.made += 1
        task = asyncio.get_running_loop().create_task(self._ask(call, then))
        self._open[task] = call
        task.add_done_callback(self._over)

    def cancel(self, unwanted: Callable[[Call], bool]) -> None:
        """Wait no longer for some answers; nobody is told."""
        for task, call in self._open.items():
            if unwanted(call):
                task.cancel()

    async def end(self) -> None:
        """Wait no longer for any; return when no task is left."""
        self.cancel(lambda call: True)
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _ask(self, call: Call, then: Then) -> None:
        answer = None
        try:
            question = encode(call.message)
            self.bytes_out += len(question)
            data = await self._transport.call(call.peer, question, timeout=call.timeout)
            self.bytes_in += len(data)
            answer = decode(data)
        except GiaannError:  # unreachable, refused, late, unreadable, or closed here: no answer
            self.unanswered += 1
        then(answer)

    def _over(self, task: asyncio.Task[None]) -> None:
        del self._open[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)


def fail(waiting: Iterable[asyncio.Future[T]], error: BaseException) -> None:
    """Tell all who wait of an error that nobody planned for; if nobody does, tell the loop."""
    told = [future for future in waiting if not future.done()]
    for future in told:
        future.set_exception(error)
    if not told:
        words = "a peer failed in a way that it did not expect"
        asyncio.get_running_loop().call_exception_handler({"message": words, "exception": error})
