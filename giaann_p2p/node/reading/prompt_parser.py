"""Parses prompts in a thread, all that wait for it together: the tagger works on many at once."""

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from giaann_p2p.model.parse import Parser, PromptSentence, max_chars
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import text_sentences

_MOST_CHARS = 1 << 14
"""Maximum number of characters that are parsed together; a longer prompt is parsed alone."""


@dataclass
class _Waiting:
    """A prompt, and what came of it."""

    prompt: str
    found: list[PromptSentence] | Exception | None = None


class PromptParser:
    """A parser in a thread. Close it when no prompt waits any more."""

    def __init__(self, spec: ModelSpec, parser: Parser | None = None) -> None:
        self._spec, self._parser = spec, parser
        self._thread = ThreadPoolExecutor(1, "giaann-parse")
        self._waiting = deque[_Waiting]()

    async def parsed(self, prompt: str) -> list[PromptSentence]:
        """Return a prompt's sentences."""
        loop, waiting = asyncio.get_running_loop(), _Waiting(prompt)
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
        taken, size = list[_Waiting](), 0
        while self._waiting and (not taken or size + len(self._waiting[0].prompt) <= _MOST_CHARS):
            taken.append(self._waiting.popleft())
            size += len(taken[-1].prompt)
        if taken:
            self._parse(taken)

    def _parse(self, taken: list[_Waiting]) -> None:
        """Parse some prompts together; if that fails, one by one, so that each fails alone."""
        try:
            found = self._sentences([waiting.prompt for waiting in taken])
        except Exception as error:  # noqa: BLE001  (whoever waits for it raises it)
            if len(taken) == 1:
                taken[0].found = error
                return
            for waiting in taken:
                self._parse([waiting])
            return
        for waiting, sentences in zip(taken, found, strict=True):
            waiting.found = sentences

    def _sentences(self, prompts: list[str]) -> list[list[PromptSentence]]:
        if self._parser is None:
            self._parser = Parser(self._spec)  # loading takes a second, hence in the thread
        texts = [list(text_sentences(prompt, max_chars(self._spec))) for prompt in prompts]
        parsed = iter(self._parser.parse_prompt([one for text in texts for one in text]))
        return [list(islice(parsed, len(text))) for text in texts]
