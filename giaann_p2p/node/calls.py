"""A peer's outgoing calls, from the request to the answer or the timeout.

A call over an existing connection needs no task: the stream that receives the answer passes it
straight to the callback. A task is started only if the peer has to be dialled first.

A question about shards states how many shards this peer counts. A peer that counts another number
answers with its edition of the swarm's rules. Then the peer with the older edition learns the newer
one, and the callback gets a refusal that says to ask again.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from giaann_p2p.errors import EditionError, GiaannError, PeerError
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.transport import Transport
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.division import COUNTS_OTHERWISE
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.member_messages import EditionIs
from giaann_p2p.swarm.wire.message import Counting, Message
from giaann_p2p.swarm.wire.messages import Refusal, decode, encode

_TELL_WITHIN = 4.0
"""Timeout in seconds of sending another peer a newer edition."""

T = TypeVar("T")

Then = Callable[[Message | None], None]
"""Callback with the answer, or with None if no readable answer arrived in time."""


class _Asked:
    """An outgoing call that has no answer yet."""

    def __init__(self, then: Then, data: bytes, deadline: float) -> None:
        self.then, self.data, self.deadline = then, data, deadline
        self.drop: Callable[[], object] = lambda: None
        """Stops waiting for the answer to this call."""


class Calls:
    """Sends calls to other peers, and passes each answer to its callback.

    `failed` receives any exception that a callback raises, because that is a bug in this peer.
    `rules` returns the swarm's rules, by which this peer counts shards. `weigh` receives the
    edition of a peer that counts another number of shards; it returns the edition to send to that
    peer, or nothing.
    """

    def __init__(
        self,
        transport: Transport,
        rules: Callable[[], Rules],
        failed: Callable[[BaseException], None],
        weigh: Callable[[bytes], bytes] = lambda edition: b"",
    ) -> None:
        self.made = self.unanswered = 0
        """Totals: calls made, and calls that ended without a readable answer."""
        self.bytes_out = self.bytes_in = 0
        """Totals in bytes: requests sent, and answers received."""
        self._transport, self._failed = transport, failed
        self.rules, self._weigh = rules, weigh
        self._open: dict[_Asked, Call] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._open)

    def __repr__(self) -> str:
        return f"<Calls: {len(self)} open, {self.made:,} made>"

    def start(self, call: Call, then: Then) -> None:
        """Send a call; `then` receives its answer or None, but only after this method returned."""
        self.made += 1
        loop = asyncio.get_running_loop()
        asked = _Asked(then, b"", loop.time() + call.timeout)
        self._open[asked] = call
        try:
            asked.data = encode(call.message, self.rules().layout.doublings)
            drop = self._transport.ask(
                call.peer, asked.data, timeout=call.timeout, told=partial(self._on_answer, asked)
            )
        except GiaannError:  # too much is in flight, or this transport is closed
            asked.drop = loop.call_soon(self._over, asked, None).cancel
            return
        self.bytes_out += len(asked.data)
        if drop is not None:
            asked.drop = drop
        else:
            self._start_task(asked)

    def cancel(self, unwanted: Callable[[Call], bool]) -> None:
        """Drop the calls for which `unwanted` returns True, without calling their callbacks."""
        for asked in [asked for asked, call in self._open.items() if unwanted(call)]:
            del self._open[asked]
            asked.drop()

    async def end(self) -> None:
        """Drop all calls, and wait until the tasks that carried them have ended."""
        self.cancel(lambda call: True)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start_task(self, asked: _Asked) -> None:
        task = asyncio.get_running_loop().create_task(self._call(asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        asked.drop = task.cancel

    async def _call(self, asked: _Asked) -> None:
        peer, left = self._open[asked].peer, asked.deadline - asyncio.get_running_loop().time()
        try:
            self._over(asked, await self._transport.call(peer, asked.data, timeout=left))
        except GiaannError:  # unreachable, refused, late, or closed here
            self._over(asked, None)

    def _on_answer(self, asked: _Asked, answer: bytes | PeerError) -> None:
        if isinstance(answer, bytes):
            self._over(asked, answer)
        elif isinstance(answer, Unreachable) and asked in self._open:
            self._start_task(asked)  # no byte was sent, so another connection may succeed
        else:
            self._over(asked, None)

    def _over(self, asked: _Asked, data: bytes | None) -> None:
        """Decode a call's answer and pass it to the callback, unless the call was dropped."""
        call = self._open.pop(asked, None)
        if call is None:
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
            if isinstance(answer, EditionIs) and isinstance(call.message, Counting):
                answer = self._counts_otherwise(call.peer, answer.edition)
            asked.then(answer)
        except Exception as error:  # noqa: BLE001  (passed to `failed`, which may end this peer)
            self._failed(error)

    def _counts_otherwise(self, peer: Peer, edition: bytes) -> Refusal | None:
        """Let both peers adopt the newer edition; return the refusal for the callback.

        Return None if the edition is forged.
        """
        try:
            ours = self._weigh(edition)
        except EditionError:
            return None
        if ours:
            self.start(Call(0, peer, EditionIs(ours), _TELL_WITHIN), lambda answer: None)
        return COUNTS_OTHERWISE


def fail(waiting: Iterable[asyncio.Future[T]], error: BaseException) -> None:
    """Set an unexpected error on each pending future; if none is pending, report it to the loop."""
    told = [future for future in waiting if not future.done()]
    for future in told:
        future.set_exception(error)
    if not told:
        words = "an unexpected error in this peer"
        asyncio.get_running_loop().call_exception_handler({"message": words, "exception": error})
