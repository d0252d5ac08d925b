"""A process of the simulation: a clock of its own, messages in and out, a life and an end."""

from collections.abc import Callable
from functools import partial

from giaann_p2p.errors import MessageError, RecordError
from giaann_p2p.sim.clock import Clock
from giaann_p2p.sim.network import Network
from giaann_p2p.sim.trace import Trace
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import Message, Refused, decode, encode
from giaann_p2p.swarm.record import Announcement
from giaann_p2p.swarm.surroundings import Surroundings

EPOCH = 1.8e9
"""What the machines' clocks show at the beginning, but for their skew."""
_TICK = 1.0


class Node:
    """What storage peers and clients have in common."""

    def __init__(
        self,
        name: str,
        peer: Peer,
        clock: Clock,
        network: Network,
        trace: Trace,
        around: Surroundings,
        skew: float,
    ) -> None:
        self.name, self.peer, self.around = name, peer, around
        self.alive, self.stopped = True, False
        self.clock, self.network, self.trace, self._skew = clock, network, trace, skew
        self._life = 0  # what was begun in an earlier life never comes to anything
        network.endpoints[peer] = self

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def now(self) -> float:
        """What this machine takes the time to be."""
        return EPOCH + self.clock.now + self._skew

    def say(self, what: str) -> None:
        """Note something down."""
        self.trace.note(self.clock.now, self.name, what)

    def later(self, seconds: float, event: Callable[[], None]) -> None:
        """Let something happen here after a while, unless this life is over by then."""
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
        """Ask a peer; `then` gets its answer, or None if there is none that can be read."""
        answered = partial(self._answered_in, self._life, then)
        self.network.ask(self.peer, peer, encode(message), timeout, answered)

    def _answered_in(
        self, life: int, then: Callable[[Message | None], None], data: bytes | None
    ) -> None:
        if self._life == life:
            self.later(0, partial(_read, then, data))

    def every_tick(self) -> None:
        """Call `tick` every second or so."""
        self.tick()
        self.later(_TICK, self.every_tick)

    def tick(self) -> None:
        """Do what is due."""

    def deliver(self, sender: Peer, data: bytes, reply: Callable[[bytes], None]) -> None:
        """Take a record, which stands behind a zero byte, or a question; `reply` answers."""
        if data[:1] == b"\0":
            self.learn(data[1:])
        elif (question := _readable(data)) is not None:
            if why := self.network.gate(sender, question, self.now):
                reply(encode(Refused(why)))
            else:
                self.asked(sender, question, reply)

    def asked(self, sender: Peer, question: Message, reply: Callable[[bytes], None]) -> None:
        """Answer a question, if it is one for this machine."""

    def learn(self, data: bytes) -> None:
        """Take a record into the directory."""
        try:
            said = self.around.learn(data, self.now, self.restarted)
        except RecordError as error:
            self.say(f"refuses a record: {error}")
        else:
            if said is not None:
                self.learned(said)

    def learned(self, said: Announcement) -> None:
        """A record says something new."""

    def restarted(self, peer: Peer) -> None:
        """Another machine began anew."""

    def restart(self) -> None:
        """Begin anew, after the end."""
        self.alive = True
        self.say("begins again")
        self.begin()

    def begin(self) -> None:
        """Begin a life."""

    def die(self) -> None:
        """End at once."""
        self.alive, self.stopped = False, False
        self._life += 1
        self.network.waiting.pop(self.peer, None)

    def stop(self) -> None:
        """Stand still, without anybody being told."""
        self.stopped = True

    def go_on(self) -> None:
        """Go on where it stood still."""
        self.stopped = False
        self.network.go_on(self.peer)


def _read(then: Callable[[Message | None], None], data: bytes | None) -> None:
    then(_readable(data))


def _readable(data: bytes | None) -> Message | None:
    if data is None:
        return None
    try:
        return decode(data)
    except MessageError:
        return None
