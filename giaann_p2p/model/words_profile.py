"""The profile "words": whole words, a sentence a sequence, and activation that flows."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice

import torch

from giaann_p2p.errors import UsageError
from giaann_p2p.model import english, lexicon
from giaann_p2p.model.activation import Batch
from giaann_p2p.model.answer import Continuation
from giaann_p2p.model.evaluate import Score, names_of, score_sequences
from giaann_p2p.model.generate import Mind
from giaann_p2p.model.halves import Halves, first_words, rest_of
from giaann_p2p.model.learn import learn
from giaann_p2p.model.manner import Manner, require, timings
from giaann_p2p.model.parse import Parsed, Parser, PromptSentence, max_chars, parse_chunks
from giaann_p2p.model.profile import MOST_BYTES, Learned, Measure, Scoring
from giaann_p2p.model.rows import Neuron, Rows
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import Sentence, document_sentences, text_sentences

_ABREAST = 16
"""The number of sequences that are predicted side by side, because minds are faster together."""


class WordsProfile:
    """The profile for one spec; its parser is loaded when it is first needed."""

    unit = "sentences"

    def __init__(self, spec: ModelSpec, device: torch.device) -> None:
        self._spec, self._device = spec, device
        self.longest = max_chars(spec)

    def __repr__(self) -> str:
        return f"<WordsProfile on {self._device}: S={self._spec.seed_tokens}>"

    @cached_property
    def parser(self) -> Parser:
        """The parser of sentences and prompts."""
        return Parser(self._spec, self._device)

    def texts(self, pieces: Iterable[bytes], name: str) -> Iterator[Sentence]:
        """Split a UTF-8 document into sentences; TextError for another encoding."""
        return document_sentences(pieces, name, self.longest)

    def warm_up(self) -> None:
        """Load the English pipeline; PipelineError if it or the word lists do not fit the spec."""
        lexicon.require(self._spec)
        english.warm_up(self._spec)

    def learn(self, chunk: list[Sentence]) -> Learned:
        """Learn a chunk of sentences."""
        (parsed,) = self.parser.parse([chunk])
        return self._learned(parsed)

    def learned(self, chunks: Iterable[list[Sentence]], workers: int) -> Iterator[Learned]:
        """Learn chunks of sentences, in order, parsing them in this many processes."""
        return map(self._learned, parse_chunks(chunks, self._spec, workers))

    def halves(self, text: Sentence, words: int) -> Halves | None:
        """Return a sentence's first words, and the rest as rendered; None if it is skipped."""
        (parsed,) = self.parser.parse([[text]])
        if not len(parsed.sequences):
            return None
        prompt = first_words(text.text, words)
        return Halves(prompt, rest_of(prompt, parsed.sequences), self._spec.max_tokens)

    def occurrences(self, rows: Rows, counted: int) -> int:
        """Return how many tokens were learned: each is an occurrence of one neuron."""
        return counted

    def parsed(self, prompts: Sequence[str]) -> list[list[PromptSentence]]:
        """Parse prompts together; PromptError if one cannot be read."""
        texts = [list(text_sentences(prompt, self.longest)) for prompt in prompts]
        found = iter(self.parser.parse_prompt([one for text in texts for one in text]))
        return [list(islice(found, len(text))) for text in texts]

    def minds(self, most_bytes: int = MOST_BYTES) -> "WordsMinds":
        """Return what all answers of a process share."""
        return WordsMinds(self, Batch(self._spec, self._device, most_bytes))

    def _learned(self, parsed: Parsed) -> Learned:
        delta = learn(parsed.sequences, self._spec, self._device)
        return Learned(parsed.sentences, len(parsed.sequences), parsed.skips, delta)


class WordsMinds:
    """Shared by all answers of a process: the batch that computes their next words together."""

    def __init__(self, profile: WordsProfile, batch: Batch) -> None:
        self._profile, self.batch = profile, batch
        self.most_bytes = batch.most_bytes

    def __repr__(self) -> str:
        return f"<WordsMinds: {self.batch!r}>"

    @property
    def nbytes(self) -> int:
        """The approximate memory in use, in bytes."""
        return self.batch.nbytes

    def needed(self, prompt: list[PromptSentence]) -> list[Neuron]:
        """Return the neurons of all words of a prompt."""
        return [name.neuron for sentence in prompt for _, name in sentence.words if name]

    def continuation(self, prompt: str, manner: Manner) -> Continuation:
        """Return the continuation of a prompt; UsageError for options of the other profile."""
        require(manner, "words")
        return Continuation(prompt, self.batch, manner)

    def evaluation(self, measure: Measure) -> "WordsEvaluation":
        """Return an evaluation with these options."""
        if measure.readout is not None:
            raise UsageError("the profile words has no read-outs: leave the read-out out")
        if measure.bits:
            raise UsageError(
                "the profile words has no probabilities for words that it does not expect, so the"
                " bits of a text cannot be measured"
            )
        chosen = timings(measure.timing)
        minds = [Mind(self.batch, chosen, measure.variant) for _ in range(_ABREAST)]
        return WordsEvaluation(self._profile.parser, minds, measure)


class WordsEvaluation:
    """The evaluation of a text, chunk by chunk."""

    def __init__(self, parser: Parser, minds: Sequence[Mind], measure: Measure) -> None:
        self.score = Score()
        self._parser, self._minds, self._measure = parser, minds, measure

    def of(self, chunk: Sequence[Sentence]) -> Scoring:
        """Parse a chunk at once; return the steps that predict it and add to the score."""
        (parsed,) = self._parser.parse([list(chunk)])
        self.score.skipped += parsed.sentences - len(parsed.sequences)
        sequences = parsed.sequences
        neurons = (name.neuron for sequence in sequences for name in names_of(sequence))
        seed, feed = self._measure.seed_tokens, self._measure.feed
        return Scoring(neurons, score_sequences(self._minds, sequences, seed, feed, self.score))
