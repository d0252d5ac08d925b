"""A simulated process: it has its own clock, sends and receives messages, crashes and restarts."""

from collections.abc import Callable
from functools import partial

from giaann_p2p.errors import MessageError, PeerError, RecordError
from giaann_p2p.net.clock import Clock
from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.sim.network import Network
from giaann_p2p.sim.trace import Trace
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.member_messages import EditionIs
from giaann_p2p.swarm.wire.message import Counting, Message
from giaann_p2p.swarm.wire.messages import Refusal, decode, encode

EPOCH = 1.8e9
"""The seconds since 1970 that the machines' clocks show at the beginning, apart from their skew."""
RECORD = b"\0"
"""The byte before a record on the network; no other message begins with it."""
_TICK = 1.0


class Node:
    """The base of all simulated processes: machines, clients, trainers and hostile peers."""

    def __init__(
        self,
        name: str,
        peer: Peer,
        clock: Clock,
        network: Network,
        trace: Trace,
        around: PeersView,
        skew: float,
    ) -> None:
        self.name, self.peer, self.around = name, peer, around
        self.alive, self.stopped = True, False
        self.clock, self.network, self.trace, self._skew = clock, network, trace, skew
        self._life = 0  # counts restarts: events of an earlier life are dropped
        network.endpoints[peer] = self

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def now(self) -> float:
        """The time that this node's clock shows, in seconds since 1970; it may be wrong."""
        return EPOCH + self.clock.now + self._skew

    def say(self, what: str) -> None:
        """Add a line to the trace."""
        self.trace.note(self.clock.now, self.name, what)

    def later(self, seconds: float, event: Callable[[], None]) -> None:
        """Schedule an event of this node; it is dropped if the node dies before it is due."""
        self.clock.after(seconds, partial(self._happen, self._life, event))

    def _happen(self, life: int, event: Callable[[], None]) -> None:
        if self._life != life or not self.alive:
            return
        if self.stopped:
            again = partial(self._happen, life, event)
            self.network.waiting.setdefault(self.peer, []).append(again)
        else:
            event()

    def ask(
        self, peer: Peer, message: Message, timeout: float, then: Callable[[Message | None], None]
    ) -> None:
        """Ask a peer; `then` gets its answer, or None if no answer arrives that can be decoded."""
        data = encode(message, self.around.rules.layout.doublings)
        answered = partial(self._answered_in, self._life, peer, message, then)
        self.network.ask(self.peer, peer, data, timeout, answered)

    def _answered_in(
        self,
        life: int,
        peer: Peer,
        message: Message,
        then: Callable[[Message | None], None],
        data: bytes | PeerError,
    ) -> None:
        if self._life == life:
            self.later(0, partial(self._on_data, peer, message, then, data))

    def _on_data(
        self,
        peer: Peer,
        message: Message,
        then: Callable[[Message | None], None],
        data: bytes | PeerError,
    ) -> None:
        answer = readable(data)
        if isinstance(answer, EditionIs) and isinstance(message, Counting):
            answer = self.counts_otherwise(peer, answer.edition)
        then(answer)

    def counts_otherwise(self, peer: Peer, edition: bytes) -> Message | None:
        """Return the answer to a question whose peer replies that it counts other shards.

        By default there is no answer, because all nodes but clients know the newest edition.
        """
        return None

    def every_tick(self) -> None:
        """Call `tick` now and every second from now on."""
        self.tick()
        self.later(_TICK, self.every_tick)

    def tick(self) -> None:
        """Do what is due each second; by default nothing."""

    def deliver(self, sender: Peer, data: bytes, reply: OnAnswer) -> None:
        """Take a record or a question; `reply` sends the answer."""
        if data[:1] == RECORD:
            self.learn(data[1:])
        elif (question := readable(data)) is not None:
            if why := self.network.gate(sender, question, self.now):
                reply(encode(Refusal(why)))
            else:
                self.asked(sender, question, reply)

    def asked(self, sender: Peer, question: Message, reply: OnAnswer) -> None:
        """Answer a question; by default it stays unanswered."""

    def learn(self, data: bytes) -> None:
        """Add another peer's record to this node's directory."""
        try:
            self.around.learn(data, self.now, lambda peer: None)
        except RecordError as error:
            self.say(f"refuses a record: {error}")

    def learn_revoked(self, data: bytes) -> None:
        """Ignore a newer list of revoked peers: nodes but machines share the world's admission."""

    def restart(self) -> None:
        """Start this node again after a crash."""
        self.alive = True
        self.say("begins again")
        self.begin()

    def begin(self) -> None:
        """Start this node, for the first time or after a crash."""

    def die(self) -> None:
        """Kill this node at once: all its scheduled events are dropped."""
        self.alive, self.stopped = False, False
        self._life += 1
        self.network.waiting.pop(self.peer, None)

    def stop(self) -> None:
        """Freeze this node, as SIGSTOP does: messages to it wait."""
        self.stopped = True

    def go_on(self) -> None:
        """Let a frozen node continue where it stopped."""
        self.stopped = False
        self.network.go_on(self.peer)


def readable(data: bytes | PeerError) -> Message | None:
    """Return the decoded message, or None for an error or invalid bytes."""
    if isinstance(data, PeerError):
        return None
    try:
        return decode(data)
    except MessageError:
        return None
