"""One connection: requests both ways over one ordered stream of bytes, without any I/O.

Whoever drives it feeds what was read, sends what `to_send` gives, and calls `tick` when `wake`
says. Every request that was made ends in exactly one `Responded` or `Failed`, at its deadline at
the latest, unless it is cancelled; every `Requested` may be answered until it was `Cancelled`.
Whatever the peer sends, no other exception than a PeerError inside `Failed` comes of it, and no
more is held than the limits allow. The rules of the road are in states.py.
"""

from collections.abc import Callable

from giaann_p2p.errors import MessageError, PeerError
from giaann_p2p.net.alarms import NEVER, Alarms
from giaann_p2p.net.bodies import Incoming, Outgoing
from giaann_p2p.net.errors import Broken, Reason, Refused, TimedOut, Unreachable
from giaann_p2p.net.events import Cancelled, Event, Failed, Requested, Responded
from giaann_p2p.net.frames import NUMBER, Buffer, Frame, Framer, Kind
from giaann_p2p.net.limits import Limits
from giaann_p2p.net.outbox import Outbox
from giaann_p2p.net.room import Room
from giaann_p2p.net.states import CALLER, Deed, Phase, State, next_phase, next_state

TURN = 1 << 20
"""Bytes that `to_send` gives at once, about: what is under way cannot be overtaken."""


class _Exchange:
    """A request, from when it is known here until it is done."""

    __slots__ = ("held", "incoming", "outgoing", "state")

    def __init__(self, state: State) -> None:
        self.state = state
        self.incoming: Incoming | None = None
        self.outgoing: Outgoing | None = None
        self.held = 0  # bytes taken of the room for what comes in


