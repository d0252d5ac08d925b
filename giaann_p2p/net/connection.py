"""The protocol of one connection: requests both ways over one ordered byte stream, without I/O.

The driver feeds incoming bytes to `feed`, sends the pieces that `to_send` returns, and calls `tick`
at the time that `wake` returns. Every request ends in exactly one `Responded` or `Failed`, by its
deadline at the latest, unless this side cancels it. Every `Requested` may be answered until it is
`Cancelled`. Whatever the peer sends, the only errors that result are PeerErrors inside `Failed`
events, and memory stays within the limits. The rules of the protocol are in states.py.

This module handles what concerns the whole connection: dispatch of frames, time, goodbyes and the
end. books.py keeps the table of open requests, caller.py handles requests of this side, server.py
those of the peer, and traffic.py moves the bodies of both.
"""

from collections.abc import Callable

from giaann_p2p.errors import MessageError, PeerError
from giaann_p2p.net.alarms import NEVER
from giaann_p2p.net.books import Books
from giaann_p2p.net.caller import Caller, failure
from giaann_p2p.net.errors import Broken, Reason, Refused, Unreachable
from giaann_p2p.net.events import Cancelled, Event, Failed
from giaann_p2p.net.frames import NUMBER, Buffer, Frame, Framer, Kind
from giaann_p2p.net.limits import Limits
from giaann_p2p.net.outbox import Outbox
from giaann_p2p.net.room import Room
from giaann_p2p.net.server import Server
from giaann_p2p.net.states import CALLER, LinkState, LocalEvent, Phase, next_phase
from giaann_p2p.net.traffic import Traffic

TURN = 1 << 20
"""The approximate number of bytes that `to_send` returns per call; urgent frames that are queued
later cannot overtake them."""


