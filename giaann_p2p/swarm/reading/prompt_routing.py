"""Which compute peer goes on from a prompt: the client's side, decided purely.

1. One peer is asked at a time, and stays the one that is asked while it answers. It is drawn, by
   the prompt's number, from those that say they have the least to do.
2. Every question has all that was said so far, so the next peer goes on where the last one fell
   silent. Who is silent, refuses or makes no sense is shunned for a while, longer each time; if all
   are, whose time ends first is asked again soon. One that is busy is not at fault.
3. A peer that answers but says nothing new for long is taken for one that is stuck.
4. It ends with the answer, with the fault of the prompt itself, when nobody computes, when all that
   do have refused twice, or when there was nothing new for as long as its patience lasts; the last
   reason that was heard is told.
"""

import hashlib
import struct
from collections.abc import Mapping
from enum import Enum
from math import inf
from typing import NamedTuple, Protocol

from giaann_p2p.errors import MessageError
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.said import Stopped, Token
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import Ask, Cost, Message, Refused, Told

_SHUN, _MOST_SHUN = 2.0, 30.0
_SHUN_BUSY = 1.0
_PAUSE = 0.5
"""When all are shunned, before one is asked again."""
_MOST_REFUSALS = 2
_STUCK = 16.0
"""More than rows are waited for: see `node.reading`."""
_SAID_NOTHING = "nobody has answered yet"


class Failure(Enum):
    """Why there is no answer."""

    NOBODY = "nobody"
    """No compute peer is there."""
    PROMPT = "prompt"
    """The prompt's own fault."""
    IN_VAIN = "in vain"
    """None of those that are there could."""


class News(NamedTuple):
    """What is new."""

    tokens: list[Token]
    costs: list[Cost]


class Over(NamedTuple):
    """The answer has ended, as it should."""

    stopped: Stopped


class Failed(NamedTuple):
    """It has not; `reason` says why."""

    failure: Failure
    reason: str


Act = Call | News | Over | Failed


class Others(Protocol):
    """What is known of the compute peers."""

    def loads(self, now: float) -> Mapping[Peer, int]:
        """Return those that are there and take prompts, and how much each has to do."""
        ...


class Asking:
    """One prompt on its way to an answer."""

    def __init__(
        self,
        number: bytes,
        prompt: str,
        manner: Manner,
        others: Others,
        *,
        timeout: float = 1.0,
        patience: float = 45.0,
    ) -> None:
        self.completion = ""
        """What the prompt's last word lacked, from the first news on."""
        self.unknown: list[str] = []
        self.begun: Cost | None = None
        """What it took to take the prompt in, where it was first done."""
        self.peers: list[Peer] = []
        """Those that were asked, in turn."""
        self._number, self._prompt, self._manner = number, prompt, manner
        self._others, self._timeout, self._patience = others, timeout, patience
        self._said, self._tokens = bytearray(), 0
        self._shunned: dict[Peer, tuple[float, float]] = {}  # until when, and how long that was
        self._refusals: dict[Peer, int] = {}  # since there was something new
        self._left = -inf  # when the last one was left
        self._peer: Peer | None = None
        self._calls = 0
        self._asked: int | None = None  # the number of the call that is under way
        self._next = inf  # when to ask again, if none is
        self._news = self._since = -inf  # when there was something new; the same at this peer
        self._reason = _SAID_NOTHING
        self._over = False

    def __repr__(self) -> str:
        return f"<Asking: {self._tokens} tokens, {len(self.peers)} peers asked>"

    def begin(self, now: float) -> list[Act]:
        """Ask the first."""
        self._news = now
        return self._ask(now)

    def answered(self, number: int, answer: Message | None, now: float) -> list[Act]:
        """Go on with an answer, or with None when there was none in time that can be read."""
        if number != self._asked or self._over:
            return []
        self._asked = None
        if not isinstance(answer, Told):
            return self._turned_away(answer, now)
        try:
            self._check(answer)
        except MessageError as error:
            return self._leave(str(error), now)
        return self._told(answer, now)

    def tick(self, now: float) -> list[Act]:
        """Ask again if it is time to."""
        if self._over or self._asked is not None or now < self._next:
            return []
        return self._ask(now)

    @property
    def next_tick(self) -> float:
        """When `tick` has something to do, if nothing happens before."""
        return inf if self._over or self._asked is not None else self._next

    def _told(self, told: Told, now: float) -> list[Act]:
        if told.fault:
            return self._fail(Failure.PROMPT, told.fault)
        acts: list[Act] = []
        if told.begun is not None:
            self.completion, self.unknown = told.completion, told.unknown
            self.begun = self.begun or told.begun
        if told.tokens:
            self._news = self._since = now
            self._refusals.clear()
            if self._peer is not None:
                self._shunned.pop(self._peer, None)
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

    def _check(self, told: Told) -> None:
        """Raise MessageError for what no honest peer says."""
        left = self._manner.max_tokens - self._tokens
        if len(told.tokens) > left:
            raise MessageError(f"{len(told.tokens)} tokens where {left} were left to say")
        if len(told.costs) != len(told.tokens):
            raise MessageError(f"{len(told.costs)} costs of {len(told.tokens)} tokens")
        if (told.tokens or told.stopped is not None) and told.begun is None:
            raise MessageError("an answer to a prompt that was not taken in")

    def _turned_away(self, answer: Message | None, now: float) -> list[Act]:
        if answer is None:
            return self._leave("no answer in time", now)
        if not isinstance(answer, Refused):
            return self._leave("it answered something else than it was asked", now)
        if answer.is_busy:
            return self._leave(answer.reason, now, busy=True)
        if self._peer is not None:
            self._refusals[self._peer] = self._refusals.get(self._peer, 0) + 1
        return self._leave(answer.reason, now)

    def _leave(self, reason: str, now: float, *, busy: bool = False) -> list[Act]:
        """Shun the peer that was asked, and ask another."""
        peer, self._peer = self._peer, None
        self._reason, self._left = reason, now
        if peer is not None:
            _, before = self._shunned.get(peer, (0.0, 0.0))
            longer = min(2 * before or _SHUN, _MOST_SHUN)
            self._shunned[peer] = (now + _SHUN_BUSY, before) if busy else (now + longer, longer)
        return self._ask(now)

    def _ask(self, now: float) -> list[Act]:
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
        """Return whom to ask; None if all are shunned, and note when to look again."""
        until = {peer: self._shunned.get(peer, (-inf, 0.0))[0] for peer in loads}
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

    def _fail(self, failure: Failure, reason: str) -> list[Act]:
        self._over = True
        return [Failed(failure, reason)]
