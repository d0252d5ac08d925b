"""The server side of a connection: requests of the peer, until they are answered or cancelled."""

from giaann_p2p.net.bodies import Incoming
from giaann_p2p.net.books import Books
from giaann_p2p.net.errors import Reason, Refused
from giaann_p2p.net.events import Cancelled, Event, Requested
from giaann_p2p.net.exchange import Exchange
from giaann_p2p.net.frames import NUMBER, Frame, Kind
from giaann_p2p.net.refusals import no_room, too_long
from giaann_p2p.net.states import LinkState, LocalEvent, Phase, next_phase, next_state
from giaann_p2p.net.traffic import Traffic


class Server:
    """Takes the peer's requests and sends the responses, by rules 8 to 10 of states.py."""

    def __init__(self, books: Books, traffic: Traffic) -> None:
        self._books = books
        self._traffic = traffic

    def respond(self, request: int, body: bytes) -> None:
        """Answer a request of the peer; do nothing if it is no longer open."""
        books, limits, size = self._books, self._books.serving, len(body)
        exchange = books.open.get(request)
        if exchange is None:
            return
        following = next_state(exchange.state, LocalEvent.ANSWER)
        if size > limits.longest:
            self.refuse(request, too_long("the response", size, limits.longest))
        elif not books.room_out.take(size):
            self.refuse(request, no_room("a response", size))
        else:
            exchange.state = following
            self._traffic.send(exchange, Kind.RESPONSE, body)
            self._traffic.put_off(exchange)

    def refuse(self, request: int, why: Refused) -> None:
        """Refuse a request of the peer with a reason; do nothing if it is no longer open."""
        exchange = self._books.open.get(request)
        if exchange is not None:
            next_state(exchange.state, LocalEvent.REFUSE)
            self._books.leave(exchange)
            self._books.outbox.put(Kind.ERROR, request, why.to_bytes())

    def expire(self, exchange: Exchange, events: list[Event]) -> None:
        """Refuse a peer's request because its body, or its response's body, has stalled."""
        limits = self._books.serving
        after = f"the transfer made no progress for {limits.stalled_after:g} s"
        if self._books.now >= exchange.until:
            after = f"the transfer was slower than {limits.slowest:,} bytes a second"
        if exchange.state is LinkState.ANSWERING:
            events.append(Cancelled(exchange.request))
        self.refuse(exchange.request, Refused(Reason.STALLED, after))

    def take_request(self, frame: Frame, phase: Phase, events: list[Event]) -> None:
        """Accept or refuse a one-frame request; raise MessageError if it breaks a rule."""
        size = len(frame.payload)
        exchange = self._admit(frame, phase, size)
        if exchange is not None:
            self._books.hold(exchange, size)
            events.append(Requested(frame.request, bytes(frame.payload)))

    def take_long(self, frame: Frame, phase: Phase) -> None:
        """Begin to receive a long request, or refuse it; raise MessageError if it breaks a rule."""
        (size,) = NUMBER.unpack(frame.payload)
        incoming = Incoming(size, self._books.serving.window)
        exchange = self._admit(frame, phase, size)
        if exchange is not None:
            self._traffic.expect(exchange, incoming)

    def overflow(self, exchange: Exchange, size: int, events: list[Event]) -> None:
        """Refuse a peer's request because there is no room for the rest of it."""
        self.refuse(exchange.request, no_room("a request", size))
        self._books.outbox.check()

    def take_cancel(self, frame: Frame, events: list[Event]) -> None:
        """Drop a request because the peer no longer waits for the answer."""
        exchange = self._books.known(frame)
        if exchange is not None:
            state, exchange.state = exchange.state, next_state(exchange.state, frame.kind)
            self._books.leave(exchange)
            if state is not LinkState.TAKING:
                events.append(Cancelled(frame.request))

    def _admit(self, frame: Frame, phase: Phase, size: int) -> Exchange | None:
        """Open a peer's request if the limits allow it; otherwise refuse it and return None."""
        books, limits = self._books, self._books.serving
        next_phase(phase, frame.kind)
        exchange = books.enter_theirs(frame.request, next_state(LinkState.UNKNOWN, frame.kind))
        if size > limits.longest:
            why = too_long("a request", size, limits.longest)
        elif books.theirs > limits.calls:
            words = f"{limits.calls:,} requests of the caller are open already; try again later"
            why = Refused(Reason.BUSY, words)
        elif not books.room_in.fits(size):
            why = no_room("a request", size)
        else:
            return exchange
        self.refuse(frame.request, why)
        books.outbox.check()
        return None
