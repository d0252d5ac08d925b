"""The send queue of one connection, in which a long body never holds up short ones.

Short control frames go first. Bodies take turns of one chunk each (round robin), in the order in
which they were added. A body without credit is parked until it gets some.
"""

from collections import deque
from collections.abc import Iterable

from giaann_p2p.errors import MessageError
from giaann_p2p.net.bodies import Outgoing
from giaann_p2p.net.frames import HEADER, Buffer, Kind, Sealer


class Outbox:
    """The send queue of one stream: control frames, and bodies that take turns."""

    def __init__(self, number: int, most_urgent: int, greeting: bytes = b"") -> None:
        self._most_urgent = most_urgent
        self._sealer = Sealer(number, greeting)
        self._hello: list[Buffer] = [self._sealer.hello]
        self._urgent: deque[tuple[Kind, int, bytes]] = deque()
        self._turns: deque[Outgoing | None] = deque()  # None: a goodbye
        self._dropped: set[Outgoing] = set()  # dropped bodies that are still in `_turns`

    def __len__(self) -> int:
        return len(self._hello) + len(self._urgent) + len(self._turns) - len(self._dropped)

    def __repr__(self) -> str:
        return f"<Outbox: {len(self._urgent)} urgent frames, {len(self._turns)} bodies>"

    @property
    def urgent(self) -> int:
        """The number of control frames that wait to be sent."""
        return len(self._urgent)

    def put(self, kind: Kind, request: int = 0, payload: bytes = b"") -> None:
        """Queue a control frame ahead of all bodies; but a goodbye goes behind queued bodies."""
        if kind is Kind.GOODBYE:
            self._turns.append(None)
        else:
            self._urgent.append((kind, request, payload))

    def check(self) -> None:
        """Raise MessageError if too many control frames wait because the peer reads none."""
        if len(self._urgent) > self._most_urgent:
            most = self._most_urgent
            raise MessageError(f"more than {most:,} control frames wait unread")

    def add(self, body: Outgoing) -> None:
        """Queue a body, which takes turns with the others from now on."""
        self._turns.append(body)

    def drop(self, body: Outgoing) -> None:
        """Stop sending a body, and release its bytes."""
        if not body.parked and not body.complete:
            self._dropped.add(body)
        body.forget()
        if len(self._dropped) > len(self._turns) // 2:
            self._turns = deque(turn for turn in self._turns if turn not in self._dropped)
            self._dropped.clear()

    def clear(self) -> None:
        """Drop all frames and bodies that are queued."""
        self._urgent.clear()
        self._turns.clear()
        self._dropped.clear()

    def take(self, most: int) -> tuple[list[Buffer], Iterable[Outgoing]]:
        """Return the next pieces, about `most` bytes in all, and the bodies they come from."""
        pieces, self._hello = self._hello, []
        size = 0
        while self._urgent and size < most:
            frame = self._sealer.seal(*self._urgent.popleft())
            pieces += frame
            size += HEADER
        moved: dict[Outgoing, None] = {}  # an ordered set
        while self._turns and size < most:
            body = self._turns.popleft()
            if body is None:
                pieces += self._sealer.seal(Kind.GOODBYE, 0)
            elif body in self._dropped:
                self._dropped.remove(body)
            else:
                frame = body.turn(self._sealer)
                pieces += frame
                size += sum(map(len, frame))
                moved[body] = None
                if not body.complete and not body.parked:
                    self._turns.append(body)
        return pieces, moved
