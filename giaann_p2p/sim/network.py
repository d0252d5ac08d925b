"""An in-memory network that delays, loses, duplicates and reorders messages.

A link can be cut in one direction. A dead peer refuses a question or stays silent; messages to a
stopped peer wait until it continues. The asking peer gets the first answer that arrives before the
timeout, or else an error.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from giaann_p2p.errors import PeerError
from giaann_p2p.net.clock import Clock
from giaann_p2p.net.errors import TimedOut, Unreachable
from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message

Gate = Callable[[Peer, Message, float], str]
"""A function that returns why a peer may not ask a question; empty if it may."""

_ERROR_BYTES = 64
_REFUSAL = 0.002
"""The seconds until a dead peer's machine refuses."""


@dataclass
class Weather:
    """The state of the network, the same for all links."""

    latency: float = 0.02
    """The typical time of a delivery in seconds; one message in ten takes ten times as long."""
    lost: float = 0.0
    """The probability that a message is lost."""
    twice: float = 0.0
    """The probability that a question arrives twice."""
    silent: float = 0.5
    """The probability that a question to a dead peer is not refused, but left unanswered."""


class Endpoint(Protocol):
    """A peer on the network."""

    alive: bool
    stopped: bool

    def deliver(self, sender: Peer, data: bytes, reply: OnAnswer) -> None:
        """Take a question; `reply` sends the answer."""


@dataclass
class Network:
    """All peers, and the links between them."""

    clock: Clock
    rng: random.Random
    weather: Weather = field(default_factory=Weather)
    endpoints: dict[Peer, Endpoint] = field(default_factory=dict)
    cut: set[tuple[Peer, Peer]] = field(default_factory=set)
    """The directed links that are cut."""
    slow: dict[Peer, float] = field(default_factory=dict)
    """The factors by which everything from and to a peer is slower."""
    thin: dict[Peer, float] = field(default_factory=dict)
    """The bandwidth of each peer's line in bytes a second, in each direction; messages queue."""
    waiting: dict[Peer, list[Callable[[], None]]] = field(default_factory=dict)
    """The deliveries that wait for each stopped peer."""
    gate: Gate = lambda peer, question, now: ""
    """Returns why a peer, by its token, may not ask a question; the same function serves all
    receivers."""
    carried: int = 0
    """The number of bytes sent so far."""
    arrived: Counter[Peer] = field(default_factory=Counter)
    """The number of bytes sent to each peer while any line has limited bandwidth."""
    _free: dict[tuple[Peer, bool], float] = field(default_factory=dict)
    """The time at which a line of limited bandwidth, from a peer or to it, is free again."""

    def ask(self, sender: Peer, to: Peer, data: bytes, timeout: float, answer: OnAnswer) -> None:
        """Ask a peer; `answer` is called once, with the answer or an error."""
        once = _Once(answer)
        self.clock.after(timeout, partial(once, TimedOut("the peer has not answered in time")))
        arrive = partial(self._arrive, sender, to, data, once)
        times = 2 if self.rng.random() < self.weather.twice else 1
        for _ in range(times):
            self._carry(sender, to, len(data), arrive)

    def tell(self, sender: Peer, to: Peer, data: bytes) -> None:
        """Send a message without an answer."""
        self._carry(sender, to, len(data), partial(self._arrive, sender, to, data, None))

    def go_on(self, peer: Peer) -> None:
        """Continue a stopped peer: deliver what arrived meanwhile."""
        for event in self.waiting.pop(peer, []):
            self.clock.after(0, event)

    def _carry(self, sender: Peer, to: Peer, size: int, event: Callable[[], None]) -> None:
        self.carried += size
        if (self.cut and (sender, to) in self.cut) or self.rng.random() < self.weather.lost:
            return
        slow = max(self.slow.get(sender, 1.0), self.slow.get(to, 1.0)) if self.slow else 1.0
        queued = self._queued(sender, to, size) if self.thin else 0.0
        self.clock.after(queued + slow * self._latency(), event)

    def _queued(self, sender: Peer, to: Peer, size: int) -> float:
        """Return the seconds until a message has passed the lines of limited bandwidth."""
        now = ready = self.clock.now
        self.arrived[to] += size
        for way in ((sender, False), (to, True)):
            if rate := self.thin.get(way[0]):
                ready = self._free[way] = max(ready, self._free.get(way, 0.0)) + size / rate
        return ready - now

    def _latency(self) -> float:
        usual = self.weather.latency * (0.5 + self.rng.random())
        while (tenth := self.rng.getrandbits(4)) > 9:  # as `randrange` does, in half the time
            pass
        return usual * 10 if tenth == 9 else usual

    def _arrive(self, sender: Peer, to: Peer, data: bytes, once: "_Once | None") -> None:
        endpoint = self.endpoints.get(to)
        if endpoint is not None and endpoint.stopped:
            again = partial(self._arrive, sender, to, data, once)
            self.waiting.setdefault(to, []).append(again)
            return
        if endpoint is None or not endpoint.alive:
            if once and self.rng.random() >= self.weather.silent:
                self.clock.after(_REFUSAL, partial(once, Unreachable("nobody listens there")))
            return
        endpoint.deliver(sender, data, partial(self._reply, to, sender, once))

    def _reply(self, sender: Peer, to: Peer, once: "_Once | None", said: bytes | PeerError) -> None:
        if once:
            size = len(said) if isinstance(said, bytes) else _ERROR_BYTES
            self._carry(sender, to, size, partial(once, said))


class _Once:
    """Passes only the first answer on."""

    __slots__ = ("_answer",)

    def __init__(self, answer: OnAnswer) -> None:
        self._answer: OnAnswer | None = answer

    def __call__(self, data: bytes | PeerError) -> None:
        answer, self._answer = self._answer, None
        if answer:
            answer(data)
