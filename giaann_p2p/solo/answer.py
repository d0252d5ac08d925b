"""The answer of a brain to a prompt, generated token by token."""

from collections.abc import Iterator

import torch

from giaann_p2p.model.answer import Continuation
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.parse import Parser, max_chars
from giaann_p2p.model.rows import Rows, run
from giaann_p2p.model.said import Generation, Token
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import text_sentences


class Answer:
    """An iterator over the tokens of an answer; each is generated when it is requested."""

    def __init__(
        self,
        prompt: str,
        rows: Rows,
        parser: Parser,
        spec: ModelSpec,
        manner: Manner,
        device: torch.device,
    ) -> None:
        self.prompt = prompt
        self._rows, self._tokens = rows, list[Token]()
        self._going_on = Continuation(prompt, spec, manner, device)
        sentences = parser.parse_prompt(list(text_sentences(prompt, max_chars(spec))))
        run(self._going_on.begin(sentences), rows)

    def __iter__(self) -> Iterator[Token]:
        return self

    def __next__(self) -> Token:
        token = run(self._going_on.next(), self._rows)
        if token is None:
            raise StopIteration
        self._tokens.append(token)
        return token

    @property
    def completion(self) -> str:
        """The rest of the prompt's last word: ` civil war` after "the Spanish"."""
        return self._going_on.completion

    @property
    def unknown(self) -> list[str]:
        """The neurons of the prompt that were never learned; see `Generation`."""
        return self._going_on.unknown

    @property
    def stopped(self) -> str | None:
        """The reason for the end: `limit` or `end` (see `Generation`); None until then."""
        return self._going_on.stopped

    def all(self) -> Generation:
        """Generate to the end; return the whole answer, with the tokens already iterated over."""
        for _ in self:
            pass
        stopped = self._going_on.stopped or "end"
        return Generation(self.prompt, self._tokens, self.completion, self.unknown, stopped)
