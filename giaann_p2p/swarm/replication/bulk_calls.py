"""Calls with long answers: flow control decides how many bytes each peer is asked for."""

from collections.abc import Callable
from functools import partial

from giaann_p2p.swarm.replication.flow import Asked, Flow
from giaann_p2p.swarm.wire.actions import Action, Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Fetched, Offered, Part
from giaann_p2p.swarm.wire.pending import PendingCalls

Then = Callable[[Message | None, float], list[Action]]


class BulkCalls:
    """Makes calls and reports each outcome to flow control; `wait` is the base timeout in seconds.

    Callers ask `flow` first whether a call fits into the peer's window.
    """

    def __init__(self, wait: float, calls: PendingCalls[Message | None, Action]) -> None:
        self.flow = Flow(wait)
        self._calls = calls

    def __repr__(self) -> str:
        return f"<BulkCalls: {self.flow!r}>"

    def call(self, peer: Peer, question: Message, size: int, then: Then, now: float) -> Call:
        """Return a call to a peer that asks for about `size` bytes.

        `then` is called with the answer, or with None on timeout.
        """
        asked = self.flow.ask(peer, size, now)
        number = self._calls.number(partial(self._on_answer, asked, then))
        return Call(number, peer, question, asked.wait)

    def _on_answer(
        self, asked: Asked, then: Then, answer: Message | None, now: float
    ) -> list[Action]:
        if answer is None:
            self.flow.failed(asked, now)
        else:
            self.flow.came(asked, size_of(answer), now)
        return then(answer, now)


def size_of(answer: Message) -> int:
    """Return the number of bytes of shard data in an answer; 0 for any other message."""
    if isinstance(answer, Fetched):
        return sum(len(piece.parcel) for piece in answer.updates)
    if isinstance(answer, Offered):
        return len(answer.manifest) + len(answer.kept) + len(answer.part)
    return len(answer.parcel) if isinstance(answer, Part) else 0
