"""Parses texts into sequences of tokens, in one process or several; skipped texts are counted."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple, cast

import torch
from spacy.language import Language
from spacy.tokens import Doc

from giaann_p2p.errors import PromptError
from giaann_p2p.model import english
from giaann_p2p.model.affixes import Tokenizer
from giaann_p2p.model.parse import CONTROL, Reason, Skips, groups, unfit
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.sequence import TokenSequenceBuilder, TokenSequences
from giaann_p2p.model.subwords.spec import of_subwords
from giaann_p2p.model.subwords.tags import PartsOfSpeech, TaggedWord
from giaann_p2p.model.subwords.texts import beginning
from giaann_p2p.model.subwords.tokeniser import tokeniser
from giaann_p2p.model.subwords.tokens import Token, tokens_of
from giaann_p2p.model.tagger import Tagger
from giaann_p2p.model.text import Sentence
from giaann_p2p.model.word_memory import tokenized
from giaann_p2p.model.workers import in_processes

_CHUNKS_AT_ONCE = 8


@dataclass(frozen=True)
class ParsedTexts:
    """The sequences of some consecutive texts."""

    sentences: int
    """The number of texts."""
    sequences: TokenSequences
    skips: Skips


class _Read(NamedTuple):
    """A text to be tagged; or one that is tagged already, because its words had been confused."""

    chunk: int
    line: int
    text: str
    words: Doc | list[TaggedWord]


class TextParser:
    """Parses texts in this process; PipelineError unless pipeline and tokeniser match the spec."""

    def __init__(self, spec: ModelSpec, device: str | torch.device = "cpu") -> None:
        self._spec, self._own = spec, of_subwords(spec)
        self.tokeniser = tokeniser(self._own.tokeniser)
        pipeline = english.pipeline(spec)
        self._memory = pipeline.words
        with self._memory.open() as nlp:
            self._tokenizer = cast(Tokenizer, nlp.tokenizer)
            self._tagger = Tagger(nlp, pipeline.tables, device)
            self._parts = PartsOfSpeech(self._tagger.tags, nlp)

    def __repr__(self) -> str:
        return f"<TextParser: {self._parts!r}, {self._memory!r}>"

    def parse(self, chunks: Sequence[Sequence[Sentence]]) -> list[ParsedTexts]:
        """Parse the texts to learn from, and count the skipped and the cropped ones.

        Several chunks are parsed together for speed.
        """
        builders = [TokenSequenceBuilder() for _ in chunks]
        skips = [Skips() for _ in chunks]
        with self._memory.open() as nlp:
            self._tagger.use(nlp)
            read = [
                one
                for chunk, texts in enumerate(chunks)
                for text in texts
                if (one := self._tokenized(chunk, text, skips[chunk], nlp))
            ]
            for one, words in self._tagged(read):
                self._add(one, words, builders[one.chunk], skips[one.chunk])
        parts = zip(chunks, builders, skips, strict=True)
        return [ParsedTexts(len(chunk), builder.build(), skip) for chunk, builder, skip in parts]

    def tokens(self, text: str) -> list[Token]:
        """Return the tokens of a text of any length, as it stands; PromptError if it is unfit."""
        reason = unfit(text, self._tokenizer)
        if reason is None:
            with self._memory.open() as nlp:
                self._tagger.use(nlp)
                doc = tokenized(text, nlp)
                words = self._alone(text) if doc is None else next(self._words([doc]))
                if words is not None:
                    return self._tokens(text, words, self.tokeniser.encode(text))
                reason = Reason.NOT_TEXT
        raise PromptError(f"a sentence of the prompt cannot be read: {reason}")

    def _tokenized(
        self, chunk: int, sentence: Sentence, skips: Skips, nlp: Language
    ) -> _Read | None:
        """Cut a text into words; if it must be skipped, count it and return None."""
        begun = beginning(sentence.text.replace("\0", ""), self._spec).lstrip()
        text, cleaned = CONTROL.subn(" ", begun)
        words: Doc | list[TaggedWord] | None = None
        reason = unfit(begun, self._tokenizer)
        if reason is None:
            words = tokenized(text, nlp)
            if words is None:
                words = self._alone(text)
            if words is None:
                reason = Reason.NOT_TEXT
            elif len(words) <= self._spec.seed_tokens:
                reason = Reason.TOO_SHORT
        if reason is not None or words is None:
            skips.add(reason or Reason.NOT_TEXT, sentence.line)
            return None
        if cleaned:
            skips.add(Reason.CLEANED, sentence.line)
        return _Read(chunk, sentence.line, text, words)

    def _tagged(self, read: Sequence[_Read]) -> Iterator[tuple[_Read, list[TaggedWord]]]:
        tagged = self._words(one.words for one in read if isinstance(one.words, Doc))
        for one in read:
            yield one, next(tagged) if isinstance(one.words, Doc) else one.words

    def _words(self, docs: Iterable[Doc]) -> Iterator[list[TaggedWord]]:
        return (self._parts.words(doc, tagged) for doc, tagged in self._tagger.tagged(docs))

    def _alone(self, text: str) -> list[TaggedWord] | None:
        """Return the words of a text, read independently of everything before it.

        None if the pipeline confuses words even so (see `word_memory`).
        """
        with self._memory.alone() as nlp:
            doc = tokenized(text, nlp)
            if doc is None:
                return None
            return self._parts.words(*next(self._tagger.beside(nlp).tagged([doc])))

    def _add(
        self, one: _Read, words: list[TaggedWord], builder: TokenSequenceBuilder, skips: Skips
    ) -> None:
        """Crop a text, and add it to a batch, unless it is too long or has no noun."""
        text, most = one.text, self._own.max_words
        cropped = len(words) > most
        if cropped:
            words = words[:most]
            text = text[: words[-1].start + len(words[-1].text)]
        if len(text.encode()) > self._own.max_bytes:
            return skips.add(Reason.TOO_LONG, one.line)
        numbers = self.tokeniser.encode(text)
        kept = self._whole(numbers)
        if not builder.add(self._tokens(text, words, kept)):
            return skips.add(Reason.NO_NOUN, one.line)
        if cropped or len(kept) < len(numbers):
            skips.add(Reason.CROPPED, one.line)
        return None

    def _whole(self, numbers: list[int]) -> list[int]:
        """Return the first tokens, as many as a sequence may have without cutting a character."""
        for end in range(min(len(numbers), self._spec.max_tokens), 0, -1):
            data = b"".join(
                self.tokeniser.bytes[number] for number in numbers[max(0, end - 4) : end]
            )
            if end == len(numbers) or _is_whole(data):
                return numbers[:end]
        return []

    def _tokens(self, text: str, words: list[TaggedWord], numbers: list[int]) -> list[Token]:
        texts = [self.tokeniser.texts[number] for number in numbers]
        lengths = [len(self.tokeniser.bytes[number]) for number in numbers]
        return tokens_of(text, words, numbers, texts, lengths)


def _is_whole(data: bytes) -> bool:
    """Return whether some bytes of a text end with a whole character."""
    tail = data[-4:]
    for at in range(len(tail) - 1, -1, -1):
        lead = tail[at]
        if lead & 0xC0 != 0x80:  # the first byte of the last character
            needed = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return len(tail) - at == needed
    return False


def parse_text_chunks(
    chunks: Iterable[list[Sentence]], spec: ModelSpec, workers: int = 1
) -> Iterator[ParsedTexts]:
    """Parse chunks and yield the results in order; with several workers, in as many processes."""
    grouped = groups(chunks, _CHUNKS_AT_ONCE)
    if workers <= 1:
        parser = TextParser(spec)
        for group in grouped:
            yield from parser.parse(group)
        return
    for parsed in in_processes(partial(_parse_in_worker, spec), grouped, workers):
        yield from parsed


@cache
def _worker_parser(spec: ModelSpec) -> TextParser:
    torch.set_num_threads(1)  # the processes themselves run in parallel
    return TextParser(spec)


def _parse_in_worker(spec: ModelSpec, group: list[list[Sentence]]) -> list[ParsedTexts]:
    return _worker_parser(spec).parse(group)
