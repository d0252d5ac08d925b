"""Answers in the making, over rows that have to be fetched: what a compute peer and a client share.

1. Nothing holds the loop up for more than a moment: a prompt is parsed in a thread, and so are the
   steps of a mind that has met large rows. Those of others take about as long as the way to a
   thread and back; of these there is one in each turn of the loop, however many prompts there are.
2. A prompt's rows are read ahead by its parse, all at once; those of its answer by what its mind
   foresees.
3. A mind that grows beyond its bound ends: it costs memory that others have a claim to.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Generic, NamedTuple, TypeVar

import torch

from giaann_p2p.errors import GiaannError
from giaann_p2p.model.answer import Continuation
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.parse import Parser, PromptSentence, max_chars
from giaann_p2p.model.rows import Answer, Neuron, Question, Steps
from giaann_p2p.model.said import Stopped, Token
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import text_sentences
from giaann_p2p.node.row_cache import Bill, RowCache
from giaann_p2p.swarm.messages import Cost

_LARGE = 1 << 12
"""Connections of a row from which on a step takes more than a moment."""
_FORESEEN, _EVERY = 1, 3
"""So many of the best for each place ahead, each so many tokens: some half a dozen lie ahead."""
_MICRO = 1_000_000
Foresee = Callable[[Question], Sequence[Neuron]]
"""Tells what to read ahead behind a question."""
T = TypeVar("T")


class TooLarge(GiaannError):  # noqa: N818  (what it is, not what went wrong)
    """A mind that would take more memory than it may."""


class Thinking:
    """What all answers of a peer share; close it when none goes on."""

    def __init__(
        self,
        rows: RowCache,
        spec: ModelSpec,
        device: torch.device,
        *,
        parser: Parser | None = None,
        most_mind_bytes: int = 1 << 30,
    ) -> None:
        self.rows, self.spec, self.device = rows, spec, device
        self.most_mind_bytes = most_mind_bytes
        self._parser = parser
        self._parsing = ThreadPoolExecutor(1, "giaann-parse")
        self._minding = ThreadPoolExecutor(1, "giaann-mind")
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False  # this turn of the loop

    async def parsed(self, prompt: str) -> list[PromptSentence]:
        """Parse a prompt."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._parsing, self._parse, prompt)

    async def through(self, steps: Steps[T], bill: Bill, foresee: Foresee = lambda _: ()) -> T:
        """Carry steps through, and return what they come to."""
        loop = asyncio.get_running_loop()
        await self._turn()
        at: Question | _End[T] = _advanced(steps, None)
        large = False
        while not isinstance(at, _End):
            answer: Answer = []
            if at.neurons:
                began = perf_counter()
                self.rows.ahead(foresee(at), bill)
                answer = await self.rows.rows(at, bill)
                bill.waited += perf_counter() - began
                large = large or any(row and len(row.target) > _LARGE for row in answer)
            if large:
                at = await loop.run_in_executor(self._minding, _advanced, steps, answer)
            else:
                await self._turn()
                at = _advanced(steps, answer)
        result: T = at.result
        return result

    async def close(self) -> None:
        """Return when no thread works on."""
        loop = asyncio.get_running_loop()
        for threads in (self._parsing, self._minding):
            await loop.run_in_executor(None, threads.shutdown)

    async def _turn(self) -> None:
        """Return in a turn of the loop in which no other step is made."""
        loop = asyncio.get_running_loop()
        if self._taken:
            waits: asyncio.Future[None] = loop.create_future()
            self._waiting.append(waits)
            try:
                await waits
            except asyncio.CancelledError:
                if waits.done() and not waits.cancelled():  # it had its turn, and leaves it unused
                    loop.call_soon(self._next_turn)
                raise
        self._taken = True
        loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        """Let the next one have its turn, of those that still wait."""
        while self._waiting:
            waits = self._waiting.popleft()
            if not waits.done():
                waits.set_result(None)
                return
        self._taken = False

    def _parse(self, prompt: str) -> list[PromptSentence]:
        if self._parser is None:
            self._parser = Parser(self.spec)  # it takes a second, so here, in the thread
        return self._parser.parse_prompt(list(text_sentences(prompt, max_chars(self.spec))))


class Thought:
    """One answer: `begin`, then `next` for each token until there is none."""

    def __init__(self, prompt: str, manner: Manner, thinking: Thinking) -> None:
        self.cost = Cost()
        """Of what was done last."""
        self._thinking, self._prompt = thinking, prompt
        self._going_on = Continuation(prompt, thinking.spec, manner, thinking.device)
        self._since_foreseen = 0

    @property
    def completion(self) -> str:
        """What the prompt's last word lacked."""
        return self._going_on.completion

    @property
    def unknown(self) -> list[str]:
        """What of the prompt was never learned."""
        return self._going_on.unknown

    @property
    def stopped(self) -> Stopped | None:
        """Why it has ended, once it has."""
        return self._going_on.stopped

    @property
    def nbytes(self) -> int:
        """How much memory it takes, about."""
        return self._going_on.nbytes

    async def begin(self, said: Sequence[Neuron] = ()) -> None:
        """Take the prompt in, and what was said to it already."""
        began, bill = perf_counter(), Bill()
        sentences = await self._thinking.parsed(self._prompt)
        named = [name.neuron for one in sentences for _, name in one.words if name]
        self._thinking.rows.ahead([*named, *said], bill)
        await self._thinking.through(self._going_on.begin(sentences, said), bill, self._bounded)
        self._end(began, bill)

    async def next(self) -> Token | None:
        """Return the next token; None if there is none, and `stopped` tells why."""
        began, bill = perf_counter(), Bill()
        token = await self._thinking.through(self._going_on.next(), bill, self._foreseen)
        self._since_foreseen += 1
        self._end(began, bill)
        return token

    def _foreseen(self, question: Question) -> Sequence[Neuron]:
        """Look ahead now and then, and whenever others have to be waited for in any case."""
        self._bounded(question)
        if self._since_foreseen < _EVERY and self._thinking.rows.has(question):
            return ()
        self._since_foreseen = 0
        return self._going_on.foreseen(_FORESEEN)

    def _end(self, began: float, bill: Bill) -> None:
        self.cost = Cost(
            int((perf_counter() - began) * _MICRO),
            int(bill.waited * _MICRO),
            bill.rows,
            bill.kept,
            bill.trips,
            bill.nbytes,
        )

    def _bounded(self, _question: Question) -> Sequence[Neuron]:
        """Go on only within the memory that there is for one answer; read nothing ahead."""
        if self.nbytes > self._thinking.most_mind_bytes:
            raise TooLarge(
                "this answer has touched more of the swarm's knowledge than fits into the"
                f" {self._thinking.most_mind_bytes:,} bytes that an answer may take here;"
                " ask for fewer tokens"
            )
        return ()


class _End(NamedTuple, Generic[T]):
    """The end of steps."""

    result: T


def _advanced(steps: Steps[T], answer: Answer | None) -> Question | _End[T]:
    """Go to the next question, or to the end."""
    try:
        return next(steps) if answer is None else steps.send(answer)
    except StopIteration as done:
        return _End(done.value)
