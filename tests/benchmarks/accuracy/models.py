"""The models that are compared. Each learns more and more documents, and is tested after each part.

All that read subwords get the same tokens, and predict the same positions: those after the first 8
of each text.
"""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from giaann_p2p.model.evaluate import Score
from giaann_p2p.model.learn import learn
from giaann_p2p.model.parse import Parser, chunks
from giaann_p2p.model.profile import Measure
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.rows import run
from giaann_p2p.model.sequence import Sequences
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.evaluate import TokenScore
from giaann_p2p.model.subwords.learn import learn_tokens
from giaann_p2p.model.subwords.parse import TextParser
from giaann_p2p.model.subwords.sequence import TokenSequences
from giaann_p2p.model.subwords.spec import DISTANCES, reference_spec, subword_spec
from giaann_p2p.model.subwords.tokeniser import tokeniser
from giaann_p2p.model.text import Sentence
from giaann_p2p.model.traits import traits_of
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.benchmarks.accuracy.figures import Figures
from tests.benchmarks.kneser_ney import DISCOUNTS, Grams, KneserNey

SUBWORDS, REFERENCE, WORDS = subword_spec(), reference_spec(), ModelSpec()
SEED, TOP = SUBWORDS.seed_tokens, 5


class Model(Protocol):
    """What is compared."""

    def learn(self, documents: range) -> None:
        """Learn some more documents, by their numbers."""
        ...

    def tested(self) -> list[Figures]:
        """Predict the test; return the figures of each variant."""
        ...


class Taken:
    """Processor time that was taken."""

    seconds = 0.0

    @contextmanager
    def more(self) -> Iterator[None]:
        """Add the time of what is done within."""
        began = time.process_time()
        yield
        self.seconds += time.process_time() - began


class Subwords:
    """The documents of a text as tokens, parsed once for all models that read subwords."""

    def __init__(self, train: Sequence[str], test: Sequence[str]) -> None:
        profile, parser = profile_of(SUBWORDS), TextParser(SUBWORDS)

        def parsed(document: str) -> list[TokenSequences]:
            cut = chunks(profile.texts([document.encode()], "a document"))
            return [one.sequences for one in parser.parse(list(cut))]

        self.train, self.test = list(map(parsed, train)), list(map(parsed, test))
        self.test_chunks = list(_chunks(SUBWORDS, test))

    def tokens(self, documents: range) -> int:
        """Return the number of tokens in some documents to learn."""
        return sum(len(part.token) for at in documents for part in self.train[at])


class Stored:
    """A brain: a store that learns, and a read-out that predicts."""

    def __init__(self, spec: ModelSpec, measure: Measure, test: list[list[Sentence]]) -> None:
        self._spec, self._measure, self._test = spec, measure, test
        self._store = Store.in_memory(
            spec, Layout(shards=16, blocks=traits_of(spec.profile).blocks)
        )
        self._store.hold(range(16))
        self._taken, self._updates = Taken(), 0

    def add(self, sequences: TokenSequences | Sequences) -> None:
        """Learn a chunk."""
        with self._taken.more():
            if isinstance(sequences, TokenSequences):
                delta = learn_tokens(sequences, self._spec)
            else:
                delta = learn(sequences, self._spec)
            self._store.apply([Update(bytes(16), self._updates, self._store.shards, delta)])
            self._updates += 1

    def figures(self, name: str) -> tuple[Figures, Score]:
        """Predict the test; return the figures that all read-outs have, and the score."""
        evaluation, taken = profile_of(self._spec).minds().evaluation(self._measure), Taken()
        with self._taken.more():
            self._store.compact()
        with taken.more():
            for chunk in self._test:
                run(evaluation.of(chunk).steps, self._store)
        score, known = evaluation.score, self._store.statistics()
        figures = Figures(
            name,
            top1=score.accuracy,
            connections=known.connections,
            nbytes=known.nbytes,
            learn_seconds=self._taken.seconds,
            test_seconds=taken.seconds,
            positions=score.predicted,
        )
        return figures, score


