"""The client side of a connection: requests of this side, until they are answered or given up."""

from giaann_p2p.errors import PeerError
from giaann_p2p.net.bodies import Incoming
from giaann_p2p.net.books import Books
from giaann_p2p.net.errors import Reason, Refused, TimedOut, Unreachable
from giaann_p2p.net.events import Event, Failed, Responded
from giaann_p2p.net.exchange import Exchange
from giaann_p2p.net.frames import NUMBER, Frame, Kind
from giaann_p2p.net.refusals import no_room, too_long, too_slow
from giaann_p2p.net.states import CALLER, LocalEvent, next_state
from giaann_p2p.net.traffic import Traffic


class Caller:
    """Sends this side's requests and takes the responses, by rules 4 to 7 of states.py."""

    def __init__(self, books: Books, traffic: Traffic) -> None:
        self._books = books
        self._traffic = traffic

    def request(self, body: bytes, deadline: float) -> int:
        """Send a request and return its number; raise Refused if too much is in flight already."""
        books, limits, size = self._books, self._books.limits, len(body)
        if size > limits.longest:
            raise too_long("a request", size, limits.longest)
        if books.mine >= limits.calls:
            raise Refused(
                Reason.BUSY, f"{limits.calls:,} calls to the peer are open already; try again later"
            )
        if books.backlog.wait > limits.unsent_for:
            raise too_slow(limits.unsent_for)
        if not books.room_out.take(size):
            raise no_room("a request", size, "to the peer")
        exchange = books.enter_mine()
        books.backlog.add(exchange.request, size, books.now)
        self._traffic.send(exchange, Kind.REQUEST, body)
        books.alarms.set(exchange.request, deadline)
        return exchange.request

    def cancel(self, request: int) -> None:
        """Stop waiting for the answer to a request of this side; do nothing if it has ended."""
        exchange = self._books.open.get(request)
        if exchange is not None and exchange.state in CALLER:
            self._abandon(exchange)

    def expire(self, exchange: Exchange, events: list[Event]) -> None:
        """Fail a request of this side because its deadline has passed."""
        self._abandon(exchange)
        events.append(Failed(exchange.request, TimedOut("the peer has not answered in time")))

    def take_response(self, frame: Frame, events: list[Event]) -> None:
        """Complete a request with a response that fits into one frame."""
        exchange = self._books.known(frame)
        if exchange is not None:
            next_state(exchange.state, frame.kind)
            self._books.leave(exchange)
            events.append(Responded(frame.request, bytes(frame.payload)))

    def take_long(self, frame: Frame, events: list[Event]) -> None:
        """Begin to receive a long response; fail the request if the response is too large."""
        (size,) = NUMBER.unpack(frame.payload)
        exchange = self._books.known(frame)
        if exchange is None:
            return
        exchange.state = next_state(exchange.state, frame.kind)
        books, limits = self._books, self._books.limits
        incoming = Incoming(size, limits.window)
        if size > limits.longest:
            why = too_long("the response", size, limits.longest)
        elif not books.room_in.fits(size):
            why = no_room("a response", size)
        else:
            self._traffic.expect(exchange, incoming)
            return
        self._abandon(exchange)
        events.append(Failed(frame.request, why))

    def overflow(self, exchange: Exchange, size: int, events: list[Event]) -> None:
        """Fail a request of this side because there is no room for the rest of its response."""
        self._abandon(exchange)
        events.append(Failed(exchange.request, no_room("a response", size)))

    def take_error(self, frame: Frame, why: Refused, events: list[Event]) -> None:
        """Fail a request because the peer says that it will send no response."""
        exchange = self._books.known(frame)
        if exchange is not None:
            next_state(exchange.state, frame.kind)
            self._books.leave(exchange)
            events.append(Failed(frame.request, why))

    def _abandon(self, exchange: Exchange) -> None:
        """Give a request up; send the peer a cancel if any of it may have been sent."""
        body = exchange.outgoing
        next_state(exchange.state, LocalEvent.DROP)
        self._books.leave(exchange)
        if body is None or body.announced:
            self._books.outbox.put(Kind.CANCEL, exchange.request)


def failure(error: PeerError, exchange: Exchange) -> PeerError:
    """Return the error for a request that was open when its connection ended.

    Each request gets a new error object, because a shared one would collect their tracebacks.
    """
    if exchange.outgoing is not None and not exchange.outgoing.announced:
        return Unreachable(f"nothing was sent: {error}")
    if isinstance(error, Refused):
        return Refused(error.reason, str(error))
    return type(error)(str(error))
