"""The request table of one connection: which requests are open, and which resources each one holds.

1. Requests of this side have numbers of one parity, and requests of the peer have the other parity.
   Each new request has a higher number than the one before it from the same side.
2. When a request leaves the table, for whatever reason, it gives back everything that it holds:
   room, a place in the outbox, and a timer.
"""

from giaann_p2p.errors import MessageError
from giaann_p2p.net.alarms import Alarms
from giaann_p2p.net.backlog import Backlog
from giaann_p2p.net.exchange import Exchange
from giaann_p2p.net.frames import Frame
from giaann_p2p.net.limits import Limits
from giaann_p2p.net.outbox import Outbox
from giaann_p2p.net.room import Room
from giaann_p2p.net.states import LinkState


class Books:
    """The open requests of one connection, and the limits and resources that they share."""

    def __init__(
        self,
        *,
        dialled: bool,
        now: float,
        limits: Limits,
        outbox: Outbox,
        room_in: Room,
        room_out: Room,
    ) -> None:
        self.limits = limits
        self.serving = limits
        """The limits on the peer's requests, which are lower for a stranger."""
        self.outbox = outbox
        self.room_in = room_in
        self.room_out = room_out
        self.alarms = Alarms()
        self.backlog = Backlog()
        self.open: dict[int, Exchange] = {}
        self.mine, self.theirs = 0, 0
        """The numbers of open requests of this side and of the peer. Invariant: mine + theirs ==
        len(open)."""
        self.now = now
        """The time of the last event, in seconds of the driver's clock."""
        self._next = 1 if dialled else 2
        self._parity = self._next % 2
        self._last = 0  # the number of the peer's latest request

    def __repr__(self) -> str:
        return (
            f"<Books: asking {self.mine}, answering {self.theirs},"
            f" {self.room_in.used:,} bytes in, {self.room_out.used:,} out>"
        )

    def is_mine(self, request: int) -> bool:
        """Return whether a request number belongs to this side, by its parity."""
        return request % 2 == self._parity

    def enter_mine(self) -> Exchange:
        """Add a new request of this side to the table, under the next number."""
        request, self._next = self._next, self._next + 2
        exchange = self.open[request] = Exchange(request, LinkState.ASKING)
        self.mine += 1
        return exchange

    def enter_theirs(self, request: int, state: LinkState) -> Exchange:
        """Add a request of the peer; raise MessageError if its number is out of order."""
        if request <= self._last or request % 2 == self._parity:
            raise MessageError(f"request {request} is out of order after request {self._last}")
        self._last = request
        exchange = self.open[request] = Exchange(request, state)
        self.theirs += 1
        return exchange

    def hold(self, exchange: Exchange, size: int) -> bool:
        """Reserve room for more incoming bytes of a request; return False if there is none."""
        if not self.room_in.take(size):
            return False
        exchange.held += size
        return True

    def leave(self, exchange: Exchange) -> None:
        """Remove a request from the table, and give back all resources that it held."""
        request = exchange.request
        del self.open[request]
        if request % 2 == self._parity:
            self.mine -= 1
            self.backlog.drop(request)
        else:
            self.theirs -= 1
        self.alarms.drop(request)
        if exchange.held:
            self.room_in.give(exchange.held)
        if exchange.outgoing is not None:
            self.room_out.give(exchange.outgoing.nbytes)
            self.outbox.drop(exchange.outgoing)

    def known(self, frame: Frame) -> Exchange | None:
        """Return a frame's request, None if it has ended; raise MessageError if it never began."""
        exchange = self.open.get(frame.request)
        if exchange is None:
            first = self._next if self.is_mine(frame.request) else self._last + 1
            if not 0 < frame.request < first:
                name = frame.kind.name.lower()
                raise MessageError(f"{name} frame for request {frame.request}, which has not begun")
        return exchange
