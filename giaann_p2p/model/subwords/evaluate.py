"""Measures how well a brain of the profile "subwords" knows a text: accuracy on tokens, and bits.

Each text's first S tokens are the seed. Each further token is predicted, and then either the true
token is heard (feed `true`) or the predicted one (`own`). A token belongs to a column whose noun
may come later, and nobody who predicts can know that noun. So there are three measures:

- *Columns given*: each own row counts. Comparable with the public reference, not with other kinds
  of models.
- *Causal*: the own row of a token counts only if its column's noun lies before the position to
  predict. It still knows a little too much, because the whole text decided where columns end.
- *Strict*: the own row of a token counts only if its column's noun is that token or lies before it,
  and no delimiter, nor a candidate for one, came between. Only the parse still looks ahead.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import log

from giaann_p2p.errors import UsageError
from giaann_p2p.model.evaluate import Feed, Score
from giaann_p2p.model.manner import Variant
from giaann_p2p.model.profile import Measure, Scoring
from giaann_p2p.model.rows import Neuron, Steps
from giaann_p2p.model.subwords.basis import Basis
from giaann_p2p.model.subwords.evidence import CountedRows, Evidence, Place, needed
from giaann_p2p.model.subwords.ids import EVERYTHING
from giaann_p2p.model.subwords.lif import TEST, TRAIN, Lif
from giaann_p2p.model.subwords.likelihood import log_probability
from giaann_p2p.model.subwords.mix import (
    Candidates,
    candidates_after,
    place_of,
)
from giaann_p2p.model.subwords.parse import TextParser
from giaann_p2p.model.subwords.sequence import TokenSequences
from giaann_p2p.model.subwords.spec import DISTANCES, of_subwords
from giaann_p2p.model.text import Sentence

_TOP = 5


class Readout(StrEnum):
    """The read-outs that an evaluation can use."""

    MIX = "mix"
    LIF_TRAIN = "lif-train"
    """The reference's, for text that was learned; columns are given."""
    LIF_TEST = "lif-test"
    """The reference's, for other text; columns are given."""


@dataclass
class Tier:
    """The number of choices that rest on one basis, and of those that were right."""

    choices: int = 0
    right: int = 0


@dataclass
class TokenScore(Score):
    """The counts of an evaluation; with `mix` they are causal, unless they say otherwise."""

    columns: str = "causal"
    """`causal`, or `given` for a read-out that needs all columns."""
    right_given: int = 0
    """The number of right words with columns given."""
    right_strict: int = 0
    """The number of right words by the strict measure; only with `mix`."""
    right_top5: int = 0
    """The number of words among the five best candidates; only with `mix`, as the next two."""
    right_top5_given: int = 0
    right_top5_strict: int = 0
    tiers: dict[Basis, Tier] = field(default_factory=lambda: {basis: Tier() for basis in Basis})
    """What the choices of `mix` rest on, and how many of them were right."""
    bits: float | None = None
    """The bits that the true words take, by the probabilities of `mix`; None if not measured."""
    bits_given: float | None = None
    """The same with columns given."""
    bits_strict: float | None = None
    predicted_bytes: int = 0
    """The UTF-8 bytes of the true words, if their bits were measured."""

    @property
    def accuracy_given(self) -> float:
        """The share of right words with columns given."""
        return self._share(self.right_given)

    @property
    def accuracy_strict(self) -> float:
        """The share of right words by the strict measure."""
        return self._share(self.right_strict)

    @property
    def accuracy_top5(self) -> float:
        """The share of words that were among the five best candidates."""
        return self._share(self.right_top5)

    @property
    def accuracy_top5_given(self) -> float:
        """The same with columns given."""
        return self._share(self.right_top5_given)

    @property
    def accuracy_top5_strict(self) -> float:
        """The same by the strict measure."""
        return self._share(self.right_top5_strict)

    @property
    def bits_per_byte(self) -> float | None:
        """The bits that a byte of the true words takes; None if not measured."""
        return self._per_byte(self.bits)

    @property
    def bits_per_byte_given(self) -> float | None:
        """The same with columns given."""
        return self._per_byte(self.bits_given)

    @property
    def bits_per_byte_strict(self) -> float | None:
        """The same by the strict measure."""
        return self._per_byte(self.bits_strict)

    @property
    def perplexity(self) -> float | None:
        """2 to the power of the mean bits of a word; None if not measured."""
        return self._perplexity(self.bits)

    @property
    def perplexity_given(self) -> float | None:
        """The same with columns given."""
        return self._perplexity(self.bits_given)

    @property
    def perplexity_strict(self) -> float | None:
        """The same by the strict measure."""
        return self._perplexity(self.bits_strict)

    def _per_byte(self, bits: float | None) -> float | None:
        return None if bits is None or not self.predicted_bytes else bits / self.predicted_bytes

    def _perplexity(self, bits: float | None) -> float | None:
        return None if bits is None or not self.predicted else float(2 ** (bits / self.predicted))

    def _share(self, right: int) -> float:
        return right / self.predicted if self.predicted else 0.0


