"""The profile "subwords", behind the interface that all profiles share."""

from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np
import torch

from giaann_p2p.errors import UsageError
from giaann_p2p.model import english
from giaann_p2p.model.manner import Manner, Variant
from giaann_p2p.model.profile import Begun, Learned, Measure
from giaann_p2p.model.rows import Question, Rows
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.answer import TokenContinuation, prompt_tokens
from giaann_p2p.model.subwords.evaluate import TokenEvaluation
from giaann_p2p.model.subwords.ids import EVERYTHING
from giaann_p2p.model.subwords.learn import learn_tokens
from giaann_p2p.model.subwords.parse import TextParser, parse_text_chunks
from giaann_p2p.model.subwords.spec import of_subwords
from giaann_p2p.model.subwords.texts import document_texts
from giaann_p2p.model.subwords.tokeniser import tokeniser
from giaann_p2p.model.text import Sentence


class SubwordsProfile:
    """The profile for one spec; its parser is loaded when it is first needed."""

    unit = "texts"

    def __init__(self, spec: ModelSpec) -> None:
        self._spec, self._own = spec, of_subwords(spec)

    def __repr__(self) -> str:
        return f"<SubwordsProfile: S={self._spec.seed_tokens}>"

    @cached_property
    def parser(self) -> TextParser:
        """The parser of texts and prompts."""
        return TextParser(self._spec)

    def texts(self, pieces: Iterable[bytes], name: str) -> Iterator[Sentence]:
        """Split a UTF-8 document into texts of some sentences; TextError for another encoding."""
        return document_texts(pieces, name, self._spec)

    def warm_up(self) -> None:
        """Load the English pipeline and the tokeniser, with the numbers of all tokens."""
        english.warm_up(self._spec)
        tokeniser(self._own.tokeniser).tokens_of(np.empty(0, np.uint64))

    def learned(
        self, chunks: Iterable[list[Sentence]], workers: int, device: torch.device
    ) -> Iterator[Learned]:
        """Learn chunks of texts, in order; they are parsed by so many processes.

        Learning is sorting whole numbers, which takes less time here than it would take to move
        them to a device.
        """
        for parsed in parse_text_chunks(chunks, self._spec, workers):
            delta = learn_tokens(parsed.sequences, self._spec)
            yield Learned(parsed.sentences, len(parsed.sequences), parsed.skips, delta)

    def occurrences(self, rows: Rows, counted: int) -> int:
        """Return how many tokens were learned: each is an occurrence of several neurons."""
        if not self._own.any_column:
            return counted
        (everything,) = rows.read(Question([EVERYTHING]))
        return everything.count if everything else 0

    def continuation(self, prompt: str, manner: Manner, device: torch.device) -> Begun:
        """Return the continuation of a prompt."""
        if manner.timing != "auto" or manner.beam or manner.variant != Variant():
            raise UsageError(
                "timings, beams and variants are of the profile words; this brain has subwords"
            )
        if not self._own.any_column:
            raise UsageError("this brain has no rows that ignore columns, which prompts need")
        going_on = TokenContinuation(prompt, self._spec, manner)
        return Begun(going_on, going_on.begin(prompt_tokens(prompt, self.parser, self._spec)))

    def evaluation(self, measure: Measure, device: torch.device) -> TokenEvaluation:
        """Return an evaluation with these options; UsageError for one that it lacks."""
        return TokenEvaluation(self.parser, self._spec, measure)
