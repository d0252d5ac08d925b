"""A network in memory that does to messages whatever networks do.

Questions and answers travel for a while, are lost, come twice, overtake one another. A link can be
cut in one direction. A peer that is dead refuses, or is silent; one that is stopped keeps what it
gets, and answers when it goes on, if it does. Who asks is told the first answer that comes in time,
or that none came.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from giaann_p2p.sim.clock import Clock
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import Message

Answer = Callable[[bytes | None], None]
Gate = Callable[[Peer, Message, float], str]
"""Tells why a peer may not ask a question; nothing if it may."""

_REFUSAL = 0.002
"""Seconds that a dead peer's machine needs to refuse."""


@dataclass
class Weather:
    """How bad the network is, the same for all."""

    latency: float = 0.02
    """Seconds, on average; some messages take many times as long."""
    lost: float = 0.0
    """The part of messages that never arrive."""
    twice: float = 0.0
    """The part of questions that arrive twice."""
    silent: float = 0.5
    """The part of questions to dead peers that nobody refuses."""


class Endpoint(Protocol):
    """Somebody on the network."""

    alive: bool
    stopped: bool

    def deliver(self, sender: Peer, data: bytes, reply: Callable[[bytes], None]) -> None:
        """Take a question; `reply` sends the answer."""


@dataclass
class Network:
    """Everybody, and the links between them."""

    clock: Clock
    rng: random.Random
    weather: Weather = field(default_factory=Weather)
    endpoints: dict[Peer, Endpoint] = field(default_factory=dict)
    cut: set[tuple[Peer, Peer]] = field(default_factory=set)
    """Directed links that nothing goes through."""
    slow: dict[Peer, float] = field(default_factory=dict)
    """How many times longer everything from and to a peer takes."""
    thin: dict[Peer, float] = field(default_factory=dict)
    """Bytes a second that a peer's line carries in each direction, one after the other."""
    waiting: dict[Peer, list[Callable[[], None]]] = field(default_factory=dict)
    """What stopped peers have not looked at yet."""
    gate: Gate = lambda peer, question, now: ""
    """Everybody's: who may ask what, by the token that its connection began with."""
    carried: int = 0
    """Bytes so far."""
    arrived: Counter[Peer] = field(default_factory=Counter)
    """Bytes that went to each peer while there was a thin line somewhere."""
    _free: dict[tuple[Peer, bool], float] = field(default_factory=dict)
    """When a thin line, from a peer or to it, has carried what it was given."""

    def ask(self, sender: Peer, to: Peer, data: bytes, timeout: float, answer: Answer) -> None:
        """Ask a peer; `answer` is called once."""
        once = _Once(answer)
        self.clock.after(timeout, partial(once, None))
        arrive = partial(self._arrive, sender, to, data, once)
        times = 2 if self.rng.random() < self.weather.twice else 1
        for _ in range(times):
            self._carry(sender, to, len(data), arrive)

    def tell(self, sender: Peer, to: Peer, data: bytes) -> None:
        """Send something that nobody answers."""
        self._carry(sender, to, len(data), partial(self._arrive, sender, to, data, None))

    def go_on(self, peer: Peer) -> None:
        """A stopped peer goes on with what came meanwhile."""
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
        """Return the seconds until something has gone through the thin lines on its way."""
        now = ready = self.clock.now
        self.arrived[to] += size
        for way in ((sender, False), (to, True)):
            if rate := self.thin.get(way[0]):
                ready = self._free[way] = max(ready, self._free.get(way, 0.0)) + size / rate
        return ready - now

    def _latency(self) -> float:
        usual = self.weather.latency * (0.5 + self.rng.random())
        while (tenth := self.rng.getrandbits(4)) > 9:  # as `randrange` does, for half the time
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
                self.clock.after(_REFUSAL, partial(once, None))
            return
        endpoint.deliver(sender, data, partial(self._reply, to, sender, once))

    def _reply(self, sender: Peer, to: Peer, once: "_Once | None", answer: bytes) -> None:
        if once:
            self._carry(sender, to, len(answer), partial(once, answer))


class _Once:
    """Passes the first answer on."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Answer) -> None:
        self._answer: Answer | None = answer

    def __call__(self, data: bytes | None) -> None:
        answer, self._answer = self._answer, None
        if answer:
            answer(data)
