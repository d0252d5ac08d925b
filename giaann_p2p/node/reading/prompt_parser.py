"""Parses prompts in a thread, all waiting ones together: the tagger works on many at once."""

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic

from giaann_p2p.model.profile import Profile, Prompt

_MOST_CHARS = 1 << 14
"""Maximum number of characters that are parsed together; a longer prompt is parsed alone."""


@dataclass
class _Waiting(Generic[Prompt]):
    """A prompt that waits to be parsed, and the outcome."""

    prompt: str
    found: Prompt | Exception | None = None
    """The parsed prompt, or the exception; None before it is parsed."""


class PromptParser(Generic[Prompt]):
    """A parser in a thread. Close it when no prompt waits any more."""

    def __init__(self, profile: Profile[Prompt]) -> None:
        self._profile = profile
        self._thread = ThreadPoolExecutor(1, "giaann-parse")
        self._waiting = deque[_Waiting[Prompt]]()

    async def parsed(self, prompt: str) -> Prompt:
        """Return a prompt as its profile parses it."""
        loop, waiting = asyncio.get_running_loop(), _Waiting[Prompt](prompt)
        self._waiting.append(waiting)
        while waiting.found is None:
            await loop.run_in_executor(self._thread, self._next)
        if isinstance(waiting.found, Exception):
            raise waiting.found
        return waiting.found

    async def close(self) -> None:
        """Return when the thread has ended."""
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)

    def _next(self) -> None:
        """Parse the prompts that wait, as many as may be parsed together."""
        taken, size = list[_Waiting[Prompt]](), 0
        while self._waiting and (not taken or size + len(self._waiting[0].prompt) <= _MOST_CHARS):
            taken.append(self._waiting.popleft())
            size += len(taken[-1].prompt)
        if taken:
            self._parse(taken)

    def _parse(self, taken: list[_Waiting[Prompt]]) -> None:
        """Parse some prompts together; if that fails, one by one, so that each fails alone."""
        try:
            # The first call loads the parser, which takes a second, hence in the thread.
            found = self._profile.parsed([waiting.prompt for waiting in taken])
        except Exception as error:  # noqa: BLE001  (raised where the prompt is awaited)
            if len(taken) == 1:
                taken[0].found = error
                return
            for waiting in taken:
                self._parse([waiting])
            return
        for waiting, parsed in zip(taken, found, strict=True):
            waiting.found = parsed
