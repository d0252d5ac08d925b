"""Prompts to a swarm: its compute peers go on from them, whichever of them live.

Iterate over a `SwarmAnswer` for its tokens. Nothing runs on its own: who does not ask for the next
token leaves nothing behind, and whoever computes stops by itself.
"""

import asyncio
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping

from giaann_p2p.client.visit import Visit
from giaann_p2p.errors import NobodyComputes, PeerError, PromptError
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.said import Generation, Stopped, Token
from giaann_p2p.net import errors as net
from giaann_p2p.net.transport import Transport
from giaann_p2p.swarm import asking
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.asking import Asking, Failed, Failure, News, Over
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import BUSY, Cost, Message, Refused, decode, encode
from giaann_p2p.swarm.surroundings import Surroundings

_NUMBER_BYTES = 16
_TIMEOUT, _PATIENCE = 1.0, 45.0


class Answer(ABC):
    """Iterate over it for the tokens; what came so far is in its fields."""

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt
        self.tokens: list[Token] = []
        self.costs: list[Cost] = []
        """What each token took."""

    def __aiter__(self) -> AsyncIterator[Token]:
        return self

    async def __anext__(self) -> Token:
        found = await self._next()
        if found is None:
            raise StopAsyncIteration
        token, cost = found
        self.tokens.append(token)
        self.costs.append(cost)
        return token

    async def all(self) -> Generation:
        """Go on to the end; return the whole answer, with what was asked for before."""
        async for _ in self:
            pass
        stopped = self.stopped or "end"
        return Generation(self.prompt, self.tokens, self.completion, self.unknown, stopped)

    @property
    @abstractmethod
    def completion(self) -> str:
        """What the prompt's last word lacked, once a token has come."""

    @property
    @abstractmethod
    def unknown(self) -> list[str]:
        """What of the prompt was never learned; see `Generation`."""

    @property
    @abstractmethod
    def stopped(self) -> Stopped | None:
        """Why it has ended, once it has."""

    @property
    @abstractmethod
    def begun(self) -> Cost | None:
        """What it took to take the prompt in."""

    @abstractmethod
    async def _next(self) -> tuple[Token, Cost] | None:
        """Return the next token; None at the end."""


class ComputePeers:
    """Who computes, by the directory: `asking.Others`."""

    def __init__(self, around: Surroundings, time: Callable[[], float]) -> None:
        self._around, self._time = around, time

    def loads(self, now: float) -> Mapping[Peer, int]:
        """Return those that are there and take prompts, and how much each has to do."""
        live = self._around.directory.live(self._time())
        computing = (said for said in live if said.role == "compute" and said.state == "active")
        return {said.peer: said.load.queue + said.load.reads for said in computing}


class SwarmAnswer(Answer):
    """An answer that compute peers find."""

    def __init__(
        self,
        transport: Transport,
        others: asking.Others,
        clock: Callable[[], float],
        prompt: str,
        manner: Manner,
        *,
        number: bytes | None = None,
        timeout: float = _TIMEOUT,
        patience: float = _PATIENCE,
    ) -> None:
        super().__init__(prompt)
        number = number or secrets.token_bytes(_NUMBER_BYTES)
        self._transport, self._clock = transport, clock
        self._asking = Asking(number, prompt, manner, others, timeout=timeout, patience=patience)
        self._call: Call | None = None
        self._begun = False
        self._failed: Failed | None = None
        self._coming: list[tuple[Token, Cost]] = []
        self._stopped: Stopped | None = None

    def __repr__(self) -> str:
        return f"<SwarmAnswer: {self._asking!r}>"

    @property
    def completion(self) -> str:
        """What the prompt's last word lacked, once a token has come."""
        return self._asking.completion

    @property
    def unknown(self) -> list[str]:
        """What of the prompt was never learned; see `Generation`."""
        return self._asking.unknown

    @property
    def stopped(self) -> Stopped | None:
        """Why it has ended, once it has."""
        return None if self._coming else self._stopped

    @property
    def begun(self) -> Cost | None:
        """What it took to take the prompt in."""
        return self._asking.begun

    @property
    def peers(self) -> list[Peer]:
        """Those that were asked, in turn."""
        return self._asking.peers

    async def _next(self) -> tuple[Token, Cost] | None:
        while not self._coming and self._stopped is None:
            await self._go_on()
        return self._coming.pop(0) if self._coming else None

    async def _go_on(self) -> None:
        """Ask, or wait until it is time to."""
        if self._failed is not None:
            raise _error(self._failed)
        if not self._begun:
            self._begun = True
            self._do(self._asking.begin(self._clock()))
        elif self._call is not None:
            call, answer = self._call, await self._answer(self._call)
            self._call = None
            self._do(self._asking.answered(call.number, answer, self._clock()))
        else:
            await asyncio.sleep(max(0.0, self._asking.next_tick - self._clock()))
            self._do(self._asking.tick(self._clock()))

    def _do(self, acts: list[asking.Act]) -> None:
        for act in acts:
            if isinstance(act, Call):
                self._call = act
            elif isinstance(act, News):
                self._coming += zip(act.tokens, act.costs, strict=True)
            elif isinstance(act, Over):
                self._stopped = act.stopped
            else:
                self._failed = act

    async def _answer(self, call: Call) -> Message | None:
        """Return what a peer answers, None if that cannot be read or does not come in time."""
        try:
            question = encode(call.message)
            return decode(await self._transport.call(call.peer, question, timeout=call.timeout))
        except net.Refused as refusal:
            return _refused(refusal)
        except PeerError:
            return None


def ask(visiting: Visit, prompt: str, manner: Manner) -> SwarmAnswer:
    """Ask the compute peers of a swarm."""
    lookout = visiting.lookout
    others = ComputePeers(visiting.around, lookout.time)
    return SwarmAnswer(visiting.place.transport, others, visiting.clock, prompt, manner)


def _refused(refusal: net.Refused) -> Refused:
    """Return what a refusal by a peer's connection comes to: it says little about the prompt.

    A peer that has just begun serves nothing yet, and one may leave or have no room. So only what
    no peer could take in is held against the prompt; else it is worth asking again.
    """
    if refusal.reason is net.Reason.TOO_LONG:
        return Refused(str(refusal))
    return Refused(f"{BUSY}: {refusal}")


def _error(failed: Failed) -> Exception:
    if failed.failure is Failure.PROMPT:
        return PromptError(failed.reason)
    if failed.failure is Failure.NOBODY:
        return NobodyComputes(
            "nobody computes in this swarm now; start `giaann compute --join LINK` somewhere,"
            " or compute here: --local"
        )
    return net.Unreachable(
        f"no compute peer could go on from the prompt; the last one said: {failed.reason};"
        " ask again later, or compute here: --local"
    )
