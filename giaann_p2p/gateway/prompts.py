"""The prompts that a gateway answers: how many at once, and how long each may take for a token."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import NamedTuple

from giaann_p2p.client.prompting import Answer
from giaann_p2p.gateway.backend import Backend
from giaann_p2p.gateway.failures import Busy, Unavailable
from giaann_p2p.gateway.limits import Limits
from giaann_p2p.gateway.metrics import Metrics
from giaann_p2p.gateway.openai_replies import Finish
from giaann_p2p.gateway.stops import Stops
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.said import AnyToken


class Piece(NamedTuple):
    """A part of an answer, as it came."""

    text: str
    tokens: list[AnyToken]
    finish: Finish | None = None
    """Why the answer ended; None if it goes on."""


class Prompts:
    """Answers prompts by a backend, within bounds."""

    def __init__(self, backend: Backend, limits: Limits, metrics: Metrics) -> None:
        self._backend, self._limits, self._metrics = backend, limits, metrics
        self._admitted = 0
        """Answers that requests may have at once; at most `limits.prompts`."""

    @contextmanager
    def admitted(self, count: int) -> Iterator[None]:
        """Keep room for the answers of a request during the block; Busy if there is too little.

        The room is kept from before the first answer begins, because requests that begin together
        would each find it free.
        """
        if self._admitted + count > self._limits.prompts:
            raise Busy(f"{self._limits.prompts} prompts are being answered at once; ask again soon")
        self._admitted += count
        try:
            yield
        finally:
            self._admitted -= count

    @asynccontextmanager
    async def answering(self, prompt: str, manner: Manner) -> AsyncIterator[Answer]:
        """Continue a prompt, which is `admitted`, for as long as the context lasts."""
        with self._metrics.prompt():
            async with self._backend.answering(prompt, manner) as answer:
                yield answer

    async def tokens(self, answer: Answer) -> AsyncGenerator[list[AnyToken], None]:
        """Yield the tokens of an answer; those that come together are in one list.

        Unavailable if no token comes for too long.
        """
        seconds = self._limits.silence_seconds
        while True:
            try:
                async with asyncio.timeout(seconds):
                    token = await anext(answer, None)
            except TimeoutError:
                raise Unavailable(f"no token has come for {seconds:g} s; try again") from None
            if token is None:
                return
            came = [token]
            while answer.is_ahead and (token := await anext(answer, None)) is not None:
                came.append(token)
            self._metrics.came(len(came))
            yield came

    async def pieces(
        self, prompt: str, manner: Manner, stops: tuple[str, ...]
    ) -> AsyncGenerator[list[Piece], None]:
        """Yield the pieces of an answer, up to a stop; those that come together are in one list.

        The last piece says why the answer ends.
        """
        cut, begun, last = Stops(stops), False, list[Piece]()
        async with (
            self.answering(prompt, manner) as answer,
            aclosing(self.tokens(answer)) as tokens,
        ):
            async for came in tokens:
                found = list[Piece]()
                for token in came:
                    text = token.text if begun else answer.completion + token.text
                    begun = True
                    found.append(Piece(cut.feed(text), [token]))
                    if cut.met:
                        break
                if cut.met or answer.stopped:  # the end comes with these
                    last = found
                    break
                yield found
            text = "" if begun else cut.feed(answer.completion)
            limited = answer.stopped == "limit" and not cut.met
            yield [*last, Piece(text + cut.flush(), [], "length" if limited else "stop")]
