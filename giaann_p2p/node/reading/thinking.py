"""Generates answers over rows that have to be fetched; a compute peer and a client share this.

1. The event loop is never blocked for long. A prompt is parsed in a thread. Once a large row was
   read for a token, the rest of that token is computed in a thread, too. Other steps take no longer
   than a thread switch would; they run in the loop, one per turn, whatever the number of prompts.
2. The rows of all words of a prompt are prefetched at once, as soon as it is parsed. The rows of
   its answer are prefetched by the answer's own predictions.
3. An answer that exceeds its memory bound ends, because other answers need that memory.
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
from giaann_p2p.node.reading.row_cache import Bill, RowCache
from giaann_p2p.swarm.wire.messages import Cost

_LARGE = 1 << 12
"""Number of connections of a row above which a step takes too long for the event loop."""
_FORESEEN, _EVERY = 1, 3
"""Number of candidates to prefetch for each place ahead, and number of tokens between prefetches.
This fetches about six rows at a time."""
_MICRO = 1_000_000
"""Microseconds in a second."""
Foresee = Callable[[Question], Sequence[Neuron]]
"""A function that returns the neurons whose rows should be prefetched along with a question."""
T = TypeVar("T")


class TooLarge(GiaannError):  # noqa: N818  (what it is, not what went wrong)
    """An answer needs more memory than it is allowed."""


class Thinking:
    """The row cache, threads and limits that all answers of a peer share.

    Close it when no answer is being generated any more.
    """

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
        self._taken = False  # whether a step has run in this turn of the loop

    async def parsed(self, prompt: str) -> list[PromptSentence]:
        """Parse a prompt in a thread, and return its sentences."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._parsing, self._parse, prompt)

    async def through(self, steps: Steps[T], bill: Bill, foresee: Foresee = lambda _: ()) -> T:
        """Run the steps of an answer, fetching the rows that they ask for; return their result."""
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
        """Return when the threads that parse and compute have ended."""
        loop = asyncio.get_running_loop()
        for threads in (self._parsing, self._minding):
            await loop.run_in_executor(None, threads.shutdown)

    async def _turn(self) -> None:
        """Wait for a turn of the event loop in which no other step runs."""
        loop = asyncio.get_running_loop()
        if self._taken:
            waits: asyncio.Future[None] = loop.create_future()
            self._waiting.append(waits)
            try:
                await waits
            except asyncio.CancelledError:
                if waits.done() and not waits.cancelled():  # pass on the unused turn
                    loop.call_soon(self._next_turn)
                raise
        self._taken = True
        loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        """Give this turn of the event loop to the first step that still waits."""
        while self._waiting:
            waits = self._waiting.popleft()
            if not waits.done():
                waits.set_result(None)
                return
        self._taken = False

    def _parse(self, prompt: str) -> list[PromptSentence]:
        if self._parser is None:
            self._parser = Parser(self.spec)  # loading takes a second, hence in the thread
        return self._parser.parse_prompt(list(text_sentences(prompt, max_chars(self.spec))))


class Thought:
    """One prompt's answer: call `begin`, then `next` for each token until it returns None."""

    def __init__(self, prompt: str, manner: Manner, thinking: Thinking) -> None:
        self.cost = Cost()
        """Cost of the last call of `begin` or `next`: time, rows and bytes."""
        self._thinking, self._prompt = thinking, prompt
        self._going_on = Continuation(prompt, thinking.spec, manner, thinking.device)
        self._since_foreseen = 0

    @property
    def completion(self) -> str:
        """The letters that complete the last word of the prompt."""
        return self._going_on.completion

    @property
    def unknown(self) -> list[str]:
        """The words of the prompt that were never learned."""
        return self._going_on.unknown

    @property
    def stopped(self) -> Stopped | None:
        """Why the answer has ended; None while it goes on."""
        return self._going_on.stopped

    @property
    def nbytes(self) -> int:
        """Approximate memory that the answer takes, in bytes."""
        return self._going_on.nbytes

    async def begin(self, said: Sequence[Neuron] = ()) -> None:
        """Read the prompt, and the tokens of its answer that were generated earlier (`said`)."""
        began, bill = perf_counter(), Bill()
        sentences = await self._thinking.parsed(self._prompt)
        named = [name.neuron for one in sentences for _, name in one.words if name]
        self._thinking.rows.ahead([*named, *said], bill)
        await self._thinking.through(self._going_on.begin(sentences, said), bill, self._bounded)
        self._end(began, bill)

    async def next(self) -> Token | None:
        """Return the answer's next token; None at its end, for the reason in `stopped`."""
        began, bill = perf_counter(), Bill()
        token = await self._thinking.through(self._going_on.next(), bill, self._foreseen)
        self._since_foreseen += 1
        self._end(began, bill)
        return token

    def _foreseen(self, question: Question) -> Sequence[Neuron]:
        """Return neurons to prefetch: every few tokens, and whenever a read is needed anyway."""
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
        """Return no neurons to prefetch; raise TooLarge if the answer exceeds its memory bound."""
        if self.nbytes > self._thinking.most_mind_bytes:
            raise TooLarge(
                f"this answer needs more than the {self._thinking.most_mind_bytes:,} bytes of"
                " memory that an answer may take here; ask for fewer tokens"
            )
        return ()


class _End(NamedTuple, Generic[T]):
    """The end of an answer's steps, with their result."""

    result: T


def _advanced(steps: Steps[T], answer: Answer | None) -> Question | _End[T]:
    """Resume steps with the rows that they asked for; return their next question, or their end."""
    try:
        return next(steps) if answer is None else steps.send(answer)
    except StopIteration as done:
        return _End(done.value)
