"""Generates an answer to a prompt, token by token.

All code here is written as `Steps` (see `rows`): a brain runs them with the rows of its store, a
compute peer with those of a swarm. An answer that was begun elsewhere can be continued: the same
rows yield the same tokens.

Once anything was learned, no answer is empty: if activation leads to no first token, counts choose
one (see `back_off`). Only activation chooses later tokens, so the answer ends where it finds none.
"""

from collections.abc import Sequence

from giaann_p2p.errors import PromptError
from giaann_p2p.model import back_off
from giaann_p2p.model.activation import Batch
from giaann_p2p.model.board import ONE
from giaann_p2p.model.generate import Mind, Taken, next_token, read
from giaann_p2p.model.listen import listen
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.parse import PromptSentence
from giaann_p2p.model.prompt import checked_prompt
from giaann_p2p.model.render import Renderer
from giaann_p2p.model.rows import Neuron, Row, Steps
from giaann_p2p.model.said import Stopped, Token
from giaann_p2p.model.tier import Tier

_READ_AT_ONCE = 64
"""The number of rows read at once for tokens that another peer chose: a client may send many, and
rows may be large."""


class Continuation:
    """The continuation of a prompt: call `begin`, then `next` for each token until it is None."""

    def __init__(self, prompt: str, batch: Batch, manner: Manner) -> None:
        self.prompt = prompt
        self.completion = ""
        """The missing rest of the prompt's last word: ` civil war` after "the Spanish"."""
        self.unknown: list[str] = []
        """The neurons of the prompt that were never learned: `zorp` for a noun, `company/the` for
        a word of its column."""
        self.stopped: Stopped | None = None
        """The reason why the answer has ended; None until then."""
        self._mind = Mind(batch, manner.timings(), manner.variant)
        self._spec = batch.spec
        self._beam, self._left = manner.beam, manner.max_tokens
        self._renderer = Renderer(prompt)
        self._begun = False
        """Whether the answer has a token."""
        self._last: list[str] = []
        """The last words of the prompt, the last one first."""
        self._in_column = False
        """Whether these words are in columns: their sentence has a noun."""

    def begin(self, sentences: list[PromptSentence], said: Sequence[Neuron] = ()) -> Steps[None]:
        """Hear the parsed prompt, and the tokens of the answer that another peer chose before."""
        heard = yield from listen(self._mind, sentences)
        if not heard.names:
            checked_prompt(self.prompt)
        words = sentences[-1].words if sentences else []
        self._last = [word.text for word, _ in words[-back_off.WORDS :]][::-1]
        self._in_column = any(name is not None for _, name in words)
        self.unknown = heard.unknown
        self.completion = self._renderer.complete(heard.rest)
        for at in range(0, len(said), _READ_AT_ONCE):
            for row in (yield from read(self._mind, said[at : at + _READ_AT_ONCE])):
                yield from self._take_up(row)

    def _take_up(self, row: Row | None) -> Steps[None]:
        """Continue the answer with a token that another peer chose before."""
        if row is None:
            raise PromptError("the answer cannot be continued: one of its words was never learned")
        yield from self._mind.candidates()  # the mind must know whether it expected the word
        self._mind.hear(row)
        self._renderer.append(row.name.word)
        self._left -= 1
        self._begun = True

    def prefetch(self, wanted: bool) -> None:
        """Set whether to make guesses for `foreseen` with the next token; a beam makes none."""
        self._mind.prefetches = wanted and self._beam is None

    def foreseen(self, most: int) -> list[Neuron]:
        """Return neurons whose rows may be needed soon."""
        return self._mind.foreseen(most)

    @property
    def nbytes(self) -> int:
        """The approximate size in memory, in bytes."""
        return self._mind.nbytes

    def close(self) -> None:
        """Give the memory of the states back; the answer cannot be continued."""
        self._mind.forget()

    def next(self) -> Steps[Token | None]:
        """Return the next token; None if there is none, and then `stopped` is the reason."""
        if self._left <= 0:
            self.stopped = "limit"
            return None
        taken = yield from next_token(self._mind, self._beam)
        token = self._token(taken) if taken else (yield from self._guessed())
        if token is None:
            self.stopped = "end"
            return None
        self._left -= 1
        self._begun = True
        return token

    def _guessed(self) -> Steps[Token | None]:
        """Return a first token chosen by counts; None once the answer has begun: it may end."""
        if self._begun or self.completion:
            return None
        own = self._mind.latest(back_off.WORDS) if self._in_column else []
        guess = yield from back_off.guessed(own, self._last, self._spec)
        (row,) = yield from read(self._mind, [guess.neuron])
        if row is None:
            return None  # its column was lost
        self._mind.hear(row)
        text = self._renderer.append(row.name.word)
        counted = guess.candidates, guess.probability
        return Token(text, row.name.word, row.name, guess.tier, 0.0, *counted)

    def _token(self, taken: Taken) -> Token:
        name, choice = taken
        text = self._renderer.append(name.word)
        tier, score = Tier(choice.timing), choice.score / ONE
        return Token(text, name.word, name, tier, score, choice.candidates, choice.probability)
