"""The bridge to `tests.plain`: the same values on both sides."""

from collections.abc import Iterable, Sequence

import numpy as np

from giaann_p2p.model import lexicon
from giaann_p2p.model.activation import Candidates
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.manner import Variant
from giaann_p2p.model.rows import Name
from giaann_p2p.model.sequence import Sequences
from giaann_p2p.model.spec import ModelSpec
from tests.plain import learn, predict
from tests.plain.learn import Connection, Memory, Shape
from tests.plain.sequence import Delimiter, Neuron, Position


def delimiter_of(word: str) -> Delimiter:
    return Delimiter(lexicon.delimiter(word).value)


def shape_of(spec: ModelSpec) -> Shape:
    return Shape(spec.seed_tokens, spec.branches)


def ids_of(neuron: Neuron) -> tuple[int, int]:
    feature = PRIME if neuron.feature is None else word_id(neuron.feature)
    return word_id(neuron.concept), feature


def positions_of(sequence: Sequences) -> list[Position]:
    """Return a batch of one as the yardstick writes it."""
    fields = (sequence.concept, sequence.feature, sequence.column)
    return [
        Position(Neuron(sequence.names[c], None if f == PRIME else sequence.names[f]), column)
        for c, f, column in zip(*(field.tolist() for field in fields), strict=True)
    ]


def batch_of(sequences: Sequence[Sequence[Position]], spec: ModelSpec) -> Sequences:
    """Return the yardstick's sequences as a batch, with only the names that they need."""
    flat = [position for positions in sequences for position in positions]
    ids = [ids_of(position.neuron) for position in flat]
    branches = [b for positions in sequences for b in learn.branches_of(positions, shape_of(spec))]
    words = {word for p in flat for word in p.neuron if word is not None}
    return Sequences(
        np.cumsum([0, *map(len, sequences)]).astype(np.int64),
        np.array([concept for concept, _ in ids], np.uint64),
        np.array([feature for _, feature in ids], np.uint64),
        np.array([position.column for position in flat], np.int64),
        np.array(branches, np.int64),
        np.zeros(len(flat), np.int64),
        {word_id(word): word for word in words},
    )


def remembered(sequences: Iterable[Sequence[Position]], shape: Shape) -> Memory:
    memory = Memory()
    for positions in sequences:
        learn.learn(memory, positions, shape)
    return memory


def neurons_of(delta: Delta) -> list[Neuron]:
    pairs = zip(delta.concept.tolist(), delta.feature.tolist(), strict=True)
    return [Neuron(delta.names[c], None if f == PRIME else delta.names[f]) for c, f in pairs]


def connections_of(delta: Delta) -> dict[Connection, int]:
    neurons = neurons_of(delta)
    fields = (delta.source, delta.target, delta.branch, delta.segment, delta.strength)
    return {
        Connection(neurons[source], neurons[target], branch, segment): strength
        for source, target, branch, segment, strength in zip(
            *(field.tolist() for field in fields), strict=True
        )
    }


def occurrences_of(delta: Delta) -> dict[Neuron, int]:
    return dict(zip(neurons_of(delta), delta.count.tolist(), strict=True))


def mind_of(
    memory: Memory, spec: ModelSpec, timing: str, variant: Variant | None = None
) -> predict.Mind:
    variant = variant or Variant()
    return predict.Mind(
        memory,
        shape_of(spec),
        timing,
        ids_of,
        delimiter_of,
        boolean_strengths=not variant.graded_strengths,
        boolean_activations=not variant.graded_activations,
    )


class AnywhereMind(predict.Mind):
    """Lets every word lead out of its column."""

    def is_delimiter(self, neuron: Neuron) -> bool:
        return True


def listed(found: Candidates) -> list[tuple[tuple[int, int], int, int]]:
    """Return candidates best first: ids, score, strength of the adjacent connection."""
    order = found.ranked(len(found)).tolist()
    neurons = [(neuron.concept, neuron.feature) for neuron in map(found.neuron, order)]
    return list(
        zip(neurons, found.score[order].tolist(), found.strength[order].tolist(), strict=True)
    )


def expected(found: list[predict.Candidate]) -> list[tuple[tuple[int, int], int, int]]:
    """Return the yardstick's candidates in the same form."""
    return [(ids_of(one.neuron), one.score, one.adjacent) for one in found]


def name_of(neuron: Neuron) -> Name:
    return Name(neuron.concept, neuron.feature)
