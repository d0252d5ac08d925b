"""Sentences to sequences, in one process or several; what is skipped is counted."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, partial
from itertools import islice
from typing import NamedTuple, TypeVar

from spacy.tokens import Doc

from giaann_p2p.errors import PromptError
from giaann_p2p.model import english, lexicon
from giaann_p2p.model.columns import Word, columns, concepts, merge_nouns
from giaann_p2p.model.rows import Name
from giaann_p2p.model.sequence import SequenceBuilder, Sequences
from giaann_p2p.model.spec import CHUNK, ModelSpec
from giaann_p2p.model.tagger import Tagger
from giaann_p2p.model.text import LONG_SENTENCE, LONG_WORD, Sentence
from giaann_p2p.model.workers import in_processes

_CHUNKS_AT_ONCE = 8
T = TypeVar("T")

# What remains of undecodable bytes, and what only binary data holds: control characters (but white
# space) and noncharacters.
_NOT_TEXT = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufffd-\uffff]")


class Reason(StrEnum):
    """Why a sentence was skipped."""

    TOO_SHORT = "too short"
    TOO_LONG = "too long"
    NO_NOUN = "no noun"
    LONG_WORD = "word too long"
    NOT_TEXT = "not text"


@dataclass
class Skips:
    """What was skipped: for each reason how often, and on which line first."""

    counts: dict[Reason, int] = field(default_factory=dict)
    first_lines: dict[Reason, int] = field(default_factory=dict)

    def add(self, reason: Reason, line: int, count: int = 1) -> None:
        """Count one more, or several that start on this line."""
        self.counts[reason] = self.counts.get(reason, 0) + count
        self.first_lines[reason] = min(line, self.first_lines.get(reason, line))

    def update(self, other: "Skips") -> None:
        """Count what the other counted, too."""
        for reason, count in other.counts.items():
            self.add(reason, other.first_lines[reason], count)

    def total(self) -> int:
        """Count all."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class Parsed:
    """The sequences of some consecutive sentences."""

    sentences: int
    sequences: Sequences
    skips: Skips


class PromptSentence(NamedTuple):
    """A sentence that perhaps is not finished: its tokens, and the words that they merge into."""

    text: str
    tokens: list[Word]
    words: Sequence[tuple[Word, Name | None]]
    """Each with the neuron it is by this parse: none where the sentence has no noun (yet)."""


class Parser:
    """Parses sentences in this process; PipelineError where it would not be as the spec says."""

    def __init__(self, spec: ModelSpec) -> None:
        lexicon.require(spec)
        self._spec = spec
        self._tagger = Tagger(english.pipeline(spec))

    def parse(self, chunks: list[list[Sentence]]) -> list[Parsed]:
        """Parse what is a sentence to learn from; count the rest. Chunks go together for speed."""
        builders = [SequenceBuilder(self._spec.branches) for _ in chunks]
        skips = [Skips() for _ in chunks]
        with self._tagger.memory():
            places, docs = [], []
            for i, chunk in enumerate(chunks):
                for sentence in chunk:
                    doc = self._tokenized(sentence, skips[i])
                    if doc is not None:
                        places.append((i, sentence.line))
                        docs.append(doc)
            for (i, line), words in zip(places, self._tagger.words(docs), strict=True):
                if not builders[i].add(merge_nouns(words)):
                    skips[i].add(Reason.NO_NOUN, line)
        parts = zip(chunks, builders, skips, strict=True)
        return [Parsed(len(chunk), builder.build(), skip) for chunk, builder, skip in parts]

    def parse_prompt(self, sentences: list[Sentence]) -> list[PromptSentence]:
        """Parse sentences of any number of tokens, with or without a noun."""
        reasons = [reason for sentence in sentences if (reason := _unfit(sentence.text))]
        if reasons:
            raise PromptError(f"a sentence of the prompt cannot be read: {reasons[0]}")
        with self._tagger.memory():
            texts = [sentence.text.rstrip() for sentence in sentences]
            tokens = self._tagger.words(map(self._tagger.tokenize, texts))
            return list(map(_prompt_sentence, texts, tokens))

    def _tokenized(self, sentence: Sentence, skips: Skips) -> Doc | None:
        """Tokenise, before the costly part; None and counted if that shows it is to be skipped."""
        reason, doc = _unfit(sentence.text), None
        if reason is None:
            doc = self._tagger.tokenize(sentence.text)
            if len(doc) <= self._spec.seed_tokens:
                reason = Reason.TOO_SHORT
            elif len(doc) > self._spec.max_tokens:
                reason = Reason.TOO_LONG
        if reason is None:
            return doc
        skips.add(reason, sentence.line)
        return None


def _prompt_sentence(text: str, tokens: list[Word]) -> PromptSentence:
    words = merge_nouns(tokens)
    nouns = concepts(words)
    if not nouns:
        return PromptSentence(text, tokens, [(word, None) for word in words])
    homes = [words[nouns[column]].lemma for column in columns(words, nouns)]
    named = [
        (word, Name(home, None if i in nouns else word.text))
        for i, (word, home) in enumerate(zip(words, homes, strict=True))
    ]
    return PromptSentence(text, tokens, named)


def max_chars(spec: ModelSpec) -> int:
    """How long a sentence may be before it is too long whatever its tokens are."""
    return 256 * spec.max_tokens


def chunks(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """Cut a stream of sentences into chunks."""
    return _groups(sentences, CHUNK)


def parse_chunks(
    chunks: Iterable[list[Sentence]], spec: ModelSpec, workers: int = 1
) -> Iterator[Parsed]:
    """Parse chunk by chunk, in order; with several workers, in as many processes."""
    groups = _groups(chunks, _CHUNKS_AT_ONCE)
    if workers <= 1:
        parser = Parser(spec)
        for group in groups:
            yield from parser.parse(group)
        return
    for parsed in in_processes(partial(_parse_in_worker, spec), groups, workers):
        yield from parsed


def _groups(items: Iterable[T], size: int) -> Iterator[list[T]]:
    stream = iter(items)
    while group := list(islice(stream, size)):
        yield group


def _unfit(text: str) -> Reason | None:
    if LONG_SENTENCE in text:
        return Reason.TOO_LONG
    if LONG_WORD in text:
        return Reason.LONG_WORD
    return Reason.NOT_TEXT if _NOT_TEXT.search(text) else None


@cache
def _worker_parser(spec: ModelSpec) -> Parser:
    return Parser(spec)


def _parse_in_worker(spec: ModelSpec, group: list[list[Sentence]]) -> list[Parsed]:
    return _worker_parser(spec).parse(group)
