"""Prompt routing: the client's choice of the compute peer that continues a prompt.

1. One peer is asked at a time, and the same peer is asked again as long as it answers. It is chosen
   among the peers that announce the least load, by a hash of the prompt's number and the peer.
2. Every question contains all tokens so far, so another peer can continue where the last one fell
   silent. A peer that is silent, refuses or sends an invalid answer is avoided, with exponential
   backoff. A busy peer is not at fault, and is avoided only briefly. If all peers are in backoff,
   the one whose backoff ends first is retried soon.
3. A peer that answers without new tokens for too long counts as stuck, and is avoided, too.
4. Routing succeeds with the complete answer. It fails if the prompt itself is at fault, if there is
   no compute peer, if all of them have refused twice, or if no new token arrived for `patience`
   seconds. In the last two cases the failure reports the last reason that any peer gave.
"""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from enum import Enum
from math import inf
from typing import NamedTuple, Protocol

from giaann_p2p.backoff import Backoff
from giaann_p2p.errors import MessageError
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.said import AnyToken, Stopped
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Refusal
from giaann_p2p.swarm.wire.prompt_messages import Ask, Cost, Told

_BACKOFF = Backoff(first=2.0, longest=30.0)
_BUSY_BACKOFF = 1.0
"""Seconds for which a busy peer is avoided."""
_PAUSE = 0.5
"""Maximum number of seconds until a retry if all peers are in backoff."""
_MOST_REFUSALS = 2
"""Number of refusals without new tokens in between after which a peer counts as unwilling."""
_STUCK = 16.0
"""Seconds without new tokens after which a peer counts as stuck. It is longer than a compute peer
waits for rows (see `node.reading.reader`)."""
_SAID_NOTHING = "no compute peer has answered yet"


class Failure(Enum):
    """The kinds of reason for which a prompt gets no answer."""

    NOBODY = "nobody"
    """There is no compute peer."""
    PROMPT = "prompt"
    """The prompt itself is at fault, so no peer can answer it."""
    IN_VAIN = "in vain"
    """There are compute peers, but none of them answered in time."""


class News(NamedTuple):
    """New tokens of the answer to a prompt, and the cost of each."""

    tokens: Sequence[AnyToken]
    costs: list[Cost]


class Over(NamedTuple):
    """The answer to a prompt is complete; `stopped` says why it ended."""

    stopped: Stopped


class Failed(NamedTuple):
    """A prompt gets no answer; `reason` says why, in words."""

    failure: Failure
    reason: str


PromptAction = Call | News | Over | Failed


class ComputeLoads(Protocol):
    """A source of the compute peers' announced loads."""

    def loads(self, now: float) -> Mapping[Peer, int]:
        """Return the live compute peers that accept prompts, each with its load."""
        ...


class PromptRouting:
    """Routes one prompt to compute peers until its answer is complete or it has failed."""

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
        """The missing rest of the prompt's last word; set once a peer has processed the prompt."""
        self.unknown: list[str] = []
        """The neurons of the prompt that were never learned; set once a peer has processed it."""
        self.begun: Cost | None = None
        """The cost of processing the prompt, at the first peer that did."""
        self.peers: list[Peer] = []
        """The peers that were asked, in order; a peer that was chosen twice is in it twice."""
        self._number, self._prompt, self._manner = number, prompt, manner
        self._others, self._timeout, self._patience = others, timeout, patience
        self._said, self._tokens = bytearray(), 0
        self._backoff: dict[Peer, Backoff] = {}
        self._until: dict[Peer, float] = {}  # time until which each peer is avoided
        self._refusals: dict[Peer, int] = {}  # number of refusals since the last new token
        self._left = -inf  # time at which a peer was last given up
        self._peer: Peer | None = None
        self._calls = 0
        self._asked: int | None = None  # the number of the pending call
        self._next = inf  # time of the next call, if none is pending
        # `_news`: time of the last new token. `_since`: the same, or when this peer was chosen.
        self._news = self._since = -inf
        self._reason = _SAID_NOTHING
        self._over = False

    def __repr__(self) -> str:
        return f"<PromptRouting: {self._tokens} tokens, {len(self.peers)} peers asked>"

    def begin(self, now: float) -> list[PromptAction]:
        """Send the prompt to the first peer."""
        self._news = now
        return self._ask(now)

    def answered(self, number: int, answer: Message | None, now: float) -> list[PromptAction]:
        """Handle the answer to a call; None means that no readable answer came in time."""
        if number != self._asked or self._over:
            return []
        self._asked = None
        if not isinstance(answer, Told):
            return self._turned_away(answer, now)
        try:
            self._check(answer)
        except MessageError as error:
            return self._leave(str(error), now)
        return self._on_answer(answer, now)

    def tick(self, now: float) -> list[PromptAction]:
        """Ask a peer again if a retry is due."""
        if self._over or self._asked is not None or now < self._next:
            return []
        return self._ask(now)

    @property
    def next_tick(self) -> float:
        """Time at which to call `tick`, if nothing happens before; infinite if there is no need."""
        return inf if self._over or self._asked is not None else self._next

    def _on_answer(self, told: Told, now: float) -> list[PromptAction]:
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
            return self._leave(f"no new token for {_STUCK:g} s", now)
        return acts + self._ask(now)

    def _check(self, told: Told) -> None:
        """Raise MessageError for an answer that no honest peer would send."""
        left = self._manner.max_tokens - self._tokens
        if len(told.tokens) > left:
            raise MessageError(f"{len(told.tokens)} tokens, though at most {left} were left")
        if len(told.costs) != len(told.tokens):
            raise MessageError(f"{len(told.costs)} costs for {len(told.tokens)} tokens")
        if (told.tokens or told.stopped is not None) and told.begun is None:
            raise MessageError("an answer without the cost of processing the prompt")

    def _turned_away(self, answer: Message | None, now: float) -> list[PromptAction]:
        if answer is None:
            return self._leave("no answer in time", now)
        if not isinstance(answer, Refusal):
            return self._leave("an answer of the wrong kind", now)
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
                self._until[peer] = now + _BUSY_BACKOFF
            else:
                self._backoff[peer] = self._backoff.get(peer, _BACKOFF).failed(now)
                self._until[peer] = self._backoff[peer].until
        return self._ask(now)

    def _ask(self, now: float) -> list[PromptAction]:
        loads = self._others.loads(now)
        if not loads and not self.peers:
            return self._fail(Failure.NOBODY, "there is no compute peer")
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
        """Return the peer to ask; if all are in backoff, set the time of the retry instead."""
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
