"""The profile "subwords", behind the interface that all profiles share."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
import torch

from giaann_p2p.errors import UsageError
from giaann_p2p.model import english
from giaann_p2p.model.halves import Halves, first_words
from giaann_p2p.model.manner import Manner, require
from giaann_p2p.model.profile import MOST_BYTES, Learned, Measure
from giaann_p2p.model.rows import Neuron, Question, Rows
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.answer import TokenContinuation, prompt_tokens, sure_places
from giaann_p2p.model.subwords.evaluate import TokenEvaluation
from giaann_p2p.model.subwords.evidence import (
    CONNECTION_BYTES,
    MOST_CONNECTIONS,
    CountedRows,
    Evidence,
    needed,
)
from giaann_p2p.model.subwords.ids import EVERYTHING
from giaann_p2p.model.subwords.learn import learn_tokens
from giaann_p2p.model.subwords.parse import ParsedTexts, TextParser, parse_text_chunks
from giaann_p2p.model.subwords.spec import DISTANCES, of_subwords
from giaann_p2p.model.subwords.texts import LONGEST, document_texts
from giaann_p2p.model.subwords.tokeniser import tokeniser
from giaann_p2p.model.subwords.tokens import Token
from giaann_p2p.model.text import Sentence

_PART = 4
"""The shared rows may take a quarter of the memory of all answers."""


class SubwordsProfile:
    """The profile for one spec; its parser is loaded when it is first needed.

    Only the parser uses the device. Learning only sorts whole numbers, which takes less time on the
    CPU than moving them to the device would.
    """

    unit, longest = "texts", LONGEST

    def __init__(self, spec: ModelSpec, device: torch.device) -> None:
        self._spec, self._own, self._device = spec, of_subwords(spec), device
        self._minds: SubwordsMinds | None = None

    def __repr__(self) -> str:
        return f"<SubwordsProfile on {self._device}: S={self._spec.seed_tokens}>"

    @cached_property
    def parser(self) -> TextParser:
        """The parser of texts and prompts."""
        return TextParser(self._spec, self._device)

    def texts(self, pieces: Iterable[bytes], name: str) -> Iterator[Sentence]:
        """Split a UTF-8 document into texts of some sentences; TextError for another encoding."""
        return document_texts(pieces, name, self._spec)

    def warm_up(self) -> None:
        """Load the English pipeline and the tokeniser, with the numbers of all tokens.

        PipelineError if one is missing, or is not what the spec names.
        """
        english.warm_up(self._spec)
        tokeniser(self._own.tokeniser).tokens_of(np.empty(0, np.uint64))

    def learn(self, chunk: list[Sentence]) -> Learned:
        """Learn a chunk of texts."""
        (parsed,) = self.parser.parse([chunk])
        return self._learned(parsed)

    def learned(self, chunks: Iterable[list[Sentence]], workers: int) -> Iterator[Learned]:
        """Learn chunks of texts, in order, parsing them in this many processes."""
        return map(self._learned, parse_text_chunks(chunks, self._spec, workers))

    def halves(self, text: Sentence, words: int) -> Halves | None:
        """Return a text's first words, and the rest of what is learned; None if it is skipped.

        An answer may have no more tokens than the rest, because cropped texts have no end to find.
        """
        (parsed,) = self.parser.parse([[text]])
        if not len(parsed.sequences):
            return None
        known = self.parser.tokeniser
        whole = known.decode(parsed.sequences.token.tolist())
        prompt = first_words(whole, words)
        rest = whole[len(prompt) :]
        return Halves(prompt, rest, len(known.encode(rest)))

    def occurrences(self, rows: Rows, counted: int) -> int:
        """Return how many tokens were learned: each is an occurrence of several neurons."""
        if not self._own.any_column:
            return counted
        (everything,) = rows.read(Question([EVERYTHING]))
        return everything.count if everything else 0

    def parsed(self, prompts: Sequence[str]) -> list[list[Token]]:
        """Parse prompts; PromptError if one cannot be read."""
        return [prompt_tokens(prompt, self.parser, self._spec) for prompt in prompts]

    def minds(self, most_bytes: int = MOST_BYTES) -> "SubwordsMinds":
        """Return what the answers of a process share; the same object for the same bound.

        So a brain reuses the rows that its former answers read. Any thread may use the object.
        """
        minds = self._minds
        if minds is None or minds.most_bytes != most_bytes:
            minds = self._minds = SubwordsMinds(self, self._spec, most_bytes)
        return minds

    def _learned(self, parsed: ParsedTexts) -> Learned:
        delta = learn_tokens(parsed.sequences, self._spec)
        return Learned(parsed.sentences, len(parsed.sequences), parsed.skips, delta)


class SubwordsMinds:
    """What the answers of a process share: the rows that they read, as counts."""

    def __init__(self, profile: SubwordsProfile, spec: ModelSpec, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._profile, self._spec = profile, spec
        # A brain, which states no bound, keeps fewer rows: its program has other uses for memory.
        most = (
            MOST_CONNECTIONS
            if most_bytes == MOST_BYTES
            else most_bytes // _PART // CONNECTION_BYTES
        )
        self._counted = CountedRows(spec, most)

    def __repr__(self) -> str:
        return f"<SubwordsMinds: {self._counted!r}>"

    @property
    def nbytes(self) -> int:
        """The approximate memory in use, in bytes."""
        return self._counted.nbytes

    def needed(self, prompt: list[Token]) -> list[Neuron]:
        """Return the neurons that the first choice depends on, as far as columns are certain."""
        return needed(Evidence(self._counted), sure_places(prompt)[-DISTANCES:][::-1])

    def continuation(self, prompt: str, manner: Manner) -> TokenContinuation:
        """Return the continuation of a prompt."""
        require(manner, "subwords")
        if not of_subwords(self._spec).any_column:
            raise UsageError(
                "this model has no rows that ignore columns, which prompts need; to convert a "
                "brain to one with them: giaann solo export --format giaannpy --to FOLDER, and "
                "giaann solo import FOLDER --db NEW --model all"
            )
        return TokenContinuation(prompt, self._counted, manner)

    def evaluation(self, measure: Measure) -> TokenEvaluation:
        """Return an evaluation with these options; UsageError for one that the profile lacks."""
        return TokenEvaluation(self._profile.parser, self._counted, measure)
