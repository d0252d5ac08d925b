"""Learning: what a batch of sequences adds, as whole numbers that depend on nothing learned before.

For positions a < b of a sequence, d = b - a tokens and c columns apart, 10 / (d + 1) is added to
the connection neuron(a) -> neuron(b) in the segment of distance d, if that is one of the nearest,
and in the segment of column distance c, if there is one. So a strength in a segment of distance d,
divided by that increment, is a count.

With `any_column`, the same is learned for the neurons (ANY, token), which ignore columns; and the
neuron EVERYTHING leads to every token that occurs, as if it were the token before it: that row
holds how often each token occurs. Delimiters are counted as occurrences of neurons of two reserved
concepts, without connections.
"""

from typing import NamedTuple

import numpy as np

from giaann_p2p.model.delta import EMPTY, ConnectionKey, Delta, first_of_runs, unique_neurons
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.sequence import Ids, Ints, Names
from giaann_p2p.model.spec import ModelSpec, increment
from giaann_p2p.model.subwords.columns import Delimiter
from giaann_p2p.model.subwords.ids import ANY, DETERMINISTIC, PROBABILISTIC, RESERVED
from giaann_p2p.model.subwords.sequence import TokenSequences
from giaann_p2p.model.subwords.spec import DISTANCES, of_subwords, segment_of
from giaann_p2p.model.subwords.tokeniser import Tokeniser, tokeniser


class _Neurons(NamedTuple):
    """The distinct neurons of a batch, V in all, and which of them its N tokens are."""

    concept: Ids
    """Shape [V]."""
    feature: Ids
    """Shape [V]."""
    occurred: Ints
    """Shape [V]: how often each occurs."""
    own: Ints
    """Shape [N]: the index of each token's neuron in its column."""
    anywhere: Ints
    """Shape [N], or [0] without rows that ignore columns: the index of its neuron (ANY, token)."""
    everything: Ints
    """Shape [N] or [0]: the index of EVERYTHING."""


def learn_tokens(batch: TokenSequences, spec: ModelSpec) -> Delta:
    """Return the delta that the batch adds to a brain."""
    if not len(batch.token):
        return EMPTY
    parameters = of_subwords(spec)
    known = tokeniser(parameters.tokeniser)
    neurons = _neurons(batch, known, parameters.any_column)
    key = ConnectionKey.for_sizes(len(neurons.concept), spec.branches, spec.segments)
    packed, units = _connections(batch, neurons, key, spec)
    return key.delta(
        neurons.concept,
        neurons.feature,
        neurons.occurred,
        packed,
        units,
        _names(batch, neurons, known),
    )


def _neurons(batch: TokenSequences, known: Tokeniser, any_column: bool) -> _Neurons:
    token, home = known.ids[batch.token], known.ids[batch.home]  # [N] each
    size = len(token)
    own = np.where(batch.prime, np.uint64(PRIME), token)
    concepts, features = [home], [own]
    if any_column:
        concepts += [np.full(2 * size, ANY, np.uint64)]
        features += [token, np.full(size, PRIME, np.uint64)]
    for kind, reserved in (
        (Delimiter.DETERMINISTIC, DETERMINISTIC),
        (Delimiter.PROBABILISTIC, PROBABILISTIC),
    ):
        features.append(token[batch.delimiter == kind])
        concepts.append(np.full(len(features[-1]), reserved, np.uint64))
    concept, feature, slot = unique_neurons(np.concatenate(concepts), np.concatenate(features))
    count = np.bincount(slot, minlength=len(concept)).astype(np.int64)
    end = size if any_column else 0
    return _Neurons(
        concept, feature, count, slot[:size], slot[size : size + end], slot[size + end :][:end]
    )


def _connections(
    batch: TokenSequences, neurons: _Neurons, key: ConnectionKey, spec: ModelSpec
) -> tuple[Ints, Ints]:
    """Return connections [M], packed, sorted and distinct, and the strength of each, [M]."""
    lengths = np.diff(batch.starts)
    left = np.repeat(lengths, lengths) - batch.place  # [N] tokens from each to its sequence's end
    farthest = int(lengths.max()) - 1 if spec.column_segments else DISTANCES
    packed, units = list[Ints](), list[Ints]()

    def add(source: Ints, target: Ints, segment: Ints | int, strength: int) -> None:
        segments = np.zeros_like(source) + segment
        packed.append(key.pack(source, target, np.zeros_like(source), segments))
        units.append(np.full(len(source), strength))

    for distance in range(1, farthest + 1):
        a = np.flatnonzero(left > distance)
        b = a + distance
        strength = increment(distance)
        if distance <= DISTANCES:
            segment = segment_of(spec, distance)
            add(neurons.own[a], neurons.own[b], segment, strength)
            if len(neurons.anywhere):
                add(neurons.anywhere[a], neurons.anywhere[b], segment, strength)
        columns = batch.column[b] - batch.column[a]
        near = columns < spec.column_segments
        a, b, columns = a[near], b[near], columns[near]
        add(neurons.own[a], neurons.own[b], spec.column_segments - 1 - columns, strength)
    add(neurons.everything, neurons.anywhere, segment_of(spec, 1), increment(1))
    return _summed(np.concatenate(packed), np.concatenate(units))


def _summed(packed: Ints, units: Ints) -> tuple[Ints, Ints]:
    """Sort by connection, and add up the units of each."""
    if not len(packed):
        return packed, units
    order = np.argsort(packed, kind="stable")
    packed = packed[order]
    first = np.flatnonzero(first_of_runs(packed))
    return packed[first], np.add.reduceat(units[order], first)


def _names(batch: TokenSequences, neurons: _Neurons, known: Tokeniser) -> Names:
    used = np.unique(np.concatenate([batch.token, batch.home]))
    numbers = known.ids[used].tolist()
    named = {number: known.names[token] for number, token in zip(numbers, used, strict=True)}
    concepts = set(np.unique(neurons.concept).tolist())
    return named | {number: name for name, number in RESERVED.items() if number in concepts}
