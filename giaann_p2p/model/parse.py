"""Parses sentences into sequences, in one process or several; skipped sentences are counted."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, partial
from itertools import islice
from typing import NamedTuple, TypeVar, cast

import torch
from spacy.language import Language
from spacy.tokens import Doc

from giaann_p2p.errors import PromptError
from giaann_p2p.model import english, lexicon
from giaann_p2p.model.affixes import Tokenizer, is_costly
from giaann_p2p.model.columns import Word, columns, concepts, merge_nouns
from giaann_p2p.model.rows import Name
from giaann_p2p.model.sequence import SequenceBuilder, Sequences
from giaann_p2p.model.spec import CHUNK, ModelSpec
from giaann_p2p.model.tagger import Tagger
from giaann_p2p.model.text import LONG_SENTENCE, LONG_WORD, MAX_WORD, Sentence
from giaann_p2p.model.word_memory import tokenized
from giaann_p2p.model.workers import in_processes

_CHUNKS_AT_ONCE = 8
_MOST_CHARACTERS = 1 << 20
"""With this many characters a chunk ends as soon as it has `CHUNK` sentences, so that it fits into
a message."""
T = TypeVar("T")

_NOT_TEXT = re.compile(r"[\ufdd0-\ufdef\ufffe\uffff]")
"""Noncharacters, which only binary data contains."""
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Control characters, except white space: they are read as spaces."""
_DOUBTFUL = re.compile(CONTROL.pattern[:-1] + r"\ufffd]")
"""Control characters, and the replacement for undecodable bytes."""
_MOST_DOUBTFUL = 8
"""One character in this many may be doubtful, as in web texts; UTF-16 has one in two."""


class Reason(StrEnum):
    """Why a sentence was skipped; a CLEANED or CROPPED one was learned, but not as it stood."""

    TOO_SHORT = "too short"
    TOO_LONG = "too long"
    NO_NOUN = "no noun"
    LONG_WORD = "word too long"
    PUNCTUATION = "too much punctuation"
    NOT_TEXT = "not text"
    CLEANED = "control characters"
    """Control characters in it were read as spaces."""
    CROPPED = "cropped"
    """Only its beginning was read."""


@dataclass
class Skips:
    """Counts of skipped sentences: for each reason the number, and the line of the first one.

    Sentences that were CLEANED or CROPPED are counted, too, but are not skipped.
    """

    counts: dict[Reason, int] = field(default_factory=dict)
    first_lines: dict[Reason, int] = field(default_factory=dict)

    def add(self, reason: Reason, line: int, count: int = 1) -> None:
        """Count one sentence, or several that start on this line."""
        self.counts[reason] = self.counts.get(reason, 0) + count
        self.first_lines[reason] = min(line, self.first_lines.get(reason, line))

    def update(self, other: "Skips") -> None:
        """Add the counts of another object."""
        for reason, count in other.counts.items():
            self.add(reason, other.first_lines[reason], count)

    def total(self) -> int:
        """Return the number of all skipped sentences."""
        read = (Reason.CLEANED, Reason.CROPPED)
        return sum(count for reason, count in self.counts.items() if reason not in read)


@dataclass(frozen=True)
class Parsed:
    """The sequences of some consecutive sentences."""

    sentences: int
    sequences: Sequences
    skips: Skips


class PromptSentence(NamedTuple):
    """A sentence that may be unfinished: its tokens, and the words that they merge into."""

    text: str
    tokens: list[Word]
    words: Sequence[tuple[Word, Name | None]]
    """The merged words, each with its neuron in this parse; None if the sentence has no noun
    (yet)."""


