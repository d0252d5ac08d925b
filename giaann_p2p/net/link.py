"""The driver of one connection: reads and writes its stream, runs its timer, wakes its callers.

The protocol is in connection.py; this is only I/O. A link runs as one task, which ends when the
connection is over; no task, timer or waiter outlives it. Fast path: incoming data is processed as
it arrives, handlers that return at once are answered at once, and short frames are sent at once
where there is room, so a small call needs no task on either side. Everything else goes through the
tasks that read and write. Many requests that arrive together are spread over many turns of the
loop, so that other peers have theirs in between.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from giaann_p2p.errors import GiaannError, PeerError
from giaann_p2p.net.alarms import NEVER
from giaann_p2p.net.connection import Connection
from giaann_p2p.net.errors import Reason, Refused
from giaann_p2p.net.events import Cancelled, Event, Failed, Requested
from giaann_p2p.net.frames import Buffer
from giaann_p2p.net.transport import ByteStream, Handler, OnAnswer
from giaann_p2p.swarm.wire.identity import Peer

_SHORT = 1 << 16
"""The approximate number of bytes that are sent without the writer task."""
_MOST_ANSWERS, _MOST_ANSWERED = 32, 1 << 16
"""The most requests handled in one turn of the loop, and about the most bytes of immediate answers;
each limit amounts to some milliseconds of work."""
_UNEXPECTED = "this peer failed in a way that it did not expect"


class Link:
    """A connection to a peer, over a stream."""

    def __init__(
        self,
        peer: Peer,
        stream: ByteStream,
        connection: Connection,
        *,
        dialled: bool,
        linger: float,
        handler: Callable[[], Handler | None],
        greeted: Callable[["Link"], None],
        over: Callable[["Link"], None],
    ) -> None:
        self.peer = peer
        self.dialled = dialled
        self.connection = connection
        self.in_use = False
        """Whether calls use the link, or used it until it was lost."""
        self._loop = asyncio.get_running_loop()
        self.since = self.used = self._loop.time()
        self._stream = stream
        self._linger = linger
        self._handler = handler
        self._greeted = greeted
        self._waiting: dict[int, OnAnswer] = {}
        self._answering: dict[int, asyncio.Task[None]] = {}
        self._put_off: dict[int, bytes] = {}  # requests that wait for a later turn of the loop
        self._answers = self._answered = 0  # in this turn
        self._next_turn: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = NEVER  # uvloop's timers that are due at once do not give their time
        self._work = asyncio.Event()  # there may be something to send
        self._writing = True  # the writer task is sending, so nothing else may
        self._left: list[Buffer] = []  # pieces that could not be sent at once
        self._ended = asyncio.Event()
        self.task = self._loop.create_task(self._run())
        self.task.add_done_callback(lambda task: over(self))

    def __repr__(self) -> str:
        return f"<Link to {self.peer[:4].hex()}: {self.connection!r}>"

    async def call(self, payload: bytes, deadline: float) -> bytes:
        """Send a request, and return the answer."""
        future: asyncio.Future[bytes] = self._loop.create_future()

        def told(answer: bytes | PeerError) -> None:
            if future.done():
                return
            if isinstance(answer, bytes):
                future.set_result(answer)
            else:
                future.set_exception(answer)

        number = self.ask(payload, deadline, told)
        try:
            return await future
        finally:
            self.forget(number)

    def ask(self, payload: bytes, deadline: float, told: OnAnswer) -> int:
        """Send a request and return its number; `told` is called with the answer or the error."""
        self.used = self._loop.time()
        number = self.connection.request(payload, deadline, self.used)
        self._waiting[number] = told
        self._stir()
        return number

    def forget(self, number: int) -> None:
        """Stop waiting for an answer; does nothing if there was one."""
        if self._waiting.pop(number, None) is not None:
            self.connection.cancel(number)
            self._stir()

    @property
    def is_strange(self) -> bool:
        """Whether a stranger has opened the link, so that it must make room for others."""
        return not self.dialled and bool(self.connection.strange) and not self.connection.over

    @property
    def may_leave(self) -> bool:
        """Whether the link is idle and not closing, so that it can make room for another."""
        return self.connection.idle and self.connection.asking

    @property
    def is_idler(self) -> bool:
        """Whether no request is open, and the peer owes a hello or goodbye: it may be cancelled."""
        connection = self.connection
        said_nothing = not connection.greeted or not (connection.asking or connection.over)
        return said_nothing and connection.idle and not self.task.cancelling()

    def look_again(self) -> None:
        """Check whether the peer has become a stranger."""
        self._tell(self.connection.look_again())
        self._stir()

    def goodbye(self) -> None:
        """Make no more requests over this connection."""
        self.connection.goodbye()
        self._stir()

    def end(self, why: Refused) -> None:
        """End the connection now, and tell the peer why."""
        self._tell(self.connection.refuse_all(why))
        self._stir()

    async def _run(self) -> None:
        reader = self._loop.create_task(self._read())
        writer = self._loop.create_task(self._write())
        reader.add_done_callback(self._mind)
        writer.add_done_callback(self._mind)
        try:
            self._stir()
            await self._ended.wait()
            await asyncio.wait({writer}, timeout=self._linger)
        finally:
            self._tell(self.connection.lost("it was closed here", self._loop.time()))
            for due in (self._timer, self._next_turn):
                if due is not None:
                    due.cancel()
            tasks = [reader, writer, *self._answering.values()]
            told = writer.done() and (self.connection.farewell or self.connection.error is None)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if told:  # a reset could overtake the last frame, so close instead of aborting
                self._stream.close()
            else:
                self._stream.abort()

    def _mind(self, task: asyncio.Task[None]) -> None:
        """End the connection if reading or writing failed with an unexpected error."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._complain(error)
        self.end(Refused(Reason.FAILED, _UNEXPECTED))

    def _complain(self, error: BaseException) -> None:
        self._loop.call_exception_handler({"message": _UNEXPECTED, "exception": error})

    async def _read(self) -> None:
        self._stream.deliver(self._hear)
        try:
            while data := await self._stream.read():
                self._take(data)
            events = self.connection.eof(self._loop.time())
        except OSError as error:
            events = self.connection.lost(str(error), self._loop.time())
        self._tell(events)
        self._stir()

    def _hear(self, data: bytes) -> None:
        """Process bytes that the stream delivers, outside of any task."""
        try:
            self._take(data)
        except Exception as error:  # noqa: BLE001  (the stream could only drop it)
            self._fail(error)

    def _take(self, data: bytes) -> None:
        greeted = self.connection.greeted
        self._tell(self.connection.feed(data, self._loop.time()))
        if self.connection.greeted and not greeted:
            self._greeted(self)
        self._stir()

    async def _write(self) -> None:
        try:
            while True:
                while pieces := self._left or self.connection.to_send():
                    self._left = []
                    await self._stream.write(pieces)
                if self.connection.over:
                    break
                self._work.clear()
                self._writing = False
                await self._work.wait()
                self._writing = True
        except OSError as error:
            # The peer reads no more; it may have sent the reason, which is still to be read.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), self._linger)
            self._tell(self.connection.lost(str(error), self._loop.time()))
        self._stir()

    def _tell(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Requested):
                self._put_off[event.request] = event.body
            elif isinstance(event, Cancelled):
                self._put_off.pop(event.request, None)
                if (asked := self._answering.pop(event.request, None)) is not None:
                    asked.cancel()
            elif (told := self._waiting.pop(event.request, None)) is not None:
                told(event.error if isinstance(event, Failed) else event.body)

        if self._put_off and self._next_turn is None:
            self._serve_some()

    def _serve_some(self) -> None:
        """Serve as many requests as one turn of the loop allows, in order of arrival."""
        self._answers = self._answered = 0
        while self._put_off and self._answers < _MOST_ANSWERS and self._answered < _MOST_ANSWERED:
            request = next(iter(self._put_off))
            self._answers += 1
            self._serve(request, self._put_off.pop(request))
        self._next_turn = self._loop.call_soon(self._turn) if self._put_off else None

    def _turn(self) -> None:
        self._serve_some()
        self._stir()

    def _serve(self, request: int, body: bytes) -> None:
        """Answer a request at once if the handler can; otherwise let a task wait for the answer."""
        self.used = self._loop.time()
        handler = self._handler()
        try:
            if handler is None:
                raise Refused(Reason.FAILED, "this peer serves nothing")
            answer = handler(self.peer, body)
        except Exception as error:  # noqa: BLE001  (a stranger's request must not end this peer)
            self._refuse(request, error)
            return
        if isinstance(answer, bytes):
            self._answered += len(answer)
            self.connection.respond(request, answer)
        else:
            task = self._loop.create_task(self._answer(request, answer))
            self._answering[request] = task

    async def _answer(self, request: int, answer: Awaitable[bytes]) -> None:
        try:
            self.connection.respond(request, await answer)
        except Exception as error:  # noqa: BLE001  (as above)
            self._refuse(request, error)
        self._answering.pop(request, None)
        self._stir()

    def _refuse(self, request: int, error: Exception) -> None:
        """Report why there is no answer; only this project's own errors are passed on verbatim."""
        if isinstance(error, Refused):
            why = error
        elif isinstance(error, GiaannError):
            why = Refused(Reason.FAILED, str(error))
        else:
            why = Refused(Reason.FAILED, _UNEXPECTED)
            self._complain(error)
        self.connection.refuse(request, why)

    def _stir(self) -> None:
        """React to a change: send what is ready, set the timer, or notice the end."""
        self._send()
        if self.connection.over:
            self._ended.set()
            return
        when = self.connection.wake()
        if when != NEVER and (self._timer is None or when < self._rings_at):
            if self._timer is not None:
                self._timer.cancel()
            self._rings_at = when
            self._timer = self._loop.call_at(when, self._ring, when)

    def _send(self) -> None:
        """Send short frames at once; leave the rest, and any error, to the writer task."""
        if not self._writing and self._stream.room:
            pieces = self.connection.to_send(_SHORT)
            try:
                if pieces:
                    self._stream.put(pieces)
            except OSError:
                self._left = pieces
        if self._left or self.connection.sends or self.connection.over:
            self._work.set()

    def _ring(self, when: float) -> None:
        self._timer = None
        now = max(when, self._loop.time())  # the loop may be early by less than its clock resolves
        self._tell(self.connection.tick(now))
        self._stir()