class TokenEvaluation:
    """The evaluation of a text, chunk by chunk."""

    def __init__(self, parser: TextParser, counted: CountedRows, measure: Measure) -> None:
        self._parser, self._measure = parser, measure
        self._evidence, spec = Evidence(counted), counted.spec
        readout = _readout(measure)
        if readout is Readout.MIX and not of_subwords(spec).any_column:
            raise UsageError(
                "this brain has no rows that ignore columns, which mix needs; use the read-out "
                "lif-test, or lif-train for a text that it learned"
            )
        if measure.bits and (readout is not Readout.MIX or measure.feed is not Feed.TRUE):
            raise UsageError("bits can be measured only with the read-out mix and the feed true")
        self._lif = _lif(self._evidence, readout)
        self._known: dict[tuple[Place, ...], Candidates | None] = {}
        self._bits: dict[tuple[tuple[Place, ...], int], float] = {}
        self.score = TokenScore(columns="given" if self._lif else "causal")
        if measure.bits:
            self.score.bits = self.score.bits_given = self.score.bits_strict = 0.0

    def of(self, chunk: Sequence[Sentence]) -> Scoring:
        """Parse a chunk at once; return the steps that predict it and add to the score."""
        (parsed,) = self._parser.parse([chunk])
        self.score.skipped += parsed.sentences - len(parsed.sequences)
        return Scoring(self._needed(parsed.sequences), self._scored(parsed.sequences))

    def _needed(self, sequences: TokenSequences) -> Iterator[Neuron]:
        """Yield the neurons of all tokens; with `mix`, in any column, too."""
        for place in _places(sequences):
            own = self._evidence.own(place)
            if own is not None:
                yield own
            if self._lif is None:
                yield self._evidence.anywhere(place.token)

    def _scored(self, sequences: TokenSequences) -> Steps[None]:
        for sequence in sequences:
            if len(sequence.token) <= self._measure.seed_tokens:
                self.score.too_short += 1
                continue
            self.score.sentences += 1
            self.score.seeded += self._measure.seed_tokens
            places = _places(sequence)
            self._known.clear()
            self._bits.clear()
            if self._lif:
                self._lif.begin()
                yield from self._by_lif(self._lif, places)
            else:
                yield from self._by_all_measures(sequence, places)

    def _by_all_measures(self, sequence: TokenSequences, places: Sequence[Place]) -> Steps[None]:
        """Predict a sequence by each measure, and add to the score."""
        if self._measure.feed is Feed.TRUE:
            yield from self._evidence.need([EVERYTHING, *self._needed(sequence)])
        named_at, none = sequence.named_at.tolist(), 0.0 if self._measure.bits else None
        given, strict = TokenScore(bits=none), TokenScore(bits=none)
        yield from self._by_mix(places, [0] * len(places), given)
        yield from self._by_mix(places, self._known_from(named_at), self.score)
        yield from self._by_mix(places, _surely_known_from(sequence), strict)
        self.score.right_given += given.right_words
        self.score.right_strict += strict.right_words
        self.score.right_top5_given += given.right_top5
        self.score.right_top5_strict += strict.right_top5
        self.score.bits_given = _sum(self.score.bits_given, given.bits)
        self.score.bits_strict = _sum(self.score.bits_strict, strict.bits)

    def _known_from(self, named_at: Sequence[int]) -> list[int]:
        """Return for each token the first position to predict at which its column is known.

        With feed `own`, the text's nouns after the seed are never heard.
        """
        last = self._measure.seed_tokens if self._measure.feed is Feed.OWN else len(named_at)
        return [at + 1 if at < last else len(named_at) for at in named_at]

    def _by_mix(
        self, places: Sequence[Place], known_from: Sequence[int], score: TokenScore
    ) -> Steps[None]:
        """Predict each token after the seed, and add to the score."""
        seed, own = self._measure.seed_tokens, self._measure.feed is Feed.OWN
        read = list(zip(places, known_from, strict=True))[:seed]
        for at in range(seed, len(places)):
            last = [
                place if known <= at else place._replace(home=None)
                for place, known in read[-DISTANCES:][::-1]
            ]
            if own:  # otherwise all rows were read before
                yield from self._evidence.need(needed(self._evidence, last))
            found, place = self._candidates(last), None
            if found and (own or score is self.score):  # the other scores count no neurons
                place = place_of(self._evidence, found.best, last)
            if found is None and own:
                score.unreached += len(places) - at
                return
            _count(found, place, places[at], score)
            if score.bits is not None:
                token = places[at].token
                score.bits += self._bits_of(last, token)
                score.predicted_bytes += len(self._evidence.known.bytes[token])
            if own and found:
                read.append((place or Place(found.best, last[0].home), 0))
            else:
                read.append((places[at], known_from[at]))

    def _candidates(self, last: Sequence[Place]) -> Candidates | None:
        """Return the candidates, cached: at most positions all measures have the same ones."""
        key = tuple(last)
        if key not in self._known:
            self._known[key] = candidates_after(self._evidence, last)
        return self._known[key]

    def _bits_of(self, last: Sequence[Place], token: int) -> float:
        """Return the bits that a token takes, cached like the candidates."""
        key = tuple(last), token
        if key not in self._bits:
            self._bits[key] = -log_probability(self._evidence, last, token) / log(2)
        return self._bits[key]

    def _by_lif(self, lif: Lif, places: Sequence[Place]) -> Steps[None]:
        score, seed = self.score, self._measure.seed_tokens
        read = list(places[:seed])
        for at in range(seed, len(places)):
            yield from self._evidence.need(lif.needed(read))
            choice = lif.choose(read)
            if choice is None and self._measure.feed is Feed.OWN:
                score.unreached += len(places) - at
                return
            score.predicted += 1
            score.silent += choice is None
            score.right_neurons += choice is not None and choice.place == places[at]
            hit = choice is not None and choice.place.token == places[at].token
            score.right_words, score.right_given = score.right_words + hit, score.right_given + hit
            own = choice is not None and self._measure.feed is Feed.OWN
            read.append(choice.place if choice and own else places[at])


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _count(found: Candidates | None, place: Place | None, target: Place, score: TokenScore) -> None:
    """Add a prediction, and the place of its neuron, to a score."""
    score.predicted += 1
    if found is None:
        score.silent += 1
        return
    right = found.best == target.token
    score.right_words += right
    score.right_neurons += place == target
    tier = score.tiers[found.basis]
    tier.choices, tier.right = tier.choices + 1, tier.right + right
    rank = 0 if right else found.rank(target.token)
    score.right_top5 += rank is not None and rank < _TOP


