"""Two real endpoints that talk to each other, byte for byte, without any I/O."""

from collections.abc import Sequence

from giaann_p2p.net.connection import Connection
from giaann_p2p.net.events import Event
from giaann_p2p.net.frames import Buffer, Framer, Kind, Sealer
from giaann_p2p.net.limits import Limits

QUICK = Limits(calls=8, longest=1 << 22, bytes_in=1 << 23, bytes_out=1 << 23, window=1 << 20)


class Pair:
    """A connection's two sides: 0 has dialled."""

    def __init__(self, limits: Limits = QUICK) -> None:
        self.now = 100.0
        self.sides = [
            Connection(dialled=number == 0, number=7 + number, now=self.now, limits=limits)
            for number in range(2)
        ]

    def move(self, side: int, most: int = 1 << 20) -> list[Event]:
        """Bring what one side sends, about so many bytes of it, to the other; return its events."""
        data = joined(self.sides[side].to_send(most))
        return self.sides[1 - side].feed(data, self.now) if data else []

    def settle(self) -> tuple[list[Event], list[Event]]:
        """Let both talk until there is nothing more to say; return the events of each."""
        events: tuple[list[Event], list[Event]] = [], []
        while any(new := [self.move(side) for side in (0, 1)]) or self.talking:
            for side in (0, 1):
                events[1 - side].extend(new[side])
        return events

    @property
    def talking(self) -> bool:
        return any(len(side._outbox) for side in self.sides)

    def later(self, seconds: float) -> tuple[list[Event], list[Event]]:
        """Let time pass for both, who hear nothing of each other meanwhile."""
        self.now += seconds
        return self.sides[0].tick(self.now), self.sides[1].tick(self.now)


class Rogue:
    """A peer that sends what it likes, in frames that fit, to an honest side that was dialled."""

    def __init__(self, limits: Limits = QUICK, *, dialled: bool = True) -> None:
        self.now = 100.0
        self.honest = Connection(dialled=not dialled, number=7, now=self.now, limits=limits)
        self._sealer = Sealer(99)
        self._framer = Framer()
        self.honest.feed(self._sealer.hello, self.now)

    def send(self, kind: Kind, request: int, payload: Buffer = b"") -> list[Event]:
        return self.honest.feed(joined(self._sealer.seal(kind, request, payload)), self.now)

    def hear(self) -> list[tuple[Kind, int, bytes]]:
        """Return the frames that the honest side sends, but for its hello."""
        data = b""
        while pieces := self.honest.to_send():
            data += joined(pieces)
        frames = [(f.kind, f.request, bytes(f.payload)) for f in self._framer.feed(data)]
        return [frame for frame in frames if frame[0] is not Kind.HELLO]


def joined(pieces: Sequence[Buffer]) -> bytes:
    return b"".join(pieces)


def assert_nothing_is_held(side: Connection) -> None:
    """Check the books: no request, no bytes, no alarm is left."""
    assert side.idle
    assert side._room_in.used == side._room_out.used == 0
    assert side._alarms.next() == float("inf")
    assert side._books.mine == side._books.theirs == 0
