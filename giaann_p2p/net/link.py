"""The driver of one connection: reads and writes its stream, runs its timer, wakes its callers.

The protocol is in connection.py; this module only does I/O. A link runs as one task, which ends
when the connection is over; no task, timer or waiter outlives it.

Small calls take a fast path that needs no task on either side: incoming data is processed as it
arrives, a handler that returns bytes is answered at once, and short frames are sent at once while
the stream has room. The tasks that read and write do everything else. If many requests arrive
together, they are spread over several turns of the event loop, so that other peers get their turns
in between.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
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
"""The approximate number of bytes that may be sent at once without the writer task."""
_MOST_ANSWERS, _MOST_ANSWERED = 32, 1 << 16
"""The most requests handled in one turn of the event loop, and about the most bytes of their
immediate answers. Each limit is worth some milliseconds of work."""
_UNEXPECTED = "unexpected error while serving a peer; the log of the serving peer shows it"


class Link:
    """The driver of one connection to a peer over a byte stream."""

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
        """Whether calls use this connection, or used it until it was lost."""
        self._loop = asyncio.get_running_loop()
        self.since = self.used = self._loop.time()
        """The times when this connection began, and when it last had a request in either
        direction."""
        self._stream = stream
        self._linger = linger
        self._handler = handler
        self._greeted = greeted
        self._waiting: dict[int, OnAnswer] = {}
        self._answering: dict[int, asyncio.Task[None]] = {}
        self._put_off: dict[int, bytes] = {}  # requests that wait for a later turn of the loop
        self._answers = self._answered = 0  # counts of this turn: requests and bytes
        self._next_turn: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = NEVER  # uvloop's timers that are due at once lack `when()`
        self._work = asyncio.Event()  # there may be something to send
        self._writing = True  # the writer task is sending, so nothing else may
        self._left: list[Buffer] = []  # pieces that could not be sent at once
        self._ended = asyncio.Event()
        self.task = self._loop.create_task(self._run())
        self.task.add_done_callback(lambda task: over(self))

    def __repr__(self) -> str:
        return f"<Link to {self.peer[:4].hex()}: {self.connection!r}>"

    async def call(self, payload: bytes, deadline: float) -> bytes:
        """Send a request and return the peer's answer; raise a PeerError if there is none."""
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
        """Send a request and return its number; `told` gets the answer or the error later."""
        self.used = self._loop.time()
        number = self.connection.request(payload, deadline, self.used)
        self._waiting[number] = told
        self._stir()
        return number

    def forget(self, number: int) -> None:
        """Stop waiting for a request's answer; do nothing if it has arrived."""
        if self._waiting.pop(number, None) is not None:
            self.connection.cancel(number)
            self._stir()

    @property
    def is_strange(self) -> bool:
        """Whether a stranger opened this connection, so that it must make room for others."""
        return not self.dialled and bool(self.connection.strange) and not self.connection.over

    @property
    def may_leave(self) -> bool:
        """Whether this connection is idle and not closing, so it can be closed to make room."""
        return self.connection.idle and self.connection.asking

    @property
    def is_idler(self) -> bool:
        """Whether this connection is idle and may be dropped: it awaits a hello or goodbye."""
        connection = self.connection
        said_nothing = not connection.greeted or not (connection.asking or connection.over)
        return said_nothing and connection.idle and not self.task.cancelling()

    def look_again(self) -> None:
        """Judge the peer's greeting again; if the peer is now a stranger, end the connection."""
        self._tell(self.connection.look_again())
        self._stir()

    def goodbye(self) -> None:
        """Make no more requests over this connection; it ends when the open ones have ended."""
        self.connection.goodbye()
        self._stir()

    def end(self, why: Refused) -> None:
        """End the connection now, and tell the peer the reason."""
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
            self._tell(self.connection.lost("this peer closed it", self._loop.time()))
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
        """End the connection if its reader or writer task failed with an unexpected error."""
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
        """Process bytes as the stream delivers them, outside of any task."""
        try:
            self._take(data)
        except Exception as error:  # noqa: BLE001  (the stream would drop the error)
            self._fail(error)

    def _take(self, data: bytes) -> None:
        greeted = self.connection.greeted
        events = self.connection.feed(data, self._loop.time())
        if self.connection.greeted and not greeted:
            self._greeted(self)  # it may refuse the connection, and so what came with the hello
        if self.connection.over:
            events = [event for event in events if not isinstance(event, Requested)]
        self._tell(events)
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
            # The peer reads no more. It may have sent the reason, so let the reader task get it.
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
        """Serve waiting requests in order of arrival, as many as fit into one turn of the loop."""
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
        """Answer a request at once if the handler can; otherwise start a task for the answer."""
        self.used = self._loop.time()
        handler = self._handler()
        try:
            if handler is None:
                raise Refused(Reason.FAILED, "this peer answers no calls yet")
            answer = handler(self.peer, body)
        except Exception as error:  # noqa: BLE001  (a stranger's request must not end this peer)
            self._refuse(request, error)
            return
        if isinstance(answer, bytes):
            self._answered += len(answer)
            self.connection.respond(request, answer)
        else:
            task = self._loop.create_task(self._answer(request, answer))
            if isinstance(answer, Coroutine):  # else it warns if the task ends before it begins
                task.add_done_callback(lambda _: answer.close())
            self._answering[request] = task

    async def _answer(self, request: int, answer: Awaitable[bytes]) -> None:
        try:
            self.connection.respond(request, await answer)
        except Exception as error:  # noqa: BLE001  (a stranger's request must not end this peer)
            self._refuse(request, error)
        self._answering.pop(request, None)
        self._stir()

    def _refuse(self, request: int, error: Exception) -> None:
        """Tell the peer why it gets no answer; only the text of a GiaannError is passed on."""
        if isinstance(error, Refused):
            why = error
        elif isinstance(error, GiaannError):
            why = Refused(Reason.FAILED, str(error))
        else:
            why = Refused(Reason.FAILED, _UNEXPECTED)
            self._complain(error)
        self.connection.refuse(request, why)

    def _stir(self) -> None:
        """Send what is ready, update the timer, and notice if the connection has ended."""
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
        """Send short frames at once; leave longer ones, and any error, to the writer task."""
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
        now = max(when, self._loop.time())  # a timer may be early by the clock's resolution
        self._tell(self.connection.tick(now))
        self._stir()
