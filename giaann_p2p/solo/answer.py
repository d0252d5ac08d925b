"""An answer in the making: a prompt taken in, and the tokens that come to mind one by one."""

from collections.abc import Iterator

import torch

from giaann_p2p.errors import PromptError, UsageError
from giaann_p2p.model.activation import Timing
from giaann_p2p.model.board import ONE, Variant
from giaann_p2p.model.generate import AUTO, Beam, Mind, next_token
from giaann_p2p.model.listen import listen
from giaann_p2p.model.parse import Parser, max_chars
from giaann_p2p.model.render import Renderer
from giaann_p2p.model.rows import Rows, run
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import text_sentences
from giaann_p2p.solo.reports import Generation, Token

TIMINGS = ("auto", *Timing)


def timings(name: str) -> tuple[Timing, ...]:
    """Return the timings that a name stands for."""
    if name == "auto":
        return AUTO
    try:
        return (Timing(name),)
    except ValueError:
        raise UsageError(f"no timing {name!r}; there are {', '.join(TIMINGS)}") from None


class Answer:
    """Iterate over it for the tokens; each is chosen when it is asked for."""

    def __init__(
        self,
        prompt: str,
        rows: Rows,
        parser: Parser,
        spec: ModelSpec,
        *,
        max_tokens: int,
        timing: str,
        beam: Beam | None,
        variant: Variant | None,
        device: torch.device,
    ) -> None:
        if max_tokens < 1:
            raise UsageError(f"max_tokens must be 1 or more: {max_tokens}")
        self.prompt = prompt
        self.stopped: str | None = None
        """Once it has ended: `limit` or `end`, see `Generation`."""
        self._mind = Mind(spec, timings(timing), variant, device)
        self._rows, self._beam, self._left = rows, beam, max_tokens
        self._tokens: list[Token] = []
        sentences = parser.parse_prompt(list(text_sentences(prompt, max_chars(spec))))
        heard = run(listen(self._mind, sentences), rows)
        if not heard.names:
            raise PromptError(
                "the prompt names no concept: it needs at least one noun to start from"
                if prompt.strip()
                else "the prompt is empty: give it some words to go on with"
            )
        self.unknown = heard.unknown
        """What of the prompt was never learned: `zorp` for a noun, `company/the` for a word of its
        column."""
        self._renderer = Renderer(prompt)
        self.completion = self._renderer.complete(heard.rest)
        """What the prompt's last word lacked: ` civil war` behind "the Spanish"."""

    def __iter__(self) -> Iterator[Token]:
        return self

    def __next__(self) -> Token:
        if not self._left:
            self.stopped = "limit"
            raise StopIteration
        taken = run(next_token(self._mind, self._beam), self._rows)
        if taken is None:
            self.stopped = "end"
            raise StopIteration
        self._left -= 1
        name, choice = taken
        text = self._renderer.append(name.word)
        score = choice.score / ONE
        token = Token(text, name.word, name, choice.timing, score, choice.candidates)
        self._tokens.append(token)
        return token

    def all(self) -> Generation:
        """Go on to the end; return the whole answer, with what was asked for before."""
        for _ in self:
            pass
        stopped = self.stopped or "end"
        return Generation(self.prompt, self._tokens, self.completion, self.unknown, stopped)