class Parser:
    """Parses sentences in this process; PipelineError unless pipeline and lists match the spec."""

    def __init__(self, spec: ModelSpec, device: str | torch.device = "cpu") -> None:
        lexicon.require(spec)
        self._spec = spec
        pipeline = english.pipeline(spec)
        self._memory = pipeline.words
        with self._memory.open() as nlp:
            self._tokenizer = cast(Tokenizer, nlp.tokenizer)
            self._tagger = Tagger(nlp, pipeline.tables, device)

    def __repr__(self) -> str:
        return f"<Parser: {self._tagger!r}, {self._memory!r}>"

    def parse(self, chunks: list[list[Sentence]]) -> list[Parsed]:
        """Parse the sentences to learn from, and count the skipped ones.

        Several chunks are parsed together for speed.
        """
        builders = [SequenceBuilder(self._spec.branches) for _ in chunks]
        skips = [Skips() for _ in chunks]
        with self._memory.open() as nlp:
            self._tagger.use(nlp)
            read: list[tuple[int, int, Doc | list[Word]]] = []
            for i, chunk in enumerate(chunks):
                for sentence in chunk:
                    tokens = self._tokenized(sentence, skips[i], nlp)
                    if tokens is not None:
                        read.append((i, sentence.line, tokens))
            tagged = self._tagger.words(tokens for *_, tokens in read if isinstance(tokens, Doc))
            for i, line, tokens in read:
                words = next(tagged) if isinstance(tokens, Doc) else tokens
                if not builders[i].add(merge_nouns(words)):
                    skips[i].add(Reason.NO_NOUN, line)
        parts = zip(chunks, builders, skips, strict=True)
        return [Parsed(len(chunk), builder.build(), skip) for chunk, builder, skip in parts]

    def parse_prompt(self, sentences: list[Sentence]) -> list[PromptSentence]:
        """Parse sentences of any number of tokens, with or without a noun."""
        reasons = [
            reason for sentence in sentences if (reason := unfit(sentence.text, self._tokenizer))
        ]
        if reasons:
            raise PromptError(f"a sentence of the prompt cannot be read: {reasons[0]}")
        texts = [CONTROL.sub(" ", sentence.text).rstrip() for sentence in sentences]
        with self._memory.open() as nlp:
            self._tagger.use(nlp)
            docs = [tokenized(text, nlp) for text in texts]
            tagged = self._tagger.words(doc for doc in docs if doc is not None)
            found = []
            for text, doc in zip(texts, docs, strict=True):
                words = self._alone(text) if doc is None else next(tagged)
                if words is None:
                    raise PromptError(f"a sentence of the prompt cannot be read: {Reason.NOT_TEXT}")
                found.append(_prompt_sentence(text, words))
            return found

    def _tokenized(
        self, sentence: Sentence, skips: Skips, nlp: Language
    ) -> Doc | list[Word] | None:
        """Tokenise a sentence; if it must be skipped, count it and return None.

        This runs before the costly tagging, except for a sentence that must be read alone.
        """
        text, cleaned = CONTROL.subn(" ", sentence.text)
        reason = unfit(sentence.text, self._tokenizer, self._spec.max_tokens)
        tokens: Doc | list[Word] | None = None
        if reason is None:
            tokens = tokenized(text, nlp)
            if tokens is None:
                tokens = self._alone(text)
            if tokens is None:
                reason = Reason.NOT_TEXT
            elif len(tokens) <= self._spec.seed_tokens:
                reason = Reason.TOO_SHORT
            elif len(tokens) > self._spec.max_tokens:
                reason = Reason.TOO_LONG
        if reason is not None:
            skips.add(reason, sentence.line)
            return None
        if cleaned:
            skips.add(Reason.CLEANED, sentence.line)
        return tokens

    def _alone(self, text: str) -> list[Word] | None:
        """Return the words of a sentence, read independently of everything before it.

        None if the pipeline confuses words even so (see `word_memory`).
        """
        with self._memory.alone() as nlp:
            doc = tokenized(text, nlp)
            return None if doc is None else next(self._tagger.beside(nlp).words([doc]))


def unfit(text: str, tokenizer: Tokenizer, most_words: int | None = None) -> Reason | None:
    """Return the reason why a sentence cannot be tokenised at reasonable cost, or None.

    In a swarm sentences come from strangers, so the lengths of words are checked here again.
    """
    text, original = CONTROL.sub(" ", text), text
    words = text.split()
    if LONG_SENTENCE in text:
        return Reason.TOO_LONG
    if LONG_WORD in text or max(map(len, words), default=0) > MAX_WORD:
        return Reason.LONG_WORD
    if _NOT_TEXT.search(text) or _MOST_DOUBTFUL * len(_DOUBTFUL.findall(original)) > len(text):
        return Reason.NOT_TEXT
    if most_words and len(words) > most_words:
        return Reason.TOO_LONG
    return Reason.PUNCTUATION if is_costly(text, tokenizer) else None


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
    """Return the length in characters beyond which any sentence is too long."""
    return 256 * spec.max_tokens


def chunks(sentences: Iterable[Sentence], size: int = CHUNK) -> Iterator[list[Sentence]]:
    """Group a stream of sentences into chunks of `size`, or of fewer if they are very long."""
    chunk, characters = list[Sentence](), 0
    for sentence in sentences:
        chunk.append(sentence)
        characters += len(sentence.text)
        if len(chunk) == size or (len(chunk) >= CHUNK and characters >= _MOST_CHARACTERS):
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def parse_chunks(
    chunks: Iterable[list[Sentence]], spec: ModelSpec, workers: int = 1
) -> Iterator[Parsed]:
    """Parse chunks and yield the results in order; with several workers, in as many processes."""
    grouped = groups(chunks, _CHUNKS_AT_ONCE)
    if workers <= 1:
        parser = Parser(spec)
        for group in grouped:
            yield from parser.parse(group)
        return
    for parsed in in_processes(partial(_parse_in_worker, spec), grouped, workers):
        yield from parsed


def groups(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of `size` consecutive items; the last list may be shorter."""
    stream = iter(items)
    while group := list(islice(stream, size)):
        yield group


@cache
def _worker_parser(spec: ModelSpec) -> Parser:
    torch.set_num_threads(1)  # the processes themselves run in parallel
    return Parser(spec)


def _parse_in_worker(spec: ModelSpec, group: list[list[Sentence]]) -> list[Parsed]:
    return _worker_parser(spec).parse(group)
