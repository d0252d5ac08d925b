"""Generates answers over rows that have to be fetched; a compute peer and a client share this.

1. In each turn of the event loop, the steps of all answers are computed together; an answer whose
   rows have not arrived yet misses the turn. Answers may begin and end at any turn.
2. The rows of all words of a prompt are prefetched as soon as it is parsed. Its last words may turn
   out to name other neurons; the rows of these and of the answer are prefetched by predicting them
   from the words read so far.
3. The event loop is never blocked for long. Prompts are parsed in a thread, all waiting ones
   together. Large rows are computed in a thread, too; other work takes no longer than a thread
   switch would.
4. An answer that exceeds its memory bound ends, because other answers need that memory.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import TypeVar

from giaann_p2p.errors import GiaannError
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.profile import MOST_BYTES, AnyProfile
from giaann_p2p.model.rows import Answer, End, Neuron, Question, Steps, Work, advanced, done
from giaann_p2p.model.said import AnyToken, Stopped
from giaann_p2p.node.reading.prompt_parser import PromptParser
from giaann_p2p.node.reading.row_cache import Bill, RowCache
from giaann_p2p.swarm.wire.prompt_messages import Cost

_LARGE = 1 << 12
"""Number of connections of a row above which a step takes too long for the event loop."""
_MUCH = 1 << 14
"""The same limit for all rows that are computed together."""
_FORESEEN, _EVERY = 1, 3
"""Number of candidates to prefetch for each place ahead, and of questions between two prefetches.
This fetches about six rows at a time."""
_PARTS = 4
"""The share of the memory for all answers that one answer may take: one part in 4."""
_MICRO = 1_000_000
"""Microseconds in a second."""
Frequent = Callable[[int], Awaitable[Answer]]
"""A function that returns a given number of the most frequent nouns."""
Foresee = Callable[[Question], Sequence[Neuron]]
"""A function that returns the neurons whose rows should be prefetched along with a question."""
T = TypeVar("T")


class TooLarge(GiaannError):  # noqa: N818  (what it is, not what went wrong)
    """An answer needs more memory than it is allowed."""


class Thinking:
    """The model state (`minds`), row cache, threads and limits that all answers of a peer share.

    Close it when no answer is being generated any more.
    """

    def __init__(
        self,
        rows: RowCache,
        profile: AnyProfile,
        *,
        frequent: Frequent,
        mind_bytes: int = MOST_BYTES,
    ) -> None:
        self.rows, self.profile = rows, profile
        self._frequent = frequent
        self.minds = profile.minds(mind_bytes)
        self.parser = PromptParser(profile)
        self._minding = ThreadPoolExecutor(1, "giaann-mind")
        self._due: list[tuple[Sequence[Work], asyncio.Future[None]]] = []
        self._working: asyncio.Task[None] | None = None

    async def through(self, steps: Steps[T], bill: Bill, foresee: Foresee = lambda _: ()) -> T:
        """Run the steps of an answer, fetching the rows that they ask for; return their result."""
        loop = asyncio.get_running_loop()
        at, large = advanced(steps, None), False
        while not isinstance(at, End):
            answer: Answer = []
            if isinstance(at, Question):
                began = perf_counter()
                answer = await self._read(at, bill, foresee)
                bill.waited += perf_counter() - began
                large = large or any(row and len(row.target) > _LARGE for row in answer)
            else:
                await self._done(at)
            if large:
                at = await loop.run_in_executor(self._minding, advanced, steps, answer)
            else:
                at = advanced(steps, answer)
        result: T = at.result
        return result

    async def close(self) -> None:
        """Return when the threads that parse and compute have ended."""
        await self.parser.close()
        await asyncio.get_running_loop().run_in_executor(None, self._minding.shutdown)

    async def _read(self, question: Question, bill: Bill, foresee: Foresee) -> Answer:
        if question.frequent:
            bill.trips += 1
            return await self._frequent(question.frequent)
        self.rows.ahead(foresee(question), bill)
        return await self.rows.rows(question, bill)

    async def _done(self, works: Sequence[Work]) -> None:
        """Do some work, in one step with all other work of this turn of the loop."""
        loop = asyncio.get_running_loop()
        finished: asyncio.Future[None] = loop.create_future()
        self._due.append((works, finished))
        if self._working is None:
            self._working = loop.create_task(self._work())
        await finished

    async def _work(self) -> None:
        """Do the work that is due, turn by turn, until none is left."""
        try:
            while self._due:
                due = [(works, one) for works, one in self._due if not one.done()]
                self._due = []
                await self._do([work for some, _ in due for work in some], [one for _, one in due])
                await asyncio.sleep(0)  # let the answers continue; they may add more work
        finally:
            self._working = None

    async def _do(self, works: Sequence[Work], due: Sequence[asyncio.Future[None]]) -> None:
        """Do one turn's work; if it fails, all answers of this turn fail, and no others."""
        fault: Exception | None = None
        try:
            if sum(work.connections for work in works) > _MUCH:
                await asyncio.get_running_loop().run_in_executor(self._minding, done, works)
            else:
                done(works)
        except Exception as error:  # noqa: BLE001  (the answers that wait for the work raise it)
            fault = error
        for finished in due:
            if finished.done():
                continue
            if fault is None:
                finished.set_result(None)
            else:
                finished.set_exception(fault)


class Thought:
    """One prompt's answer: call `begin`, then `next` for each token until it returns None."""

    def __init__(self, prompt: str, manner: Manner, thinking: Thinking) -> None:
        self.cost = Cost()
        """Cost of the last call of `begin` or `next`: time, rows and bytes."""
        self._thinking, self._prompt = thinking, prompt
        self._going_on = thinking.minds.continuation(prompt, manner)
        self._since_foreseen, self._prefetches = 0, False

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
        parsed = await self._thinking.parser.parsed(self._prompt)
        self._thinking.rows.ahead([*self._thinking.minds.needed(parsed), *said], bill)
        await self._thinking.through(self._going_on.begin(parsed, said), bill, self._foreseen)
        self._end(began, bill)

    async def next(self) -> AnyToken | None:
        """Return the answer's next token; None at its end, for the reason in `stopped`."""
        began, bill = perf_counter(), Bill()
        token = await self._thinking.through(self._going_on.next(), bill, self._foreseen)
        self._end(began, bill)
        return token

    def close(self) -> None:
        """End the answer, and give its memory back."""
        self._going_on.close()

    def _foreseen(self, question: Question) -> Sequence[Neuron]:
        """Return neurons to prefetch, but only every few questions or after rows had to be read."""
        self._check_size()
        foreseen = self._going_on.foreseen(_FORESEEN) if self._prefetches else ()
        self._since_foreseen = 1 if self._prefetches else self._since_foreseen + 1
        was_read = not self._thinking.rows.has(question)
        self._prefetches = was_read or self._since_foreseen >= _EVERY
        self._going_on.prefetch(self._prefetches)
        return foreseen

    def _end(self, began: float, bill: Bill) -> None:
        self.cost = Cost(
            int((perf_counter() - began) * _MICRO),
            int(bill.waited * _MICRO),
            bill.rows,
            bill.kept,
            bill.trips,
            bill.nbytes,
        )

    def _check_size(self) -> None:
        """Raise TooLarge if the answer exceeds its memory bound."""
        most = self._thinking.minds.most_bytes // _PARTS
        if self.nbytes > most:
            raise TooLarge(
                f"this answer needs more than the {most:,} bytes of memory that an answer may take"
                " here; ask for fewer tokens"
            )
