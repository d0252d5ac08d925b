"""The bodies of one connection in transit, both ways, and their effect on the request table.

A short body is one frame; a long one moves by chunks and credit. Room is reserved as bytes arrive:
an announced body costs nothing yet, and so keeps no other one out. A body of the peer's request may
not stand still for longer than `stalled_after` seconds; a request of this side has its own deadline
instead.
"""

from giaann_p2p.net.bodies import Incoming, Outgoing
from giaann_p2p.net.books import Books
from giaann_p2p.net.events import Event, Requested, Responded
from giaann_p2p.net.exchange import Exchange
from giaann_p2p.net.frames import NUMBER, Frame, Kind
from giaann_p2p.net.states import CALLER, Deed, LinkState, next_state


class Traffic:
    """Moves the bodies of one connection, and updates the state of their requests."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def send(self, exchange: Exchange, whole: Kind, body: bytes) -> None:
        """Queue a body to be sent; room for it is already reserved."""
        exchange.outgoing = Outgoing(whole, exchange.request, body)
        self._books.outbox.add(exchange.outgoing)

    def expect(self, exchange: Exchange, incoming: Incoming) -> None:
        """Begin to receive a long body."""
        exchange.incoming = incoming
        self.put_off(exchange)
        self._give_credit(exchange.request, incoming)

    def sent(self, body: Outgoing) -> None:
        """Note that a body had a turn."""
        books, exchange = self._books, self._books.open[body.request]
        books.backlog.took_turn(body.request, books.now)
        if not body.complete:
            self.put_off(exchange)
        else:
            books.room_out.give(body.nbytes)
            exchange.outgoing = None
            exchange.state = next_state(exchange.state, Deed.SENT)
            if exchange.state is LinkState.DONE:
                books.leave(exchange)

    def take_chunk(self, frame: Frame) -> Exchange | None:
        """Append a chunk to its body; return the request if there is no room for the chunk."""
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
        """Complete a long body."""
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
        """Take credit for a body that is being sent."""
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
        """Note that a body moves, which postpones its stall timer."""
        if exchange.state not in CALLER:
            books = self._books
            books.alarms.set(exchange.request, books.now + books.limits.stalled_after)

    def _give_credit(self, request: int, incoming: Incoming) -> None:
        more = incoming.grant()
        if more:
            self._books.outbox.put(Kind.CREDIT, request, NUMBER.pack(more))
            self._books.outbox.check()
