"""The profile "words": whole words, a sentence a sequence, and activation that flows."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import torch

from giaann_p2p.errors import UsageError
from giaann_p2p.model import english
from giaann_p2p.model.activation import Batch
from giaann_p2p.model.answer import Continuation
from giaann_p2p.model.evaluate import Score, score_sequences
from giaann_p2p.model.generate import Mind
from giaann_p2p.model.learn import learn
from giaann_p2p.model.manner import Manner, timings
from giaann_p2p.model.parse import Parser, max_chars, parse_chunks
from giaann_p2p.model.profile import Begun, Learned, Measure
from giaann_p2p.model.rows import Rows, Steps
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import Sentence, document_sentences, text_sentences

_ABREAST = 16
"""The number of sequences that are predicted side by side, because minds are faster together."""


class WordsProfile:
    """The profile for one spec; its parser is loaded when it is first needed."""

    unit = "sentences"

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec

    def __repr__(self) -> str:
        return f"<WordsProfile: S={self._spec.seed_tokens}>"

    @cached_property
    def parser(self) -> Parser:
        """The parser of sentences and prompts."""
        return Parser(self._spec)

    def texts(self, pieces: Iterable[bytes], name: str) -> Iterator[Sentence]:
        """Split a UTF-8 document into sentences; TextError for another encoding."""
        return document_sentences(pieces, name, max_chars(self._spec))

    def warm_up(self) -> None:
        """Load the English pipeline."""
        english.warm_up(self._spec)

    def learned(
        self, chunks: Iterable[list[Sentence]], workers: int, device: torch.device
    ) -> Iterator[Learned]:
        """Learn chunks of sentences, in order; they are parsed by so many processes."""
        for parsed in parse_chunks(chunks, self._spec, workers):
            delta = learn(parsed.sequences, self._spec, device)
            yield Learned(parsed.sentences, len(parsed.sequences), parsed.skips, delta)

    def occurrences(self, rows: Rows, counted: int) -> int:
        """Return how many tokens were learned: each is an occurrence of one neuron."""
        return counted

    def continuation(self, prompt: str, manner: Manner, device: torch.device) -> Begun:
        """Return the continuation of a prompt."""
        going_on = Continuation(prompt, Batch(self._spec, device), manner)
        sentences = list(text_sentences(prompt, max_chars(self._spec)))
        return Begun(going_on, going_on.begin(self.parser.parse_prompt(sentences)))

    def evaluation(self, measure: Measure, device: torch.device) -> "WordsEvaluation":
        """Return an evaluation with these options."""
        if measure.readout is not None:
            raise UsageError("the profile words has no read-outs to choose from: leave it out")
        batch, chosen = Batch(self._spec, device), timings(measure.timing)
        minds = [Mind(batch, chosen, measure.variant) for _ in range(_ABREAST)]
        return WordsEvaluation(self.parser, minds, measure)


class WordsEvaluation:
    """The evaluation of a text, chunk by chunk."""

    def __init__(self, parser: Parser, minds: Sequence[Mind], measure: Measure) -> None:
        self.score = Score()
        self._parser, self._minds, self._measure = parser, minds, measure

    def of(self, chunk: Sequence[Sentence]) -> Steps[None]:
        """Parse a chunk at once; return the steps that predict it and add to the score."""
        (parsed,) = self._parser.parse([list(chunk)])
        self.score.skipped += parsed.sentences - len(parsed.sequences)
        seed, feed = self._measure.seed_tokens, self._measure.feed
        return score_sequences(self._minds, parsed.sequences, seed, feed, self.score)
