"""The bodies of one connection under way, both ways, and what they bring about in the books.

A short body is one frame; a long one moves by chunks and credit. It takes room as it comes: what is
only announced costs nothing, and so keeps nobody else out. What belongs to a request of the
peer may not stand still for longer than `stalled_after`; what this side asked for has a deadline of
its own instead.
"""

from giaann_p2p.net.bodies import Incoming, Outgoing
from giaann_p2p.net.books import Books
from giaann_p2p.net.events import Event, Requested, Responded
from giaann_p2p.net.exchange import Exchange
from giaann_p2p.net.frames import NUMBER, Frame, Kind
from giaann_p2p.net.states import CALLER, Deed, State, next_state


class Traffic:
    """See the module."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def send(self, exchange: Exchange, whole: Kind, body: bytes) -> None:
        """Give a body its turns; the room that it needs is taken already."""
        exchange.outgoing = Outgoing(whole, exchange.request, body)
        self._books.outbox.add(exchange.outgoing)

    def expect(self, exchange: Exchange, incoming: Incoming) -> None:
        """Let a long body come."""
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
            if exchange.state is State.DONE:
                books.leave(exchange)

    def take_chunk(self, frame: Frame) -> Exchange | None:
        """Take the next piece of a body in; return whose it is if there is no room for it."""
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
        """Take in that a body is complete."""
        exchange = self._books.known(frame)
        if exchange is None or exchange.incoming is None:
            return
        following = next_state(exchange.state, frame.kind)
        body = exchange.incoming.finish(frame.payload)  # if it cannot be, nothing has ended well
        exchange.state = following
        exchange.incoming = None
        if exchange.state is State.DONE:
            self._books.leave(exchange)
            events.append(Responded(frame.request, body))
        else:
            self._books.alarms.drop(frame.request)
            events.append(Requested(frame.request, body))

    def take_credit(self, frame: Frame, events: list[Event]) -> None:
        """Take in that more of a body may be sent."""
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
        """Note that a body moves."""
        if exchange.state not in CALLER:
            books = self._books
            books.alarms.set(exchange.request, books.now + books.limits.stalled_after)

    def _give_credit(self, request: int, incoming: Incoming) -> None:
        more = incoming.grant()
        if more:
            self._books.outbox.put(Kind.CREDIT, request, NUMBER.pack(more))
            self._books.outbox.check()