class Connection:
    """One side of it; `number` is to be drawn anew for each."""

    def __init__(
        self,
        *,
        dialled: bool,
        number: int,
        now: float,
        limits: Limits | None = None,
        room_in: Room | None = None,
        room_out: Room | None = None,
    ) -> None:
        self.phase = Phase.OPEN
        self.error: PeerError | None = None
        """Why it is over, unless both sides left."""
        self.farewell = False
        """Whether the peer is told why."""
        self.round_trip: float | None = None
        """Seconds from the last ping to its answer."""
        self.limits = limits or Limits()
        self._room_in = Room(self.limits.bytes_in, room_in)
        self._room_out = Room(self.limits.bytes_out, room_out)
        self._framer = Framer()
        self._outbox = Outbox(number)
        self._open: dict[int, _Exchange] = {}
        self._mine, self._theirs = 0, 0  # how many of the open requests
        self._next = 1 if dialled else 2
        self._last = 0  # the last request that the peer began
        self._alarms = Alarms()
        self._now = self._heard = self._said = now
        self._greeted = False
        self._pings = 0
        self._pinged = now
        self._on: dict[Kind, Callable[[Frame, list[Event]], None]] = {
            Kind.HELLO: lambda frame, events: self._hear_hello(),
            Kind.PING: lambda frame, events: self._answer_ping(frame),
            Kind.PONG: lambda frame, events: self._time_ping(frame),
            Kind.GOODBYE: lambda frame, events: self._hear_goodbye(),
            Kind.REQUEST: self._begin,
            Kind.LONG: self._begin_long,
            Kind.RESPONSE: self._finish,
            Kind.CHUNK: self._take_chunk,
            Kind.END: self._take_end,
            Kind.CREDIT: self._take_credit,
            Kind.ERROR: self._take_error,
            Kind.CANCEL: self._take_cancel,
        }

    def __repr__(self) -> str:
        return (
            f"<Connection: {self.phase.name.lower()}, asking {self._mine}, answering"
            f" {self._theirs}, {self._room_in.used:,} bytes in, {self._room_out.used:,} out>"
        )

    # What this side does.

    @property
    def over(self) -> bool:
        """Whether nothing more will happen; what is still to be sent says why."""
        return self.phase is Phase.OVER

    @property
    def greeted(self) -> bool:
        """Whether the peer has said anything."""
        return self._greeted

    @property
    def asking(self) -> bool:
        """Whether requests may be made."""
        return self.phase is Phase.OPEN

    @property
    def idle(self) -> bool:
        """Whether no request is open either way."""
        return not self._open

    def request(self, body: bytes, deadline: float) -> int:
        """Ask; return the request's number. Refused if there is too much under way already."""
        if not self.asking:
            raise Unreachable("the connection to the peer is closing; nothing was sent")
        limits = self.limits
        if len(body) > limits.longest:
            raise Refused(Reason.TOO_LONG, _too_long("a request", len(body), limits))
        if self._mine >= limits.calls:
            raise Refused(Reason.BUSY, f"{limits.calls:,} calls to the peer are open already")
        if not self._room_out.take(len(body)):
            raise Refused(Reason.BUSY, f"no room for a request of {len(body):,} bytes to the peer")
        number, self._next = self._next, self._next + 2
        exchange = self._enter(number, State.ASKING)
        self._send(exchange, Outgoing(Kind.REQUEST, number, body))
        self._alarms.set(number, deadline)
        return number

    def cancel(self, request: int) -> None:
        """No longer wait for an answer; nothing if there was one."""
        exchange = self._open.get(request)
        if exchange is not None and exchange.state in CALLER:
            self._abandon(request, exchange)

    def respond(self, request: int, body: bytes) -> None:
        """Answer; nothing if nobody waits for it any more."""
        exchange = self._open.get(request)
        if exchange is None:
            return
        next_state(exchange.state, Deed.ANSWER)
        if len(body) > self.limits.longest:
            words = _too_long("the response", len(body), self.limits)
            self.refuse(request, Refused(Reason.TOO_LONG, words))
        elif not self._room_out.take(len(body)):
            words = f"no room for a response of {len(body):,} bytes beside others"
            self.refuse(request, Refused(Reason.BUSY, words))
        else:
            exchange.state = State.ANSWERING
            self._send(exchange, Outgoing(Kind.RESPONSE, request, body))
            self._alarms.set(request, self._now + self.limits.stalled_after)

    def refuse(self, request: int, why: Refused) -> None:
        """Say that there will be no answer; nothing if nobody waits for it any more."""
        exchange = self._open.get(request)
        if exchange is not None:
            next_state(exchange.state, Deed.REFUSE)
            self._leave(request)
            self._outbox.put(Kind.ERROR, request, why.to_bytes())

    def goodbye(self) -> None:
        """Ask nothing more; the connection is over when all that is open is done."""
        if self.phase is Phase.OPEN:
            self._outbox.put(Kind.GOODBYE)
        self.phase = next_phase(self.phase, Deed.LEAVE)

    def refuse_all(self, why: Refused) -> list[Event]:
        """End the connection at once, and tell the peer why."""
        return self._end(Broken(f"this peer ended the connection: {why}"), why)

    def to_send(self, most: int = TURN) -> list[Buffer]:
        """Return the next bytes to write, about so many, in pieces; none if there is nothing."""
        if not self._outbox:
            return []
        pieces, moved = self._outbox.take(most)
        for body in moved:
            self._note_turn(body)
        self._said = self._now
        self._check_over()
        return pieces

    # What happens to it.

    def feed(self, data: Buffer, now: float) -> list[Event]:
        """Take in what was read."""
        events: list[Event] = []
        if self.over:
            return events
        self._now = self._heard = now
        try:
            for frame in self._framer.feed(data):
                self._take(frame, events)
        except MessageError as error:
            why = Refused(Reason.FAILED, f"what you sent cannot be: {error}")
            events += self._end(Broken(f"the peer broke the rules: {error}"), why)
        self._check_over()
        return events

    def eof(self, now: float) -> list[Event]:
        """Take in that the stream has ended: no request that is open has succeeded."""
        return self._break("the stream ended before the peer said goodbye", now)

    def lost(self, words: str, now: float) -> list[Event]:
        """Take in that the stream cannot be read or written any more."""
        return self._break(f"the connection to the peer was lost: {words}", now)

    def wake(self) -> float:
        """Return when `tick` is to be called next."""
        if self.over:
            return NEVER
        silent = self._heard + self.limits.silent_after
        return min(self._alarms.next(), silent, self._said + self.limits.ping_after)

    def tick(self, now: float) -> list[Event]:
        """Take in that time has passed."""
        events: list[Event] = []
        if self.over:
            return events
        self._now = now
        for request in self._alarms.pop(now):
            self._expire(request, events)
        if now >= self._heard + self.limits.silent_after:
            silence = f"silent for {now - self._heard:.1f} s"
            return events + self._end(Broken(f"the peer is {silence}, and counts as gone"))
        if now >= self._said + self.limits.ping_after:
            self._ping()
        self._check_over()
        return events

    def _take(self, frame: Frame, events: list[Event]) -> None:
        if not self.over:
            self._on[frame.kind](frame, events)

    # Pings.

    def _ping(self) -> None:
        self._said = self._now  # the next is due from now on, even if this one cannot be sent
        if not self._outbox.urgent:
            self._pings += 1
            self._pinged = self._now
            self._outbox.put(Kind.PING, 0, NUMBER.pack(self._pings))

    def _answer_ping(self, frame: Frame) -> None:
        self._outbox.put(Kind.PONG, 0, bytes(frame.payload))
        self._check_urgent()

    def _time_ping(self, frame: Frame) -> None:
        (number,) = NUMBER.unpack(frame.payload)
        if number > self._pings:
            raise MessageError(f"an answer to ping {number}, of {self._pings}")
        if number == self._pings:
            self.round_trip = self._now - self._pinged

    # Requests of the peer.

    def _begin(self, frame: Frame, events: list[Event]) -> None:
        size = len(frame.payload)
        exchange = self._admit(frame, size)
        if exchange is not None:
            events.append(Requested(frame.request, bytes(frame.payload)))

    def _admit(self, frame: Frame, size: int) -> _Exchange | None:
        """Take a request on, or refuse it; MessageError if the peer may not make it."""
        number, limits = frame.request, self.limits
        next_phase(self.phase, frame.kind)
        if number <= self._last or (number - self._next) % 2 == 0:
            raise MessageError(f"request {number} begins after request {self._last}")
        self._last = number
        exchange = self._enter(number, next_state(State.UNKNOWN, frame.kind))
        if size > limits.longest:
            why = Refused(Reason.TOO_LONG, _too_long("a request", size, limits))
        elif self._theirs > limits.calls:
            why = Refused(Reason.BUSY, f"{limits.calls:,} of your requests are open already")
        elif not self._room_in.take(size):
            why = Refused(Reason.BUSY, f"no room for a request of {size:,} bytes beside others")
        else:
            exchange.held = size
            return exchange
        self.refuse(number, why)
        self._check_urgent()
        return None

    def _begin_long(self, frame: Frame, events: list[Event]) -> None:
        (size,) = NUMBER.unpack(frame.payload)
        if self._is_mine(frame.request):
            known = self._known(frame)
            if known is not None:
                known.state = next_state(known.state, frame.kind)
                self._expect_response(frame.request, known, size, events)
            return
        incoming = Incoming(size, self.limits.window)
        exchange = self._admit(frame, size)
        if exchange is not None:
            exchange.incoming = incoming
            self._alarms.set(frame.request, self._now + self.limits.stalled_after)
            self._give_credit(frame.request, incoming)

    def _take_cancel(self, frame: Frame, events: list[Event]) -> None:
        exchange = self._known(frame)
        if exchange is not None:
            state, exchange.state = exchange.state, next_state(exchange.state, frame.kind)
            self._leave(frame.request)
            if state is not State.TAKING:
                events.append(Cancelled(frame.request))

    # Answers of the peer.

    def _finish(self, frame: Frame, events: list[Event]) -> None:
        exchange = self._known(frame)
        if exchange is not None:
            next_state(exchange.state, frame.kind)
            self._leave(frame.request)
            events.append(Responded(frame.request, bytes(frame.payload)))

    def _expect_response(
        self, request: int, exchange: _Exchange, size: int, events: list[Event]
    ) -> None:
        incoming = Incoming(size, self.limits.window)
        if size > self.limits.longest:
            why = Refused(Reason.TOO_LONG, _too_long("the response", size, self.limits))
        elif not self._room_in.take(size):
            why = Refused(Reason.BUSY, f"no room for a response of {size:,} bytes beside others")
        else:
            exchange.held = size
            exchange.incoming = incoming
            self._give_credit(request, incoming)
            return
        self._abandon(request, exchange)
        events.append(Failed(request, why))

    def _take_error(self, frame: Frame, events: list[Event]) -> None:
        why = Refused.from_bytes(frame.payload)
        if not frame.request:
            events += self._end(why)
            return
        exchange = self._known(frame)
        if exchange is not None:
            next_state(exchange.state, frame.kind)
            self._leave(frame.request)
            events.append(Failed(frame.request, why))

    # Long bodies, either way.

    def _take_chunk(self, frame: Frame, events: list[Event]) -> None:
        exchange = self._known(frame)
        if exchange is not None:
            exchange.state = next_state(exchange.state, frame.kind)
            if exchange.incoming is not None:
                exchange.incoming.take(frame.payload)
                self._give_credit(frame.request, exchange.incoming)
            self._put_off(frame.request, exchange)

    def _take_end(self, frame: Frame, events: list[Event]) -> None:
        exchange = self._known(frame)
        if exchange is None or exchange.incoming is None:
            return
        exchange.state = next_state(exchange.state, frame.kind)
        body = exchange.incoming.finish(frame.payload)
        exchange.incoming = None
        if exchange.state is State.DONE:
            self._leave(frame.request)
            events.append(Responded(frame.request, body))
        else:
            self._alarms.drop(frame.request)
            events.append(Requested(frame.request, body))

    def _take_credit(self, frame: Frame, events: list[Event]) -> None:
        (more,) = NUMBER.unpack(frame.payload)
        exchange = self._known(frame)
        if exchange is None:
            return
        exchange.state = next_state(exchange.state, frame.kind)
        body = exchange.outgoing
        if body is not None:
            was_parked = body.parked
            body.credit(more)
            if was_parked and not body.parked:
                self._outbox.add(body)
            self._put_off(frame.request, exchange)

    def _give_credit(self, request: int, incoming: Incoming) -> None:
        more = incoming.grant()
        if more:
            self._outbox.put(Kind.CREDIT, request, NUMBER.pack(more))
            self._check_urgent()

    def _put_off(self, request: int, exchange: _Exchange) -> None:
        """Note that a body moves; what this side asked for has its own deadline."""
        if exchange.state not in CALLER:
            self._alarms.set(request, self._now + self.limits.stalled_after)

    def _note_turn(self, body: Outgoing) -> None:
        exchange = self._open[body.request]
        if not body.complete:
            self._put_off(body.request, exchange)
        else:
            self._room_out.give(body.nbytes)
            exchange.outgoing = None
            exchange.state = next_state(exchange.state, Deed.SENT)
            if exchange.state is State.DONE:
                self._leave(body.request)

    # The books.

    def _enter(self, request: int, state: State) -> _Exchange:
        exchange = self._open[request] = _Exchange(state)
        if state in CALLER:
            self._mine += 1
        else:
            self._theirs += 1
        return exchange

    def _leave(self, request: int) -> _Exchange:
        """Forget a request, and give back all that it held."""
        exchange = self._open.pop(request)
        if self._is_mine(request):
            self._mine -= 1
        else:
            self._theirs -= 1
        self._alarms.drop(request)
        if exchange.held:
            self._room_in.give(exchange.held)
        if exchange.outgoing is not None:
            self._room_out.give(exchange.outgoing.nbytes)
            self._outbox.drop(exchange.outgoing)
        return exchange

    def _abandon(self, request: int, exchange: _Exchange) -> None:
        """Give a call up, and tell the peer if it may have heard of it."""
        body = exchange.outgoing
        next_state(exchange.state, Deed.DROP)
        self._leave(request)
        if body is None or body.announced:
            self._outbox.put(Kind.CANCEL, request)

    def _send(self, exchange: _Exchange, body: Outgoing) -> None:
        exchange.outgoing = body
        self._outbox.add(body)

    def _is_mine(self, request: int) -> bool:
        return request % 2 == self._next % 2

    def _known(self, frame: Frame) -> _Exchange | None:
        """Return a request that is open, None if it is done; MessageError if it never was."""
        exchange = self._open.get(frame.request)
        if exchange is None:
            first = self._next if self._is_mine(frame.request) else self._last + 1
            if not 0 < frame.request < first:
                name = frame.kind.name.lower()
                raise MessageError(f"{name} of request {frame.request}, which has not begun")
        return exchange

    def _expire(self, request: int, events: list[Event]) -> None:
        exchange = self._open[request]
        if exchange.state in CALLER:
            self._abandon(request, exchange)
            events.append(Failed(request, TimedOut("the peer has not answered in time")))
            return
        after = f"nothing of it moved for {self.limits.stalled_after:g} s"
        if exchange.state is State.ANSWERING:
            events.append(Cancelled(request))
        self.refuse(request, Refused(Reason.STALLED, after))

    def _hear_hello(self) -> None:
        self._greeted = True

    def _hear_goodbye(self) -> None:
        self.goodbye()
        self.phase = next_phase(self.phase, Kind.GOODBYE)

    def _check_over(self) -> None:
        if self.phase is Phase.DRAINING and not self._open and not self._outbox:
            self.phase = Phase.OVER

    def _check_urgent(self) -> None:
        """Stop a peer that asks and asks and never reads what it is told."""
        most = 4 * self.limits.calls + 64
        if self._outbox.urgent > most:
            raise MessageError(f"{most:,} short answers wait for you to read them")

    def _break(self, words: str, now: float) -> list[Event]:
        self._now = now
        if self.phase is Phase.DRAINING and not self._open:
            self.phase = Phase.OVER  # all was done: the peer was only the first to close
        return self._end(Broken(words))

    def _end(self, error: PeerError, why: Refused | None = None) -> list[Event]:
        """End at once: all that is open has failed."""
        events: list[Event] = []
        if self.over:
            return events
        self.phase = Phase.OVER
        self.error = error
        for request in list(self._open):
            exchange = self._leave(request)
            if exchange.state in CALLER:
                events.append(Failed(request, _failure(error, exchange)))
            elif exchange.state is not State.TAKING:
                events.append(Cancelled(request))
        self._outbox.clear()
        if why is not None:
            self.farewell = True
            self._outbox.put(Kind.ERROR, 0, why.to_bytes())
        return events


def _failure(error: PeerError, exchange: _Exchange) -> PeerError:
    """Return a new error for each call, so that none holds another's traceback."""
    if exchange.outgoing is not None and not exchange.outgoing.announced:
        return Unreachable(f"nothing was sent: {error}")
    if isinstance(error, Refused):
        return Refused(error.reason, str(error))
    return type(error)(str(error))


def _too_long(what: str, size: int, limits: Limits) -> str:
    return f"{what} of {size:,} bytes; {limits.longest:,} is the most. Ask for less at a time"
