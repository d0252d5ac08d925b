"""The prompts that a gateway answers: how many at once, and for how long one may say nothing."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
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
    goes_on: bool = False
    """Whether the next piece comes at once, so that both may be sent together."""


Numbered = tuple[int, Piece]
"""A piece, with the number of its answer among those of a request."""


class Prompts:
    """Answers prompts by a backend, within bounds."""

    def __init__(self, backend: Backend, limits: Limits, metrics: Metrics) -> None:
        self._backend, self._limits, self._metrics = backend, limits, metrics

    @property
    def now(self) -> int:
        """The number of prompts that are being answered."""
        return self._metrics.prompts_now

    def admit(self, count: int) -> None:
        """Raise Busy if there is no room for so many more prompts."""
        if self.now + count > self._limits.prompts:
            raise Busy(f"{self._limits.prompts} prompts are being answered at once; ask again soon")

    @asynccontextmanager
    async def answering(self, prompt: str, manner: Manner) -> AsyncIterator[Answer]:
        """Continue a prompt for as long as the context lasts."""
        self.admit(1)
        with self._metrics.prompt():
            async with self._backend.answering(prompt, manner) as answer:
                yield answer

    async def tokens(self, answer: Answer) -> AsyncGenerator[AnyToken, None]:
        """Yield the tokens of an answer; Unavailable if none comes for too long."""
        seconds = self._limits.silence_seconds
        while True:
            try:
                async with asyncio.timeout(None if answer.is_ahead else seconds):
                    token = await anext(answer, None)
            except TimeoutError:
                raise Unavailable(f"no token has come for {seconds:g} s; try again") from None
            if token is None:
                return
            self._metrics.token()
            yield token

    async def pieces(
        self, prompt: str, manner: Manner, stops: tuple[str, ...]
    ) -> AsyncGenerator[Piece, None]:
        """Yield an answer piece by piece, up to one of the stops; the last one says why it ends."""
        cut, begun = Stops(stops), False
        async with (
            self.answering(prompt, manner) as answer,
            aclosing(self.tokens(answer)) as tokens,
        ):
            async for token in tokens:
                text = token.text if begun else answer.completion + token.text
                begun = True
                yield Piece(cut.feed(text), [token], None, answer.is_ahead)
                if cut.met:
                    break
            text = "" if begun else cut.feed(answer.completion)
            limited = answer.stopped == "limit" and not cut.met
            yield Piece(text + cut.flush(), [], "length" if limited else "stop")


async def bundled(pieces: AsyncGenerator[Numbered, None]) -> AsyncGenerator[list[Numbered], None]:
    """Yield the pieces that come together, together: to send one takes longer than to make it."""
    async with aclosing(pieces):
        bundle = list[Numbered]()
        async for one in pieces:
            bundle.append(one)
            if not one[1].goes_on:
                yield bundle
                bundle = []
        if bundle:
            yield bundle
