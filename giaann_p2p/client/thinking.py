"""Answers that the client computes itself from a swarm's rows, for swarms without compute peers.

Importing this module takes seconds, because it imports spaCy and torch.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import torch

from giaann_p2p.client.prompting import Answer
from giaann_p2p.client.session import Session
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.said import AnyToken, Stopped
from giaann_p2p.node.reading.row_cache import RowCache
from giaann_p2p.node.reading.thinking import Thinking, Thought
from giaann_p2p.swarm.wire.prompt_messages import Cost

_CACHE_BYTES = 1 << 28
"""Size of the row cache, in bytes."""


class OwnAnswer(Answer):
    """An answer to a prompt that is computed in this process."""

    def __init__(self, thinking: Thinking, prompt: str, manner: Manner) -> None:
        super().__init__(prompt)
        self._thought = Thought(prompt, manner, thinking)
        self._begun: Cost | None = None

    @property
    def completion(self) -> str:
        """The missing rest of the prompt's last word; known from the first token on."""
        return self._thought.completion

    @property
    def unknown(self) -> list[str]:
        """The words of the prompt that the swarm never learned, as in `Generation.unknown`."""
        return self._thought.unknown

    @property
    def stopped(self) -> Stopped | None:
        """Why the answer ended: `end` or `limit`, as in `Generation`; None until it has ended."""
        return self._thought.stopped

    @property
    def begun(self) -> Cost | None:
        """The cost of processing the prompt, before the first token; None until that is done."""
        return self._begun

    async def _next(self) -> tuple[AnyToken, Cost] | None:
        if self._begun is None:
            await self._thought.begin()
            self._begun = self._thought.cost
        token = await self._thought.next()
        return None if token is None else (token, self._thought.cost)


@asynccontextmanager
async def thinking(visiting: Session, device: torch.device) -> AsyncIterator[Thinking]:
    """Yield a `Thinking` over the rows that a session reads, with a row cache of 256 MiB."""
    reading = visiting.reading
    rows = RowCache(
        reading.rows,
        _CACHE_BYTES,
        received=lambda: reading.calls.bytes_in,
        parts_of=reading.parts_of,
    )
    profile = profile_of(visiting.manifest.spec, device)
    ready = Thinking(rows, profile, frequent=reading.nouns.most)
    try:
        yield ready
    finally:
        await rows.close()
        await ready.close()