class Connection:
    """One side of a connection; `number` must be drawn at random for each connection."""

    def __init__(
        self,
        *,
        dialled: bool,
        number: int,
        now: float,
        limits: Limits | None = None,
        room_in: Room | None = None,
        room_out: Room | None = None,
        greeting: bytes = b"",
        door: Callable[[bytes], str] = lambda greeting: "",
    ) -> None:
        """Create this side of a connection, which sends `greeting` to the peer.

        `door` judges the peer by its greeting: it returns why the peer is a stranger, or an empty
        string.
        """
        self.phase = Phase.OPEN
        self.error: PeerError | None = None
        """The reason why the connection ended; None while it is open, or if both sides said
        goodbye."""
        self.farewell = False
        """Whether the last frame to be sent tells the peer why the connection ends."""
        self.round_trip: float | None = None
        """The time from the last answered ping to its answer, in seconds; None before the first
        answer."""
        self.greeting = b""
        """The greeting that the peer sent in its hello; empty until then."""
        self.strange = ""
        """The reason why the peer is a stranger; empty if it is not one."""
        self._door, self._dialled, self._since = door, dialled, now
        self._left = NEVER  # the time when this side said goodbye
        self._limits = limits or Limits()
        self._room_in = Room(self._limits.bytes_in, room_in)
        self._room_out = Room(self._limits.bytes_out, room_out)
        self._framer = Framer()
        self._outbox = Outbox(number, 4 * self._limits.calls + 64, greeting)
        self._books = Books(
            dialled=dialled,
            now=now,
            limits=self._limits,
            outbox=self._outbox,
            room_in=self._room_in,
            room_out=self._room_out,
        )
        self._open, self._alarms = self._books.open, self._books.alarms
        self._traffic = Traffic(self._books)
        self._caller = Caller(self._books, self._traffic)
        self._server = Server(self._books, self._traffic)
        self._heard = self._said = now
        self._greeted = False
        self._pings = 0
        self._pinged = now
        self._on = self._handlers()

    def _handlers(self) -> dict[Kind, Callable[[Frame, list[Event]], None]]:
        """Return the method that handles each kind of frame."""
        return {
            Kind.HELLO: lambda frame, events: self._hear_hello(frame),
            Kind.PING: lambda frame, events: self._answer_ping(frame),
            Kind.PONG: lambda frame, events: self._time_ping(frame),
            Kind.GOODBYE: lambda frame, events: self._hear_goodbye(),
            Kind.REQUEST: self._hear_request,
            Kind.LONG: self._hear_long,
            Kind.RESPONSE: self._caller.take_response,
            Kind.CHUNK: self._hear_chunk,
            Kind.END: self._traffic.take_end,
            Kind.CREDIT: self._traffic.take_credit,
            Kind.ERROR: self._hear_error,
            Kind.CANCEL: self._server.take_cancel,
        }

    def __repr__(self) -> str:
        books = self._books
        return (
            f"<Connection: {self.phase.name.lower()}, asking {books.mine}, answering"
            f" {books.theirs}, {self._room_in.used:,} bytes in, {self._room_out.used:,} out>"
        )

    # Actions of this side.

    @property
    def over(self) -> bool:
        """Whether the connection has ended; a last frame with the reason may still be unsent."""
        return self.phase is Phase.OVER

    @property
    def greeted(self) -> bool:
        """Whether the peer has said hello."""
        return self._greeted

    @property
    def asking(self) -> bool:
        """Whether this side may still make requests."""
        return self.phase is Phase.OPEN

    @property
    def idle(self) -> bool:
        """Whether no request is open in either direction."""
        return not self._open

    @property
    def sends(self) -> bool:
        """Whether any frame waits to be sent."""
        return bool(self._outbox)

    def request(self, body: bytes, deadline: float, now: float | None = None) -> int:
        """Send a request and return its number; raise Refused if too much is in flight already.

        `now` dates the request, for the estimate of how long requests wait to be sent. A caller
        that makes few requests may leave it out.
        """
        if not self.asking:
            raise Unreachable("the connection to the peer is closing; nothing was sent")
        if now is not None:
            self._books.now = now
        return self._caller.request(body, deadline)

    def cancel(self, request: int) -> None:
        """Stop waiting for the answer to a request of this side; do nothing if it has ended."""
        self._caller.cancel(request)

    def respond(self, request: int, body: bytes) -> None:
        """Answer a request of the peer; do nothing if it is no longer open."""
        self._server.respond(request, body)

    def refuse(self, request: int, why: Refused) -> None:
        """Refuse a request of the peer with a reason; do nothing if it is no longer open."""
        self._server.refuse(request, why)

    def goodbye(self) -> None:
        """Make no more requests; the connection is over when all open requests have ended."""
        if self.phase is Phase.OPEN:
            self._outbox.put(Kind.GOODBYE)
            self._left = self._books.now
        self.phase = next_phase(self.phase, LocalEvent.LEAVE)

    def refuse_all(self, why: Refused) -> list[Event]:
        """End the connection at once, and tell the peer the reason."""
        return self._end(Broken(f"this peer ended the connection: {why}"), why)

    def look_again(self) -> list[Event]:
        """Judge the peer's greeting again; if the peer is now a stranger, end the connection."""
        before, self.strange = self.strange, self._door(self.greeting) if self._greeted else ""
        if self.strange and not before:
            return self.refuse_all(Refused(Reason.STRANGER, self.strange))
        return []

    def to_send(self, most: int = TURN) -> list[Buffer]:
        """Return the next pieces to write, about `most` bytes in all; empty if nothing waits."""
        if not self._outbox:
            return []
        pieces, moved = self._outbox.take(most)
        for body in moved:
            self._traffic.sent(body)
        self._said = self._books.now
        self._check_over()
        return pieces

    # Events of the stream and of time.

    def feed(self, data: Buffer, now: float) -> list[Event]:
        """Process bytes that were read from the stream, and return the resulting events."""
        events: list[Event] = []
        if self.over:
            return events
        self._books.now = self._heard = now
        try:
            for frame in self._framer.feed(data):
                if not self.over:
                    self._on[frame.kind](frame, events)
        except MessageError as error:
            why = Refused(Reason.FAILED, f"protocol violation: {error}")
            events += self._end(Broken(f"the peer violated the protocol: {error}"), why)
        self._check_over()
        return events

    def eof(self, now: float) -> list[Event]:
        """Process the end of the stream: every request that is still open fails."""
        return self._break("the stream ended before the peer said goodbye", now)

    def lost(self, words: str, now: float) -> list[Event]:
        """Process an error that broke the stream: every request that is still open fails."""
        return self._break(f"the connection to the peer was lost: {words}", now)

    def wake(self) -> float:
        """Return the time at which `tick` must be called next; NEVER if the connection is over."""
        if self.over:
            return NEVER
        silent = self._heard + self._limits.silent_after
        return min(
            self._alarms.next(), silent, self._said + self._limits.ping_after, self._stays_until()
        )

    def tick(self, now: float) -> list[Event]:
        """Process timeouts and pings that are due at `now`, and return the resulting events."""
        events: list[Event] = []
        if self.over:
            return events
        self._books.now = now
        for request in self._alarms.pop(now):
            side = self._caller if self._books.is_mine(request) else self._server
            side.expire(self._open[request], events)
        if now >= self._heard + self._limits.silent_after:
            silence = f"silent for {now - self._heard:.1f} s"
            return events + self._end(Broken(f"the peer has been {silence}, and counts as gone"))
        if now >= self._stays_until():
            return events + self.refuse_all(self._why_it_goes())
        if now >= self._said + self._limits.ping_after:
            self._ping(now)
        self._check_over()
        return events

    # Pings.

    def _ping(self, now: float) -> None:
        self._said = now  # the next ping is due from now on, even if this one cannot be sent
        if not self._outbox.urgent:
            self._pings += 1
            self._pinged = now
            self._outbox.put(Kind.PING, 0, NUMBER.pack(self._pings))

    def _answer_ping(self, frame: Frame) -> None:
        self._outbox.put(Kind.PONG, 0, bytes(frame.payload))
        self._outbox.check()

    def _time_ping(self, frame: Frame) -> None:
        (number,) = NUMBER.unpack(frame.payload)
        if number > self._pings:
            raise MessageError(
                f"a pong came for ping {number}, but only {self._pings} pings were sent"
            )
        if number == self._pings:
            self.round_trip = self._books.now - self._pinged

    # Requests, either way.

    def _hear_request(self, frame: Frame, events: list[Event]) -> None:
        self._server.take_request(frame, self.phase, events)

    def _hear_long(self, frame: Frame, events: list[Event]) -> None:
        if self._books.is_mine(frame.request):
            self._caller.take_long(frame, events)
        else:
            self._server.take_long(frame, self.phase)

    def _hear_chunk(self, frame: Frame, events: list[Event]) -> None:
        exchange = self._traffic.take_chunk(frame)
        if exchange is not None and exchange.incoming is not None:
            side = self._caller if self._books.is_mine(frame.request) else self._server
            side.overflow(exchange, exchange.incoming.length, events)

    def _hear_error(self, frame: Frame, events: list[Event]) -> None:
        why = Refused.from_bytes(frame.payload)
        if frame.request:
            self._caller.take_error(frame, why, events)
        else:
            events += self._end(why)

    # Greeting, goodbye and end.

    def _hear_hello(self, frame: Frame) -> None:
        self._greeted = True
        self.greeting = bytes(frame.payload[NUMBER.size :])
        self.strange = self._door(self.greeting)
        if self.strange:
            self._books.serving = self._limits.for_strangers()

    def _why_it_goes(self) -> Refused:
        if not self._greeted:
            return Refused(Reason.STRANGER, "no hello arrived in time")
        if self.phase is Phase.LEAVING:
            return Refused(Reason.LEAVING, "no reply to the goodbye arrived in time")
        return Refused(Reason.STRANGER, self.strange)

    def _stays_until(self) -> float:
        """Return when to drop the peer unless it makes progress; NEVER if it may stay.

        A peer is dropped if it sends no hello, does not reply to a goodbye, or is a stranger that
        opened the connection. A stranger that this side dialled may stay.
        """
        if not self._greeted:
            return self._since + self._limits.greeting_within
        if self.phase is Phase.LEAVING and not self._open:
            return self._left + self._limits.silent_after
        strange = self.strange and not self._dialled
        return self._since + self._limits.stranger_within if strange else NEVER

    def _hear_goodbye(self) -> None:
        self.goodbye()
        self.phase = next_phase(self.phase, Kind.GOODBYE)

    def _check_over(self) -> None:
        if self.phase is Phase.DRAINING and not self._open and not self._outbox:
            self.phase = Phase.OVER

    def _break(self, words: str, now: float) -> list[Event]:
        self._books.now = now
        if self.phase is Phase.DRAINING and not self._open:
            self.phase = Phase.OVER  # a proper end, in which the peer closed the stream first
        return self._end(Broken(words))

    def _end(self, error: PeerError, why: Refused | None = None) -> list[Event]:
        """End the connection at once: every open request fails or is cancelled."""
        events: list[Event] = []
        if self.over:
            return events
        self.phase = Phase.OVER
        self.error = error
        for request, exchange in list(self._open.items()):
            self._books.leave(exchange)
            if exchange.state in CALLER:
                events.append(Failed(request, failure(error, exchange)))
            elif exchange.state is not LinkState.TAKING:
                events.append(Cancelled(request))
        self._outbox.clear()
        if why is not None:
            self.farewell = True
            self._outbox.put(Kind.ERROR, 0, why.to_bytes())
        return events
