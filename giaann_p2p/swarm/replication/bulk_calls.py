"""Questions whose answers are long: asked at the pace at which a peer's answers come."""

from collections.abc import Callable
from functools import partial

from giaann_p2p.swarm.actions import Action, Call
from giaann_p2p.swarm.desk import Desk
from giaann_p2p.swarm.flow import Asked, Flow
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import Fetched, Message, Offered, Part

Then = Callable[[Message | None, float], list[Action]]


class Bulk:
    """See the module; `wait` is how long any answer may take."""

    def __init__(self, wait: float, calls: Desk[Message | None, Action]) -> None:
        self.flow = Flow(wait)
        self._calls = calls

    def __repr__(self) -> str:
        return f"<Bulk: {self.flow!r}>"

    def call(self, peer: Peer, question: Message, size: int, then: Then, now: float) -> Call:
        """Ask for so many bytes, about; `then` is told what was answered."""
        asked = self.flow.ask(peer, size, now)
        number = self._calls.number(partial(self._told, asked, then))
        return Call(number, peer, question, asked.wait)

    def _told(self, asked: Asked, then: Then, answer: Message | None, now: float) -> list[Action]:
        if answer is None:
            self.flow.failed(asked, now)
        else:
            self.flow.came(asked, size_of(answer), now)
        return then(answer, now)


def size_of(answer: Message) -> int:
    """Return how many bytes of shards came with an answer."""
    if isinstance(answer, Fetched):
        return sum(len(piece.parcel) for piece in answer.updates)
    if isinstance(answer, Offered):
        return len(answer.manifest) + len(answer.kept) + len(answer.part)
    return len(answer.parcel) if isinstance(answer, Part) else 0
