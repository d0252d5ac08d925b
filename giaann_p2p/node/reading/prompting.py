"""Answers the prompts of other peers: each gets a session that runs slightly ahead of its requests.

1. A request contains everything that its answer needs, so a session is only an optimisation: a
   request whose tokens differ from the session's, or that comes after its end, starts a new one.
2. A request is answered as soon as there are new tokens, or without any after `PromptOptions.wait`
   seconds, so the asking peer knows within a second whether this peer is still alive.
3. Sessions are bounded in number, in memory, and in how far they run ahead of the requests. A
   session ends when all its tokens are delivered, or when it has been idle for too long. A request
   beyond a bound is refused, with the reason. But clients do not report that they want no more of
   an answer, for example after a stop text. So if a peer has too many sessions, the one whose last
   request is the oldest is ended, unless a request may still wait for it.
4. If a prompt itself is at fault, the answer says what is wrong with it, because no peer could
   answer it. Any other failure is a refusal, after which another peer may succeed.
"""

import asyncio
import logging
import struct
from collections.abc import Callable, Sequence

from giaann_p2p.errors import GiaannError, PromptError, UsageError
from giaann_p2p.model.activation import NoMemory
from giaann_p2p.model.manner import require_small
from giaann_p2p.model.profile import AnyProfile
from giaann_p2p.model.rows import Neuron
from giaann_p2p.model.said import AnyToken
from giaann_p2p.node.reading.prompt_options import PromptOptions
from giaann_p2p.node.reading.row_cache import Read, RowCache
from giaann_p2p.node.reading.thinking import Frequent, Thinking, Thought
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import NEURON_BYTES, Message
from giaann_p2p.swarm.wire.messages import BUSY, Refusal
from giaann_p2p.swarm.wire.prompt_messages import MOST_TOLD, Ask, Cost, Told, continued

_BUSY = f"{BUSY}: this peer answers too many prompts already; ask another peer, or later"
_FULL = f"{BUSY}: no memory is left here for another prompt; ask another peer, or later"
_CLOSED = "this peer is ending, and answers no more prompts; ask another one"
_QUIET_WAITS = 2
"""A session is quiet if its last request is older than this multiple of `PromptOptions.wait`. Then
no request waits for it, because each ends within that time and `gather`."""
_Key = tuple[Peer, bytes]


class Prompting:
    """Answers other peers' prompts, each in a session of its own.

    `rows` reads rows, `frequent` the most frequent nouns; `received` returns the bytes that all
    reads of rows have received so far.
    """

    def __init__(
        self,
        rows: Read,
        profile: AnyProfile,
        options: PromptOptions | None = None,
        *,
        frequent: Frequent,
        received: Callable[[], int] = lambda: 0,
        parts_of: Callable[[Neuron], int] = lambda _: 1,
        log: logging.Logger | None = None,
    ) -> None:
        self.options = options or PromptOptions()
        self.answered = self.tokens = self.begun = self.taken_up = self.refused = 0
        """Totals: requests answered, tokens delivered, sessions begun, sessions taken over from
        another peer in the middle of an answer, requests refused."""
        most = self.options.cache_bytes
        self.rows = RowCache(rows, most, received=received, parts_of=parts_of)
        most = self.options.mind_bytes
        self._thinking = Thinking(self.rows, profile, frequent=frequent, mind_bytes=most)
        self._log = log or logging.getLogger("giaann.prompts")
        self._sessions: dict[_Key, _Session] = {}
        self._closed = False

    def __len__(self) -> int:
        """Return the number of open prompt sessions."""
        return len(self._sessions)

    def __repr__(self) -> str:
        return f"<Prompting: {len(self)} prompts, {self.rows!r}>"

    async def answer(self, sender: Peer, ask: Ask) -> Message:
        """Answer a peer's request to continue a prompt; a `Refusal` contains the reason."""
        try:
            told = await self._told(sender, ask)
        except GiaannError as error:
            self.refused += 1
            return Refusal(str(error))
        self.answered += 1
        self.tokens += len(told.tokens)
        return told

    async def warm_up(self) -> None:
        """Load the parser, which takes seconds, so that the first prompt need not wait for it."""
        await self._thinking.parser.parsed("Bees make honey.")

    async def close(self) -> None:
        """End all prompt sessions; return when their tasks and threads have ended."""
        self._closed = True
        ended = [self._end(key) for key in list(self._sessions)]
        await asyncio.gather(*ended, return_exceptions=True)
        await self.rows.close()
        await self._thinking.close()

    async def _told(self, sender: Peer, ask: Ask) -> Told:
        if self._closed:
            raise UsageError(_CLOSED)
        key = sender, ask.number
        session = self._sessions.get(key)
        if session is None or not session.goes_on_from(ask):
            session = self._begin(key, ask)
        self._keep(key, session)
        count = len(ask.said) // NEURON_BYTES
        await session.news(count, 1, self.options.wait)
        if count:
            await session.news(count, self.options.ahead, self.options.gather)
        told = session.told(count)
        if (told is None or told.stopped or told.fault) and self._sessions.get(key) is session:
            self._end(key)
        if told is None:
            raise session.fault or UsageError(_CLOSED)
        return told

    def _begin(self, key: _Key, ask: Ask) -> "_Session":
        if key in self._sessions:
            self._end(key)
        self._check(key[0], ask)
        session = self._sessions[key] = _Session(ask, self._thinking, self.options.ahead, self._log)
        self.begun += 1
        self.taken_up += bool(ask.said)
        return session

    def _check(self, sender: Peer, ask: Ask) -> None:
        options = self.options
        if len(ask.said) % NEURON_BYTES or len(ask.said) // NEURON_BYTES > ask.manner.max_tokens:
            raise UsageError(
                f"{len(ask.said)} bytes of earlier tokens: not whole neurons, or more than the"
                f" {ask.manner.max_tokens} tokens asked for"
            )
        chars, beam = options.prompt_chars, options.beam
        require_small(ask.prompt, ask.manner, chars=chars, beam=beam, taker="this peer")
        its = [key for key in self._sessions if key[0] == sender]
        full = len(self) >= options.sessions or len(its) >= options.sessions_each
        if full and not self._has_ended_quiet(its):
            raise UsageError(_BUSY)
        if self._thinking.minds.nbytes >= options.mind_bytes:
            raise UsageError(_FULL)

    def _has_ended_quiet(self, keys: Sequence[_Key]) -> bool:
        """End the session whose last request is the oldest; return False if all were recent."""
        now = asyncio.get_running_loop().time()
        last, key = min(((self._sessions[key].asked, key) for key in keys), default=(now, None))
        if key is None or now - last <= _QUIET_WAITS * self.options.wait:
            return False
        self._end(key)
        return True

    def _keep(self, key: _Key, session: "_Session") -> None:
        """Restart a prompt session's idle timeout."""
        if session.timer is not None:
            session.timer.cancel()
        loop = asyncio.get_running_loop()
        session.asked = loop.time()
        session.timer = loop.call_later(self.options.idle, self._end, key)

    def _end(self, key: _Key) -> asyncio.Task[None]:
        session = self._sessions.pop(key)
        if session.timer is not None:
            session.timer.cancel()
        session.task.cancel()
        return session.task