class Mix:
    """The read-out `mix` of a brain of subwords."""

    def __init__(self, text: Subwords) -> None:
        self._text = text
        measure = Measure(seed_tokens=SEED, bits=True)
        self._brain = Stored(SUBWORDS, measure, text.test_chunks)

    def learn(self, documents: range) -> None:
        """Learn some more documents."""
        for at in documents:
            for part in self._text.train[at]:
                self._brain.add(part)

    def tested(self) -> list[Figures]:
        """Predict the test by all measures."""
        figures, score = self._brain.figures("mix")
        assert isinstance(score, TokenScore)
        figures.given, figures.strict = score.accuracy_given, score.accuracy_strict
        figures.top5, figures.bits_per_byte = score.accuracy_top5, score.bits_per_byte
        figures.tiers = {
            str(basis): (tier.choices, tier.right) for basis, tier in score.tiers.items()
        }
        return [figures]


class LifTest:
    """The public reference's read-out `lif-test`, in a brain of the reference's model."""

    def __init__(self, text: Subwords, most_tokens: int) -> None:
        self._text, self._most, self._tokens = text, most_tokens, 0
        measure = Measure(seed_tokens=SEED, readout="lif-test")
        self._brain = Stored(REFERENCE, measure, text.test_chunks)

    def learn(self, documents: range) -> None:
        """Learn some more documents, unless that makes more tokens than it may learn."""
        self._tokens += self._text.tokens(documents)
        if self._tokens <= self._most:
            for at in documents:
                for part in self._text.train[at]:
                    self._brain.add(part)

    def tested(self) -> list[Figures]:
        """Predict the test with columns given; nothing if it was not to learn all of this part."""
        if self._tokens > self._most:
            return []
        figures, _ = self._brain.figures("lif-test")
        figures.given, figures.top1 = figures.top1, 0.0
        return [figures]


class NGrams:
    """Kneser-Ney n-grams, each with the better of two discounts, which favours them a little."""

    def __init__(self, text: Subwords, orders: Sequence[int] = (3, 5)) -> None:
        self._text, self._orders, self._learned = text, orders, 0

    def learn(self, documents: range) -> None:
        """Note that so many documents are to be counted."""
        self._learned = documents.stop

    def tested(self) -> list[Figures]:
        """Count anew, and predict the test."""
        return [self._best_of(order) for order in self._orders]

    def _best_of(self, order: int) -> Figures:
        taken = Taken()
        with taken.more():
            grams = Grams(_texts(self._text.train[: self._learned]), order)
        tried = [self._by(KneserNey(grams, order, discount)) for discount in DISCOUNTS]
        found = max(tried, key=lambda figures: figures.top1)
        found.learn_seconds = taken.seconds
        found.connections = sum(len(level.key) for level in grams.levels)
        found.nbytes = grams.nbytes
        return found

    def _by(self, model: KneserNey) -> Figures:
        right, among, positions, nats, size = 0, 0, 0, 0.0, 0
        lengths, taken = list(map(len, tokeniser().bytes)), Taken()
        with taken.more():
            for text in _texts(self._text.test):
                for at in range(SEED, len(text)):
                    best, log = model.best_and_log(text[at - DISTANCES : at], text[at], TOP)
                    right, among = right + (best[0] == text[at]), among + (text[at] in best)
                    nats, size = nats - log, size + lengths[text[at]]
                    positions += 1
        return Figures(
            f"Kneser-Ney {model.order}",
            top1=right / positions,
            top5=among / positions,
            bits_per_byte=nats / math.log(2) / size,
            test_seconds=taken.seconds,
            positions=positions,
        )


class Words:
    """The profile `words` with timing `none`; its tokens are words, so they are others."""

    def __init__(self, train: Sequence[str], test: Sequence[str]) -> None:
        self._train = train
        self._parser = Parser(WORDS)
        measure = Measure(seed_tokens=WORDS.seed_tokens, timing="none")
        self._brain = Stored(WORDS, measure, list(_chunks(WORDS, test)))

    def learn(self, documents: range) -> None:
        """Parse and learn some more documents."""
        for chunk in _chunks(WORDS, [self._train[at] for at in documents]):
            for parsed in self._parser.parse([chunk]):
                self._brain.add(parsed.sequences)

    def tested(self) -> list[Figures]:
        """Predict the test."""
        figures, _ = self._brain.figures("words, timing none")
        return [figures]


def _chunks(spec: ModelSpec, documents: Sequence[str]) -> Iterator[list[Sentence]]:
    """Yield the texts of documents in chunks; none spans two documents."""
    profile = profile_of(spec)
    for document in documents:
        yield from chunks(profile.texts([document.encode()], "a document"))


def _texts(documents: Sequence[list[TokenSequences]]) -> Iterator[list[int]]:
    """Yield the tokens of each text."""
    for parts in documents:
        for part in parts:
            for sequence in part:
                yield sequence.token.tolist()
