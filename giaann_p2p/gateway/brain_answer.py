"""A brain's answer to a prompt, computed in threads, a token at a time."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

from giaann_p2p.client.prompting import Answer
from giaann_p2p.model.said import AnyToken, Stopped
from giaann_p2p.solo.answer import Answer as Thought
from giaann_p2p.swarm.wire.prompt_messages import Cost

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function in a thread, and returns its result."""


class BrainAnswer(Answer):
    """The answer of a brain: each token is one piece of work for a thread."""

    def __init__(self, prompt: str, begin: Callable[[], Thought], run: InThread) -> None:
        super().__init__(prompt)
        self._begin, self._run = begin, run
        self._thought: Thought | None = None
        self._begun: Cost | None = None

    @property
    def completion(self) -> str:
        """The missing rest of the prompt's last word; known from the first token on."""
        return self._thought.completion if self._thought else ""

    @property
    def unknown(self) -> list[str]:
        """The words of the prompt that the brain never learned, as in `Generation.unknown`."""
        return self._thought.unknown if self._thought else []

    @property
    def stopped(self) -> Stopped | None:
        """Why the answer ended: `end` or `limit`, as in `Generation`; None until it has ended."""
        return self._thought.stopped if self._thought else None  # type: ignore[return-value]

    @property
    def begun(self) -> Cost | None:
        """The cost of processing the prompt, before the first token; None until that is done."""
        return self._begun

    async def _next(self) -> tuple[AnyToken, Cost] | None:
        if self._thought is None:
            began = time.perf_counter()
            self._thought = await self._run(self._begin)
            self._begun = _cost_since(began)
        began, thought = time.perf_counter(), self._thought
        token: AnyToken | None = await self._run(lambda: next(thought, None))
        return None if token is None else (token, _cost_since(began))


def _cost_since(began: float) -> Cost:
    """Return a cost of which only the time is known: a brain's rows are all at hand."""
    return Cost(micros=int(1e6 * (time.perf_counter() - began)))
