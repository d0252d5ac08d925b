"""Prompts to a swarm, answered by its compute peers, with failover from one to another.

Iterate over a `SwarmAnswer` for its tokens. Nothing runs in the background, so a client may simply
abandon an answer: it has nothing to clean up, and the compute peer's state for the prompt expires.
"""

import asyncio
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from giaann_p2p.client.session import Session
from giaann_p2p.errors import NobodyComputes, PeerError, PromptError
from giaann_p2p.model.manner import Manner, require, require_small
from giaann_p2p.model.said import AnyToken, Generation, Stopped
from giaann_p2p.net import errors as net
from giaann_p2p.net.transport import Transport
from giaann_p2p.swarm.members.commands import GENERAL, Commands
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.reading import prompt_routing
from giaann_p2p.swarm.reading.prompt_routing import Failed, Failure, News, Over, PromptRouting
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import BUSY, UNREADABLE, Refusal, decode, encode
from giaann_p2p.swarm.wire.prompt_messages import Cost

_NUMBER_BYTES = 16
"""Size of the random number that identifies a prompt, in bytes."""
_TIMEOUT, _PATIENCE = 1.0, 45.0
"""Seconds after which a request to a peer fails, and a prompt that gets no new token."""


class Answer(ABC):
    """An answer to a prompt: iterate over it for its tokens. Its fields cover the tokens so far."""

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt
        self.tokens: list[AnyToken] = []
        self.costs: list[Cost] = []
        """The cost of each token so far, in the order of `tokens`."""

    def __aiter__(self) -> AsyncIterator[AnyToken]:
        return self

    async def __anext__(self) -> AnyToken:
        found = await self._next()
        if found is None:
            raise StopAsyncIteration
        token, cost = found
        self.tokens.append(token)
        self.costs.append(cost)
        return token

    async def all(self) -> Generation:
        """Wait for the rest of the answer; return all of it, including the tokens so far."""
        async for _ in self:
            pass
        stopped = self.stopped or "end"
        return Generation(self.prompt, self.tokens, self.completion, self.unknown, stopped)

    async def aclose(self) -> None:  # noqa: B027  (most answers have nothing to close)
        """End the answer, even before its last token."""

    @property
    @abstractmethod
    def completion(self) -> str:
        """The missing rest of the prompt's last word; known from the first token on."""

    @property
    @abstractmethod
    def unknown(self) -> list[str]:
        """The words of the prompt that the swarm never learned, as in `Generation.unknown`."""

    @property
    @abstractmethod
    def stopped(self) -> Stopped | None:
        """Why the answer ended: `end` or `limit`, as in `Generation`; None until it has ended."""

    @property
    @abstractmethod
    def begun(self) -> Cost | None:
        """The cost of processing the prompt, before the first token; None until that is done."""

    @property
    def is_ahead(self) -> bool:
        """Whether the next token, or the end, has come already, so that it takes no waiting."""
        return False

    @abstractmethod
    async def _next(self) -> tuple[AnyToken, Cost] | None:
        """Return the next token and its cost; None at the end of the answer."""


class ComputePeers:
    """The compute peers in the directory, with their loads; implements `ComputeLoads`."""

    def __init__(self, around: PeersView, time: Callable[[], float]) -> None:
        self._around, self._time = around, time

    def loads(self, now: float) -> Mapping[Peer, int]:
        """Return the live, active compute peers, each with its load: queued chunks plus prompts."""
        live = self._around.directory.live(self._time())
        computing = (said for said in live if said.role == "compute" and said.state == "active")
        return {said.peer: said.load.queue + said.load.reads for said in computing}

    def has_rows(self) -> bool:
        """Return whether a storage peer is live, from which compute peers can read rows."""
        live = self._around.directory.live(self._time())
        return any(said.role == "storage" for said in live)


