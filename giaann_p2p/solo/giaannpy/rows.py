"""Turns the entries of a database's tensors into deltas.

Here a feature is written as a token's number, and the prime feature as -1.
"""

from dataclasses import dataclass

import numpy as np

from giaann_p2p.model.delta import EMPTY, ConnectionKey, Delta, unique_neurons
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.sequence import Ids, Ints, Names
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.ids import RESERVED
from giaann_p2p.model.subwords.tokeniser import Tokeniser


@dataclass(frozen=True, eq=False)
class Rows:
    """V neurons that occurred, and M connections, some of them to neurons without a row here."""

    home: Ints
    """Shape [V]: the concept token of each neuron's column."""
    feature: Ints
    """Shape [V]: each neuron's token, or -1."""
    count: Ints
    """Shape [V]: how often each neuron occurred."""
    source: Ints
    """Shape [2, M]: home and feature of each connection's source."""
    target: Ints
    """Shape [2, M]: home and feature of each connection's target."""
    segment: Ints
    """Shape [M]: each connection's segment, as the model numbers segments."""
    units: Ints
    """Shape [M]: each connection's strength in units."""


def own_rows(rows: Rows, known: Tokeniser, spec: ModelSpec) -> Delta:
    """Return rows as a delta."""
    connections = len(rows.units)
    home = np.concatenate([rows.source[0], rows.target[0], rows.home])
    token = np.concatenate([rows.source[1], rows.target[1], rows.feature])
    if not len(home):
        return EMPTY
    concept, feature, slot = unique_neurons(known.ids[home], ids_of(token, known))
    source, target, at = np.split(slot, [connections, 2 * connections])
    count = np.zeros(len(concept), np.int64)
    count[at] = rows.count
    key = ConnectionKey.for_sizes(len(concept), spec.branches, spec.segments)
    packed = key.pack(source, target, np.zeros_like(source), rows.segment)
    order = np.argsort(packed, kind="stable")
    used = np.unique(np.concatenate([home, token[token >= 0]]))
    return key.delta(concept, feature, count, packed[order], rows.units[order], _names(used, known))


def delimiters(concept: int, counts: dict[int, int], known: Tokeniser) -> Delta:
    """Return the neurons of a reserved concept, with the counts of delimiters by token."""
    if not counts:
        return EMPTY
    tokens = np.array(list(counts), np.int64)
    order = np.argsort(known.ids[tokens])
    size = len(tokens)
    return Delta(
        np.full(size, concept, np.uint64),
        known.ids[tokens][order],
        np.array(list(counts.values()), np.int64)[order],
        np.zeros(size + 1, np.int64),
        EMPTY.target,
        EMPTY.branch,
        EMPTY.segment,
        EMPTY.strength,
        _names(tokens, known) | reserved_names(concept),
    )


def ids_of(token: Ints, known: Tokeniser) -> Ids:
    """Return the feature of each token; -1 becomes the prime feature."""
    return np.where(token < 0, np.uint64(PRIME), known.ids[token])


def reserved_names(concept: int) -> Names:
    """Return the name of a reserved concept, by its number."""
    return {number: name for name, number in RESERVED.items() if number == concept}


def _names(tokens: Ints, known: Tokeniser) -> Names:
    numbers = known.ids[tokens].tolist()
    return {number: known.names[at] for number, at in zip(numbers, tokens.tolist(), strict=True)}
