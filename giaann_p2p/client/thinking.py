"""Answers that the client itself finds, with rows of a swarm: where nobody computes for others.

Importing this takes as long as importing spaCy and torch does.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import torch

from giaann_p2p.client.prompting import Answer
from giaann_p2p.client.visit import Visit
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.said import Stopped, Token
from giaann_p2p.node.row_cache import RowCache
from giaann_p2p.node.thinking import Thinking, Thought
from giaann_p2p.swarm.messages import Cost

_CACHE_BYTES = 1 << 28


class OwnAnswer(Answer):
    """An answer of this very process."""

    def __init__(self, thinking: Thinking, prompt: str, manner: Manner) -> None:
        super().__init__(prompt)
        self._thought = Thought(prompt, manner, thinking)
        self._begun: Cost | None = None

    @property
    def completion(self) -> str:
        """What the prompt's last word lacked, once a token has come."""
        return self._thought.completion

    @property
    def unknown(self) -> list[str]:
        """What of the prompt was never learned; see `Generation`."""
        return self._thought.unknown

    @property
    def stopped(self) -> Stopped | None:
        """Why it has ended, once it has."""
        return self._thought.stopped

    @property
    def begun(self) -> Cost | None:
        """What it took to take the prompt in."""
        return self._begun

    async def _next(self) -> tuple[Token, Cost] | None:
        if self._begun is None:
            await self._thought.begin()
            self._begun = self._thought.cost
        token = await self._thought.next()
        return None if token is None else (token, self._thought.cost)


@asynccontextmanager
async def thinking(visiting: Visit, device: torch.device) -> AsyncIterator[Thinking]:
    """Be ready to answer, with rows of a swarm."""
    reading = visiting.reading
    rows = RowCache(reading.rows, _CACHE_BYTES, received=lambda: reading.calls.bytes_in)
    ready = Thinking(rows, visiting.manifest.spec, device)
    try:
        yield ready
    finally:
        await rows.close()
        await ready.close()
