"""Parses prompts in a thread, all waiting ones together: the tagger works on many at once."""

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, NamedTuple

from giaann_p2p.model.profile import Profile, Prompt

_MOST_CHARS = 1 << 14
"""Maximum number of characters that are parsed together; a longer prompt is parsed alone."""


class _Waiting(NamedTuple, Generic[Prompt]):
    """A prompt that waits to be parsed, and the future that receives the result."""

    prompt: str
    parsed: asyncio.Future[Prompt]


class PromptParser(Generic[Prompt]):
    """A parser in a thread. Close it when no prompt waits any more."""

    def __init__(self, profile: Profile[Prompt]) -> None:
        self._profile = profile
        self._thread = ThreadPoolExecutor(1, "giaann-parse")
        self._waiting = deque[_Waiting[Prompt]]()
        self._parsing: asyncio.Task[None] | None = None
        self._closed = False

    async def parsed(self, prompt: str) -> Prompt:
        """Return a prompt as its profile parses it; RuntimeError if the parser is closed."""
        if self._closed:
            raise RuntimeError("the parser is closed")
        loop = asyncio.get_running_loop()
        waiting = _Waiting[Prompt](prompt, loop.create_future())
        self._waiting.append(waiting)
        if self._parsing is None:
            self._parsing = loop.create_task(self._parse())
        return await waiting.parsed

    async def close(self) -> None:
        """Return when the thread has ended."""
        self._closed = True
        if self._parsing is not None:
            await self._parsing
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)

    async def _parse(self) -> None:
        """Parse the prompts that wait, until none is left."""
        try:
            while taken := self._next():
                for waiting, outcome in zip(taken, await self._in_thread(taken), strict=True):
                    if waiting.parsed.done():
                        continue  # its caller was cancelled
                    if isinstance(outcome, Exception):
                        waiting.parsed.set_exception(outcome)
                    else:
                        waiting.parsed.set_result(outcome)
        finally:
            self._parsing = None

    async def _in_thread(self, taken: list[_Waiting[Prompt]]) -> Sequence[Prompt | Exception]:
        """Return the parsed prompts, or the errors to raise where they are awaited."""
        prompts = [waiting.prompt for waiting in taken]
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, self._outcomes, prompts)
        except RuntimeError as error:  # the system cannot start a thread
            return [error] * len(taken)

    def _next(self) -> list[_Waiting[Prompt]]:
        """Return the prompts that wait, as many as may be parsed together."""
        taken, size = list[_Waiting[Prompt]](), 0
        while self._waiting and (not taken or size + len(self._waiting[0].prompt) <= _MOST_CHARS):
            waiting = self._waiting.popleft()
            if not waiting.parsed.done():
                taken.append(waiting)
                size += len(waiting.prompt)
        return taken

    def _outcomes(self, prompts: list[str]) -> list[Prompt | Exception]:
        """Parse some prompts together; if that fails, one by one, so that each fails alone."""
        try:
            # The first call loads the parser, which takes a second, hence in the thread.
            return [*self._profile.parsed(prompts)]
        except Exception as error:  # noqa: BLE001  (raised where the prompt is awaited)
            if len(prompts) == 1:
                return [error]
            return [outcome for prompt in prompts for outcome in self._outcomes([prompt])]
