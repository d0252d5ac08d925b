"""The shell of one connection: reads and writes its stream, keeps its time, wakes who waits.

Decides nothing: see connection.py. It runs as one task, which ends when the connection is over; no
task, timer or waiter outlives it.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from giaann_p2p.errors import GiaannError
from giaann_p2p.net.alarms import NEVER
from giaann_p2p.net.connection import Connection
from giaann_p2p.net.errors import Reason, Refused
from giaann_p2p.net.events import Cancelled, Event, Failed, Requested
from giaann_p2p.net.transport import ByteStream, Handler
from giaann_p2p.swarm.identity import Peer


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
        """Whether calls take it, or took it until it was lost."""
        self._loop = asyncio.get_running_loop()
        self.since = self.used = self._loop.time()
        self._stream = stream
        self._linger = linger
        self._handler = handler
        self._greeted = greeted
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._answering: dict[int, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._work = asyncio.Event()  # there may be something to send
        self._ended = asyncio.Event()
        self.task = self._loop.create_task(self._run())
        self.task.add_done_callback(lambda task: over(self))

    def __repr__(self) -> str:
        return f"<Link to {self.peer[:4].hex()}: {self.connection!r}>"

    async def call(self, payload: bytes, deadline: float) -> bytes:
        """Ask, and return the answer."""
        self.used = self._loop.time()
        number = self.connection.request(payload, deadline)
        future: asyncio.Future[bytes] = self._loop.create_future()
        self._waiting[number] = future
        self._stir()
        try:
            return await future
        finally:
            if self._waiting.pop(number, None) is not None:
                self.connection.cancel(number)
                self._stir()

    def goodbye(self) -> None:
        """Ask nothing more over this connection."""
        self.connection.goodbye()
        self._stir()

    def end(self, why: Refused) -> None:
        """End it now; the peer is told why."""
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
            if self._timer is not None:
                self._timer.cancel()
            tasks = [reader, writer, *self._answering.values()]
            told = writer.done() and (self.connection.farewell or self.connection.error is None)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if told:  # a reset could overtake the last words
                self._stream.close()
            else:
                self._stream.abort()

    def _mind(self, task: asyncio.Task[None]) -> None:
        """End the connection, and say so, if reading or writing failed as it never should."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        words = "this peer failed in a way that it did not expect"
        self._loop.call_exception_handler({"message": words, "exception": error, "task": task})
        self.end(Refused(Reason.FAILED, words))

    async def _read(self) -> None:
        try:
            while data := await self._stream.read():
                greeted = self.connection.greeted
                self._tell(self.connection.feed(data, self._loop.time()))
                if self.connection.greeted and not greeted:
                    self._greeted(self)
                self._stir()
            events = self.connection.eof(self._loop.time())
        except OSError as error:
            events = self.connection.lost(str(error), self._loop.time())
        self._tell(events)
        self._stir()

    async def _write(self) -> None:
        try:
            while True:
                while pieces := self.connection.to_send():
                    await self._stream.write(pieces)
                if self.connection.over:
                    break
                self._work.clear()
                await self._work.wait()
        except OSError as error:
            # The peer reads no more; why, it may have said, and that is still to be read.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), self._linger)
            self._tell(self.connection.lost(str(error), self._loop.time()))
        self._stir()

    def _tell(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Requested):
                task = self._loop.create_task(self._answer(event.request, event.body))
                self._answering[event.request] = task
            elif isinstance(event, Cancelled):
                if (asked := self._answering.pop(event.request, None)) is not None:
                    asked.cancel()
            else:
                future = self._waiting.pop(event.request, None)
                if future is None or future.done():
                    continue
                if isinstance(event, Failed):
                    future.set_exception(event.error)
                else:
                    future.set_result(event.body)

    async def _answer(self, request: int, body: bytes) -> None:
        self.used = self._loop.time()
        handler = self._handler()
        try:
            if handler is None:
                raise Refused(Reason.FAILED, "this peer serves nothing")
            self.connection.respond(request, await handler(self.peer, body))
        except Refused as why:
            self.connection.refuse(request, why)
        except GiaannError as error:
            self.connection.refuse(request, Refused(Reason.FAILED, str(error)))
        except Exception as error:  # noqa: BLE001  (a stranger's request must not end this peer)
            words = "this peer failed in a way that it did not expect"
            self.connection.refuse(request, Refused(Reason.FAILED, words))
            self._loop.call_exception_handler({"message": words, "exception": error})
        self._answering.pop(request, None)
        self._stir()

    def _stir(self) -> None:
        """Look after what has changed: something to send, another time to wake, the end."""
        self._work.set()
        if self.connection.over:
            self._ended.set()
            return
        when = self.connection.wake()
        if when != NEVER and (self._timer is None or when < self._timer.when()):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(when, self._ring, when)

    def _ring(self, when: float) -> None:
        self._timer = None
        now = max(when, self._loop.time())  # a loop may be early by less than its clock can tell
        self._tell(self.connection.tick(now))
        self._stir()
