"""The books of one connection: which requests are open, whose they are, and what each holds.

1. Requests of this side have numbers of one parity, those of the peer of the other; each begins
   with a higher number than the last.
2. Whatever a request holds (room, a place in the outbox, an alarm), it gives back when it leaves
   the books, however it ended.
"""

from giaann_p2p.errors import MessageError
from giaann_p2p.net.alarms import Alarms
from giaann_p2p.net.backlog import Backlog
from giaann_p2p.net.exchange import Exchange
from giaann_p2p.net.frames import Frame
from giaann_p2p.net.limits import Limits
from giaann_p2p.net.outbox import Outbox
from giaann_p2p.net.room import Room
from giaann_p2p.net.states import State


class Books:
    """See the module."""

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
        """What the peer's requests are held to; less for a stranger's."""
        self.outbox = outbox
        self.room_in = room_in
        self.room_out = room_out
        self.alarms = Alarms()
        self.backlog = Backlog()
        self.open: dict[int, Exchange] = {}
        self.mine, self.theirs = 0, 0
        """How many of the open requests."""
        self.now = now
        """When something happened last."""
        self._next = 1 if dialled else 2
        self._parity = self._next % 2
        self._last = 0  # the last request that the peer began

    def __repr__(self) -> str:
        return (
            f"<Books: asking {self.mine}, answering {self.theirs},"
            f" {self.room_in.used:,} bytes in, {self.room_out.used:,} out>"
        )

    def is_mine(self, request: int) -> bool:
        """Tell whether a request is, or would be, one of this side."""
        return request % 2 == self._parity

    def enter_mine(self) -> Exchange:
        """Begin a request of this side, under the next number."""
        request, self._next = self._next, self._next + 2
        exchange = self.open[request] = Exchange(request, State.ASKING)
        self.mine += 1
        return exchange

    def enter_theirs(self, request: int, state: State) -> Exchange:
        """Begin a request of the peer; MessageError if none can begin with this number."""
        if request <= self._last or request % 2 == self._parity:
            raise MessageError(f"request {request} begins after request {self._last}")
        self._last = request
        exchange = self.open[request] = Exchange(request, state)
        self.theirs += 1
        return exchange

    def hold(self, exchange: Exchange, size: int) -> bool:
        """Take room for some more bytes of a request or a response, if there is any."""
        if not self.room_in.take(size):
            return False
        exchange.held += size
        return True

    def leave(self, exchange: Exchange) -> None:
        """Forget a request, and give back all that it held."""
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
        """Return a request that is open, None if it is done; MessageError if it never was."""
        exchange = self.open.get(frame.request)
        if exchange is None:
            first = self._next if self.is_mine(frame.request) else self._last + 1
            if not 0 < frame.request < first:
                name = frame.kind.name.lower()
                raise MessageError(f"{name} of request {frame.request}, which has not begun")
        return exchange