class SwarmAnswer(Answer):
    """An answer computed by the swarm's compute peers."""

    def __init__(
        self,
        transport: Transport,
        others: prompt_routing.ComputeLoads,
        clock: Callable[[], float],
        prompt: str,
        manner: Manner,
        *,
        number: bytes | None = None,
        timeout: float = _TIMEOUT,
        patience: float = _PATIENCE,
        commands: Commands = GENERAL,
        search: Callable[[], Awaitable[None]] | None = None,
        has_rows: Callable[[], bool] = lambda: True,
    ) -> None:
        """Prepare an answer; nothing is sent until its first token is asked for.

        `number` identifies the prompt at the compute peers; the default is random. `timeout`:
        seconds until a request fails. `patience`: seconds without a new token until the prompt
        fails. `commands`: the commands that error messages recommend. `search`: looks further for
        peers, and is called once if the directory lacks compute or storage peers. `has_rows`:
        whether there is a storage peer; without any, the prompt fails before a peer is asked.
        """
        super().__init__(prompt)
        number = number or secrets.token_bytes(_NUMBER_BYTES)
        self._transport, self._clock, self._commands = transport, clock, commands
        self._others, self._search, self._has_rows = others, search, has_rows
        self._asking = PromptRouting(
            number, prompt, manner, others, timeout=timeout, patience=patience
        )
        self._call: Call | None = None
        self._begun = False
        self._failed: Failed | None = None
        self._coming: list[tuple[AnyToken, Cost]] = []
        self._stopped: Stopped | None = None

    def __repr__(self) -> str:
        return f"<SwarmAnswer: {self._asking!r}>"

    @property
    def completion(self) -> str:
        """The missing rest of the prompt's last word; known from the first token on."""
        return self._asking.completion

    @property
    def unknown(self) -> list[str]:
        """The words of the prompt that the swarm never learned, as in `Generation.unknown`."""
        return self._asking.unknown

    @property
    def stopped(self) -> Stopped | None:
        """Why the answer ended: `end` or `limit`, as in `Generation`; None until it has ended."""
        return None if self._coming else self._stopped

    @property
    def begun(self) -> Cost | None:
        """The cost of processing the prompt, before the first token; None until that is done."""
        return self._asking.begun

    @property
    def is_ahead(self) -> bool:
        """Whether the next token, or the end, has come already: peers send several at a time."""
        return bool(self._coming) or self._stopped is not None

    @property
    def peers(self) -> list[Peer]:
        """The compute peers that have been asked so far, in the order of their first request."""
        return self._asking.peers

    async def _next(self) -> tuple[AnyToken, Cost] | None:
        while not self._coming and self._stopped is None:
            await self._go_on()
        return self._coming.pop(0) if self._coming else None

    async def _go_on(self) -> None:
        """Send one request and handle its answer, or wait until the next attempt is due."""
        if self._failed is not None:
            raise self._error(self._failed)
        if not self._begun:
            self._begun = True
            if self._search is not None and not self._can_begin():
                await self._search()
            if not self._has_rows():
                raise _nobody_stores(self._commands)
            self._do(self._asking.begin(self._clock()))
        elif self._call is not None:
            call, answer = self._call, await self._answer(self._call)
            self._call = None
            self._do(self._asking.answered(call.number, answer, self._clock()))
        else:
            await asyncio.sleep(max(0.0, self._asking.next_tick - self._clock()))
            self._do(self._asking.tick(self._clock()))

    def _do(self, acts: list[prompt_routing.PromptAction]) -> None:
        for act in acts:
            if isinstance(act, Call):
                self._call = act
            elif isinstance(act, News):
                self._coming += zip(act.tokens, act.costs, strict=True)
            elif isinstance(act, Over):
                self._stopped = act.stopped
            else:
                self._failed = act

    def _can_begin(self) -> bool:
        return self._has_rows() and bool(self._others.loads(self._clock()))

    def _error(self, failed: Failed) -> Exception:
        """Return the exception for a failed prompt, with advice to the user."""
        if failed.failure is Failure.IN_VAIN and not self._has_rows():
            return _nobody_stores(self._commands)
        return _error(failed, self._commands)

    async def _answer(self, call: Call) -> Message | None:
        """Make a call and return the answer; None if the call fails or the answer is unreadable."""
        try:
            question = encode(call.message)
            return decode(await self._transport.call(call.peer, question, timeout=call.timeout))
        except net.Refused as refusal:
            return _refused(refusal)
        except PeerError:
            return None


def ask(visiting: Session, prompt: str, manner: Manner, patience: float = _PATIENCE) -> SwarmAnswer:
    """Return the answer to a prompt by the compute peers of a session's swarm.

    `patience`: seconds without a new token until the prompt fails. UsageError for options that the
    profile of the swarm's model lacks, and for a prompt or a beam larger than compute peers accept.
    """
    require(manner, visiting.manifest.spec.profile)
    require_small(prompt, manner, taker="a compute peer")
    lookout = visiting.lookout
    others = ComputePeers(visiting.around, lookout.time)
    return SwarmAnswer(
        visiting.place.transport,
        others,
        visiting.clock,
        prompt,
        manner,
        patience=patience,
        commands=visiting.commands,
        search=visiting.join_dht,
        has_rows=others.has_rows,
    )


def _refused(refusal: net.Refused) -> Refusal:
    """Convert a refusal by a peer's transport to a `Refusal`, marked as busy if a retry may help.

    Only a prompt that is too long or cannot be read is refused for good, because no peer would
    accept it. Other refusals are not the prompt's fault: the peer may have just started, be
    leaving, or have no room.
    """
    if refusal.reason is net.Reason.TOO_LONG or str(refusal).startswith(UNREADABLE):
        return Refusal(str(refusal))
    return Refusal(f"{BUSY}: {refusal}")


def _nobody_stores(commands: Commands) -> Exception:
    """Return the exception for a prompt in a swarm whose storage peers are all gone."""
    return net.Unreachable(
        "no storage peer is in this swarm now, so what it has learned cannot be read; restart the"
        f" former ones, {commands.again}, or start one{commands.where} with"
        f" `{commands.add('storage')}`"
    )


def _error(failed: Failed, commands: Commands) -> Exception:
    if failed.failure is Failure.PROMPT:
        return PromptError(failed.reason)
    if failed.failure is Failure.NOBODY:
        return NobodyComputes(
            f"no compute peer is in this swarm now; start one{commands.where} with"
            f" `{commands.add('compute')}`, or compute on this machine: --local"
        )
    return net.Unreachable(
        f"no compute peer could continue the prompt; the last error: {failed.reason};"
        " try again later, or compute on this machine: --local"
    )