def _surely_known_from(sequence: TokenSequences) -> list[int]:
    """Return for each token the first position at which the strict measure knows its column.

    That is the position after the token; or none, if the column's noun comes after the token, or a
    delimiter came between them.
    """
    named_at, kinds = sequence.named_at.tolist(), sequence.delimiter.tolist()
    never = len(named_at)
    return [
        never if noun > at or any(kinds[noun + 1 : at]) else at + 1
        for at, noun in enumerate(named_at)
    ]


def _places(sequences: TokenSequences) -> list[Place]:
    fields = (sequences.token, sequences.home, sequences.prime)
    return list(map(Place, *(field.tolist() for field in fields)))


def _lif(evidence: Evidence, readout: Readout) -> Lif | None:
    if readout is Readout.MIX:
        return None
    return Lif(evidence, TRAIN if readout is Readout.LIF_TRAIN else TEST)


def _readout(measure: Measure) -> Readout:
    try:
        readout = Readout(measure.readout or Readout.MIX)
    except ValueError:
        names = ", ".join(Readout)
        raise UsageError(f"no read-out is named {measure.readout!r}; choose from {names}") from None
    if measure.timing != "auto" or measure.variant not in (None, Variant()):
        raise UsageError("timings and variants need the profile words; this brain has subwords")
    return readout