class _Session:
    """A prompt session: the tokens generated so far, and the task that generates more."""

    def __init__(self, ask: Ask, thinking: Thinking, ahead: int, log: logging.Logger) -> None:
        self.timer: asyncio.TimerHandle | None = None
        self.asked = 0.0
        """Time of the last request, by the event loop's clock."""
        self._ask, self._ahead, self._log = ask, ahead, log
        self._first = len(ask.said) // NEURON_BYTES  # number of tokens that other peers generated
        self._said = bytearray(ask.said)
        self._tokens: list[AnyToken] = []
        self._costs: list[Cost] = []
        self._begun: Cost | None = None
        self.fault: GiaannError | None = None
        """The error that ended the session; None while it runs, or if the answer is complete."""
        self._thought = Thought(ask.prompt, ask.manner, thinking)
        self._wanted = self._first
        self._change, self._more = asyncio.Event(), asyncio.Event()
        self.task = asyncio.get_running_loop().create_task(self._run())

    def goes_on_from(self, ask: Ask) -> bool:
        """Return whether a request continues this session, by its prompt, options and tokens."""
        mine = self._ask
        same = (ask.prompt, ask.manner) == (mine.prompt, mine.manner)
        there = len(ask.said) >= len(mine.said) and self._said.startswith(ask.said)
        return same and there and not self._refused

    async def news(self, count: int, more: int, within: float) -> None:
        """Wait for `count + more` tokens or the answer's end, at most `within` seconds."""
        self._wanted = max(self._wanted, count)
        self._more.set()
        try:
            async with asyncio.timeout(within):
                while not self._over and self._first + len(self._tokens) < count + more:
                    self._change.clear()
                    await self._change.wait()
        except TimeoutError:
            pass

    def told(self, count: int) -> Told | None:
        """Return the answer's tokens after the first `count`; None if the session failed first."""
        at = count - self._first
        end = at + MOST_TOLD
        tokens, costs = self._tokens[at:end], self._costs[at:end]
        if self._refused and not tokens:
            return None
        thought = self._thought
        unknown = thought.unknown if self._begun else []
        return continued(
            thought.completion,
            unknown,
            tokens,
            thought.stopped if end >= len(self._tokens) else None,
            costs,
            self._begun,
            "" if self.fault is None else str(self.fault),
        )

    @property
    def _refused(self) -> bool:
        """Whether the session failed for another reason than a fault of the prompt.

        If another peer has generated tokens already, the prompt itself is sound, and a PromptError
        means that this peer could not read some rows.
        """
        by_prompt = isinstance(self.fault, PromptError) and not self._first
        return self.fault is not None and not by_prompt

    @property
    def _over(self) -> bool:
        return self.task.done() or self.fault is not None or self._thought.stopped is not None

    async def _run(self) -> None:
        try:
            await self._think()
        except NoMemory as error:
            self.fault = UsageError(f"{BUSY}: {error}")
        except GiaannError as error:
            self.fault = error
        except Exception as error:  # noqa: BLE001  (a stranger's prompt must not end this peer)
            self._log.exception("a prompt failed with an unexpected error")
            self.fault = GiaannError(
                f"this peer failed to answer ({type(error).__name__}); ask another peer"
            )
        finally:
            self._thought.close()
            self._change.set()

    async def _think(self) -> None:
        numbers = struct.unpack(f"<{2 * self._first}Q", self._ask.said)
        said = list(map(Neuron, numbers[::2], numbers[1::2]))
        await self._thought.begin(said)
        self._begun = self._thought.cost
        while True:
            while self._first + len(self._tokens) >= self._wanted + self._ahead:
                self._more.clear()
                await self._more.wait()
            token = await self._thought.next()
            if token is None:
                return
            self._tokens.append(token)
            self._costs.append(self._thought.cost)
            self._said += struct.pack("<2Q", *token.name.neuron)
            self._change.set()
