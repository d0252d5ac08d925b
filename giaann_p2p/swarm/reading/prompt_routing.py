"""Prompt routing: the client's choice of the compute peer that continues a prompt.

1. One peer is asked at a time, and keeps being asked while it answers. It is chosen among those
   that announce the least load, by a hash of the prompt's number and the peer.
2. Every question contains all tokens so far, so another peer can continue where the last one fell
   silent. A peer that is silent, refuses or sends an invalid answer is avoided, with exponential
   backoff; a busy peer is not at fault, and is avoided only briefly. If all peers are in backoff,
   the one whose backoff ends first is retried soon.
3. A peer that answers without new tokens for too long counts as stuck.
4. Routing ends with the complete answer, with a fault of the prompt itself, when there is no
   compute peer, when all of them have refused twice, or when no new token arrived for `patience`
   seconds. A failure reports the last reason that any peer gave.
"""

import hashlib
import struct
from collections.abc import Mapping
from enum import Enum
from math import inf
from typing import NamedTuple, Protocol

from giaann_p2p.backoff import Backoff
from giaann_p2p.errors import MessageError
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.said import Stopped, Token
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import Ask, Continued, Cost, Message, Refusal

_BACKOFF = Backoff(first=2.0, longest=30.0)
_SHUN_BUSY = 1.0
_PAUSE = 0.5
"""Seconds until a retry when all peers are in backoff."""
_MOST_REFUSALS = 2
_STUCK = 16.0
"""Seconds without new tokens after which a peer is stuck: longer than a compute peer waits for rows
(see `node.reading.reader`)."""
_SAID_NOTHING = "nobody has answered yet"


class Failure(Enum):
    """The reasons for which a prompt has no answer."""

    NOBODY = "nobody"
    """There is no compute peer."""
    PROMPT = "prompt"
    """The prompt itself is at fault."""
    IN_VAIN = "in vain"
    """No compute peer could answer."""


class News(NamedTuple):
    """New tokens, and the cost of each."""

    tokens: list[Token]
    costs: list[Cost]


class Over(NamedTuple):
    """The answer is complete."""

    stopped: Stopped


class Failed(NamedTuple):
    """The prompt has failed; `reason` says why."""

    failure: Failure
    reason: str


PromptAction = Call | News | Over | Failed


class ComputeLoads(Protocol):
    """The known load of the compute peers."""

    def loads(self, now: float) -> Mapping[Peer, int]:
        """Return the live compute peers that accept prompts, each with its load."""
        ...


