"""An answer in the making: a prompt taken in, and the tokens that come to mind one by one.

All of it is `Steps` (see `rows`): a brain goes through them with the rows of its store, a compute
peer with those of a swarm. What came to mind somewhere else is taken up from there: the same rows
lead on to the same tokens.
"""

from collections.abc import Sequence

import torch

from giaann_p2p.errors import PromptError
from giaann_p2p.model.board import ONE
from giaann_p2p.model.generate import Mind, Taken, next_token, read
from giaann_p2p.model.listen import listen
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.parse import PromptSentence
from giaann_p2p.model.render import Renderer
from giaann_p2p.model.rows import BREATH, Neuron, Row, Steps
from giaann_p2p.model.said import Stopped, Token
from giaann_p2p.model.spec import ModelSpec

_READ_AT_ONCE = 64
"""Rows of what was said elsewhere: whoever says so may say much, and rows may be large."""


class Continuation:
    """Goes on from a prompt: `begin`, then `next` for each token until there is none."""

    def __init__(
        self, prompt: str, spec: ModelSpec, manner: Manner, device: torch.device | None = None
    ) -> None:
        self.prompt = prompt
        self.completion = ""
        """What the prompt's last word lacked: ` civil war` behind "the Spanish"."""
        self.unknown: list[str] = []
        """What of the prompt was never learned: `zorp` for a noun, `company/the` for a word of its
        column."""
        self.stopped: Stopped | None = None
        """Why it has ended, once it has."""
        self._mind = Mind(spec, manner.timings(), manner.variant, device)
        self._beam, self._left = manner.beam, manner.max_tokens
        self._renderer = Renderer(prompt)

    def begin(self, sentences: list[PromptSentence], said: Sequence[Neuron] = ()) -> Steps[None]:
        """Take the parsed prompt in, and what was said to it already, somewhere else."""
        heard = yield from listen(self._mind, sentences)
        if not heard.names:
            raise PromptError(
                "the prompt names no concept: it needs at least one noun to start from"
                if self.prompt.strip()
                else "the prompt is empty: give it some words to go on with"
            )
        self.unknown = heard.unknown
        self.completion = self._renderer.complete(heard.rest)
        for at in range(0, len(said), _READ_AT_ONCE):
            for row in (yield from read(self._mind, said[at : at + _READ_AT_ONCE])):
                yield BREATH
                self._take_up(row)

    def _take_up(self, row: Row | None) -> None:
        """Take in a token that was said elsewhere."""
        if row is None:
            raise PromptError("it cannot go on from words that were never learned")
        self._mind.candidates()  # whether the word was expected tells whether it may be the end
        self._mind.hear(row)
        self._renderer.append(row.name.word)
        self._left -= 1

    def foreseen(self, most: int) -> list[Neuron]:
        """Return neurons whose rows may be wanted soon; none for a beam, which goes many ways."""
        return [] if self._beam else self._mind.foreseen(most)

    @property
    def nbytes(self) -> int:
        """How much memory it takes, about."""
        return self._mind.board.nbytes

    def next(self) -> Steps[Token | None]:
        """Return the next token; None if there is none, and `stopped` tells why."""
        if self._left <= 0:
            self.stopped = "limit"
            return None
        taken = yield from next_token(self._mind, self._beam)
        if taken is None:
            self.stopped = "end"
            return None
        self._left -= 1
        return self._told(taken)

    def _told(self, taken: Taken) -> Token:
        name, choice = taken
        text = self._renderer.append(name.word)
        return Token(text, name.word, name, choice.timing, choice.score / ONE, choice.candidates)
