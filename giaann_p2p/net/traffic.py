"""The bodies of requests and responses in transit on one connection, in both directions.

A short body is one frame; a long one moves in chunks, as credit allows. Room is reserved for bytes
as they arrive, so a body that is announced but does not arrive takes no room. A body of the peer's
request, or of the response to it, may stall for at most `stalled_after` seconds, and may not be
slower than `slowest` in all; a request of this side has its own deadline instead. Only moving bytes
are progress: credit is not, unless it lets a waiting body go on. Otherwise a peer could hold a
response in memory without end by a byte of credit now and then.
"""

from giaann_p2p.net.bodies import Incoming, Outgoing
from giaann_p2p.net.books import Books
from giaann_p2p.net.events import Event, Requested, Responded
from giaann_p2p.net.exchange import Exchange
from giaann_p2p.net.frames import NUMBER, Frame, Kind
from giaann_p2p.net.states import CALLER, LinkState, LocalEvent, next_state


class Traffic:
    """Moves the bodies of one connection, and updates the states of their requests."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def send(self, exchange: Exchange, whole: Kind, body: bytes) -> None:
        """Queue a body to be sent, for which the caller has reserved room."""
        exchange.outgoing = Outgoing(whole, exchange.request, body)
        exchange.until = self._time_for(len(body))
        self._books.outbox.add(exchange.outgoing)

    def expect(self, exchange: Exchange, incoming: Incoming) -> None:
        """Begin to receive a long body, and give the sender its first credit."""
        exchange.incoming = incoming
        exchange.until = self._time_for(incoming.length)
        self.put_off(exchange)
        self._give_credit(exchange.request, incoming)

    def sent(self, body: Outgoing) -> None:
        """Note that part of a body was taken for sending; finish the request after the last."""
        books, exchange = self._books, self._books.open[body.request]
        books.backlog.took_turn(body.request, books.now)
        if not body.complete:
            self.put_off(exchange)
        else:
            books.room_out.give(body.nbytes)
            exchange.outgoing = None
            exchange.state = next_state(exchange.state, LocalEvent.SENT)
            if exchange.state is LinkState.DONE:
                books.leave(exchange)

    def take_chunk(self, frame: Frame) -> Exchange | None:
        """Append a chunk to its body; return the request only if there is no room for the chunk."""
        exchange = self._books.known(frame)
        if exchange is None:
            return None
        exchange.state = next_state(exchange.state, frame.kind)
        if exchange.incoming is not None:
            if not self._books.hold(exchange, len(frame.payload)):
                return exchange
            exchange.incoming.take(frame.payload)
            self._give_credit(frame.request, exchange.incoming)
        self.put_off(exchange)
        return None

    def take_end(self, frame: Frame, events: list[Event]) -> None:
        """Complete a long body: report a request to be served, or the response to a request."""
        exchange = self._books.known(frame)
        if exchange is None or exchange.incoming is None:
            return
        following = next_state(exchange.state, frame.kind)
        body = exchange.incoming.finish(frame.payload)  # if invalid, the request stays open
        exchange.state = following
        exchange.incoming = None
        if exchange.state is LinkState.DONE:
            self._books.leave(exchange)
            events.append(Responded(frame.request, body))
        else:
            self._books.alarms.drop(frame.request)
            events.append(Requested(frame.request, body))

    def take_credit(self, frame: Frame, events: list[Event]) -> None:
        """Process credit from the peer, which lets this side send more of a body."""
        (more,) = NUMBER.unpack(frame.payload)
        exchange = self._books.known(frame)
        if exchange is None:
            return
        exchange.state = next_state(exchange.state, frame.kind)
        body = exchange.outgoing
        if body is not None:
            was_parked = body.parked
            body.credit(more)
            if was_parked and not body.parked:
                self._books.outbox.add(body)
                self.put_off(exchange)

    def put_off(self, exchange: Exchange) -> None:
        """Restart the stall timer of a peer's request, because its body has made progress."""
        if exchange.state not in CALLER:
            books = self._books
            stalled = books.now + books.limits.stalled_after
            books.alarms.set(exchange.request, min(stalled, exchange.until))

    def _time_for(self, size: int) -> float:
        """Return the time until which a body of this size may take."""
        limits = self._books.limits
        return self._books.now + limits.stalled_after + size / limits.slowest

    def _give_credit(self, request: int, incoming: Incoming) -> None:
        more = incoming.grant()
        if more:
            self._books.outbox.put(Kind.CREDIT, request, NUMBER.pack(more))
            self._books.outbox.check()