class PromptRouting:
    """One prompt on its way to an answer."""

    def __init__(
        self,
        number: bytes,
        prompt: str,
        manner: Manner,
        others: ComputeLoads,
        *,
        timeout: float = 1.0,
        patience: float = 45.0,
    ) -> None:
        self.completion = ""
        """The rest of the prompt's last word, known once the prompt is taken in."""
        self.unknown: list[str] = []
        self.begun: Cost | None = None
        """The cost of taking in the prompt, at the first peer that did."""
        self.peers: list[Peer] = []
        """The peers that were chosen, in the order of their first call."""
        self._number, self._prompt, self._manner = number, prompt, manner
        self._others, self._timeout, self._patience = others, timeout, patience
        self._said, self._tokens = bytearray(), 0
        self._backoff: dict[Peer, Backoff] = {}
        self._until: dict[Peer, float] = {}  # when each backoff ends, or the rest of a busy peer
        self._refusals: dict[Peer, int] = {}  # refusals since the last news
        self._left = -inf  # time at which the last peer was given up
        self._peer: Peer | None = None
        self._calls = 0
        self._asked: int | None = None  # the number of the pending call
        self._next = inf  # time of the next call, if none is pending
        self._news = self._since = -inf  # the last news; the last news, or first call, of this peer
        self._reason = _SAID_NOTHING
        self._over = False

    def __repr__(self) -> str:
        return f"<PromptRouting: {self._tokens} tokens, {len(self.peers)} peers asked>"

    def begin(self, now: float) -> list[PromptAction]:
        """Ask the first peer."""
        self._news = now
        return self._ask(now)

    def answered(self, number: int, answer: Message | None, now: float) -> list[PromptAction]:
        """Continue with an answer, or with None if no readable answer came in time."""
        if number != self._asked or self._over:
            return []
        self._asked = None
        if not isinstance(answer, Continued):
            return self._turned_away(answer, now)
        try:
            self._check(answer)
        except MessageError as error:
            return self._leave(str(error), now)
        return self._told(answer, now)

    def tick(self, now: float) -> list[PromptAction]:
        """Retry if a retry is due."""
        if self._over or self._asked is not None or now < self._next:
            return []
        return self._ask(now)

    @property
    def next_tick(self) -> float:
        """Return when `tick` is due, if nothing happens before; infinite if never."""
        return inf if self._over or self._asked is not None else self._next

    def _told(self, told: Continued, now: float) -> list[PromptAction]:
        if told.fault:
            return self._fail(Failure.PROMPT, told.fault)
        acts: list[PromptAction] = []
        if told.begun is not None:
            self.completion, self.unknown = told.completion, told.unknown
            self.begun = self.begun or told.begun
        if told.tokens:
            self._news = self._since = now
            self._refusals.clear()
            if self._peer is not None:
                self._backoff.pop(self._peer, None)
                self._until.pop(self._peer, None)
            self._tokens += len(told.tokens)
            for token in told.tokens:
                self._said += struct.pack("<2Q", *token.name.neuron)
            acts.append(News(told.tokens, told.costs))
        if told.stopped is not None:
            self._over = True
            return [*acts, Over(told.stopped)]
        if now - self._since > _STUCK:
            return self._leave(f"it said nothing new for {_STUCK:g} s", now)
        return acts + self._ask(now)

    def _check(self, told: Continued) -> None:
        """Raise MessageError for an answer that no honest peer would send."""
        left = self._manner.max_tokens - self._tokens
        if len(told.tokens) > left:
            raise MessageError(f"{len(told.tokens)} tokens where {left} were left to say")
        if len(told.costs) != len(told.tokens):
            raise MessageError(f"{len(told.costs)} costs of {len(told.tokens)} tokens")
        if (told.tokens or told.stopped is not None) and told.begun is None:
            raise MessageError("an answer to a prompt that was not taken in")

    def _turned_away(self, answer: Message | None, now: float) -> list[PromptAction]:
        if answer is None:
            return self._leave("no answer in time", now)
        if not isinstance(answer, Refusal):
            return self._leave("it answered something else than it was asked", now)
        if answer.is_busy:
            return self._leave(answer.reason, now, busy=True)
        if self._peer is not None:
            self._refusals[self._peer] = self._refusals.get(self._peer, 0) + 1
        return self._leave(answer.reason, now)

    def _leave(self, reason: str, now: float, *, busy: bool = False) -> list[PromptAction]:
        """Back off from the current peer, and ask another one."""
        peer, self._peer = self._peer, None
        self._reason, self._left = reason, now
        if peer is not None:
            if busy:
                self._until[peer] = now + _SHUN_BUSY
            else:
                self._backoff[peer] = self._backoff.get(peer, _BACKOFF).failed(now)
                self._until[peer] = self._backoff[peer].until
        return self._ask(now)

    def _ask(self, now: float) -> list[PromptAction]:
        loads = self._others.loads(now)
        if not loads and not self.peers:
            return self._fail(Failure.NOBODY, "no compute peer is there")
        if now - self._news > self._patience or self._all_refuse(loads):
            return self._fail(Failure.IN_VAIN, self._reason)
        if self._peer not in loads:
            self._peer = self._chosen(loads, now)
        if self._peer is None:
            return []
        self._calls += 1
        self._asked, self._next = self._calls, inf
        question = Ask(self._number, self._prompt, self._manner, bytes(self._said))
        return [Call(self._calls, self._peer, question, self._timeout)]

    def _all_refuse(self, loads: Mapping[Peer, int]) -> bool:
        refusals = self._refusals
        return bool(loads) and all(refusals.get(peer, 0) >= _MOST_REFUSALS for peer in loads)

    def _chosen(self, loads: Mapping[Peer, int], now: float) -> Peer | None:
        """Return the peer to ask; None if all are in backoff, after noting when to retry."""
        until = {peer: self._until.get(peer, -inf) for peer in loads}
        free = [peer for peer in loads if until[peer] <= now]
        if not free:
            again = min([self._left + _PAUSE, *until.values()])
            if not loads or now < again:
                self._next = again if loads else now + _PAUSE
                return None
            free = [min(loads, key=lambda peer: (until[peer], self._drawn(peer)))]
        chosen = min(free, key=lambda peer: (loads[peer].bit_length(), self._drawn(peer)))
        self._since = now
        self.peers.append(chosen)
        return chosen

    def _drawn(self, peer: Peer) -> bytes:
        return hashlib.blake2b(self._number + peer, digest_size=8).digest()

    def _fail(self, failure: Failure, reason: str) -> list[PromptAction]:
        self._over = True
        return [Failed(failure, reason)]
