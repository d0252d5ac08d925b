"""Measures how well a brain of the profile "subwords" knows a text: top-1 accuracy on tokens.

Each text's first S tokens are the seed. Each further token is predicted, and then either the true
token is heard (feed `true`) or the predicted one (`own`). A token belongs to a column whose noun
may come later, and nobody who predicts can know that noun. So there are two measures. *Causal*: the
own row of a token counts only if its column's noun lies before the position to predict. *Columns
given*: each own row counts, which compares with the public reference, and with no other kind of
model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from giaann_p2p.errors import UsageError
from giaann_p2p.model.evaluate import Feed, Score
from giaann_p2p.model.manner import Variant
from giaann_p2p.model.profile import Measure, Scoring
from giaann_p2p.model.rows import Neuron, Steps
from giaann_p2p.model.subwords.evidence import CountedRows, Evidence, Place, needed
from giaann_p2p.model.subwords.lif import TEST, TRAIN, Lif
from giaann_p2p.model.subwords.mix import TokenChoice, mix, place_of
from giaann_p2p.model.subwords.parse import TextParser
from giaann_p2p.model.subwords.sequence import TokenSequences
from giaann_p2p.model.subwords.spec import DISTANCES, of_subwords
from giaann_p2p.model.text import Sentence


class Readout(StrEnum):
    """The read-outs."""

    MIX = "mix"
    LIF_TRAIN = "lif-train"
    """The reference's, for text that was learned; columns are given."""
    LIF_TEST = "lif-test"
    """The reference's, for other text; columns are given."""


@dataclass
class TokenScore(Score):
    """The counts of an evaluation; with `mix` they are causal."""

    columns: str = "causal"
    """`causal`, or `given` for a read-out that needs all columns."""
    right_given: int = 0
    """The number of right words with columns given."""

    @property
    def accuracy_given(self) -> float:
        """The share of right words with columns given."""
        return self.right_given / self.predicted if self.predicted else 0.0


class TokenEvaluation:
    """The evaluation of a text, chunk by chunk."""

    def __init__(self, parser: TextParser, counted: CountedRows, measure: Measure) -> None:
        self._parser, self._measure = parser, measure
        self._evidence, spec = Evidence(counted), counted.spec
        readout = _readout(measure)
        if readout is Readout.MIX and not of_subwords(spec).any_column:
            raise UsageError("this brain has no rows that ignore columns, which mix needs; try lif")
        self._lif = _lif(self._evidence, readout)
        self._known: dict[tuple[Place, ...], tuple[TokenChoice | None, Place | None]] = {}
        self.score = TokenScore(columns="given" if self._lif else "causal")

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
            places, named_at = _places(sequence), sequence.named_at.tolist()
            self._known.clear()
            if self._lif:
                yield from self._by_lif(self._lif, places)
            else:
                given = Score()
                yield from self._by_mix(places, [0] * len(places), given)
                self.score.right_given += given.right_words
                yield from self._by_mix(places, self._known_from(named_at), self.score)

    def _known_from(self, named_at: Sequence[int]) -> list[int]:
        """Return from which position to predict on the column of each token is known.

        With its own tokens, nouns of the text behind the seed are never heard.
        """
        last = self._measure.seed_tokens if self._measure.feed is Feed.OWN else len(named_at)
        return [at + 1 if at < last else len(named_at) for at in named_at]

    def _by_mix(
        self, places: Sequence[Place], known_from: Sequence[int], score: Score
    ) -> Steps[None]:
        """Predict each token after the seed, and add to the score."""
        seed, own = self._measure.seed_tokens, self._measure.feed is Feed.OWN
        read = list(zip(places, known_from, strict=True))[:seed]
        for at in range(seed, len(places)):
            last = [
                place if known <= at else place._replace(home=None)
                for place, known in read[-DISTANCES:][::-1]
            ]
            yield from self._evidence.need(needed(self._evidence, last))
            choice, place = self._chosen(last)
            if choice is None and own:
                score.unreached += len(places) - at
                return
            score.predicted += 1
            score.silent += choice is None
            score.right_words += choice is not None and choice.token == places[at].token
            score.right_neurons += place == places[at]
            if own and choice:
                read.append((place or Place(choice.token, last[0].home), 0))
            else:
                read.append((places[at], known_from[at]))

    def _chosen(self, last: Sequence[Place]) -> tuple[TokenChoice | None, Place | None]:
        """Choose, and find the neuron; most choices of both measures depend on the same tokens."""
        key = tuple(last)
        if key not in self._known:
            choice = mix(self._evidence, last)
            place = choice and place_of(self._evidence, choice.token, last)
            self._known[key] = choice, place
        return self._known[key]

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
        raise UsageError(f"no read-out {measure.readout!r}; there are {names}") from None
    if measure.timing != "auto" or measure.variant not in (None, Variant()):
        raise UsageError("timings and variants are of the profile words; this brain has subwords")
    return readout
