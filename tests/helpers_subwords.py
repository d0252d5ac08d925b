"""The bridge to `tests.plain.subwords`, and the goldens of the profile "subwords"."""

import csv
import gzip
import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.ids import PRIME as PRIME_ID
from giaann_p2p.model.rows import Row, Rows, run
from giaann_p2p.model.spec import ModelSpec, increment
from giaann_p2p.model.subwords.columns import Delimiter
from giaann_p2p.model.subwords.evidence import Evidence, Place, needed
from giaann_p2p.model.subwords.ids import ANY, DETERMINISTIC, PROBABILISTIC
from giaann_p2p.model.subwords.mix import TokenChoice, mix
from giaann_p2p.model.subwords.parse import TextParser
from giaann_p2p.model.subwords.sequence import TokenSequences
from giaann_p2p.model.subwords.spec import reference_spec, subword_spec
from giaann_p2p.model.subwords.texts import document_texts
from giaann_p2p.model.subwords.tokeniser import tokeniser
from tests.helpers import DATA, GOLDENS
from tests.plain.subwords import PRIME, Connection, Memory, Neuron, Position, learn

KINDS = {"d": Delimiter.DETERMINISTIC, "p": Delimiter.PROBABILISTIC, "": Delimiter.NONE}
LETTERS = {kind: letter for letter, kind in KINDS.items()} | {Delimiter.CANDIDATE: ""}
REFERENCE, RECOMMENDED = reference_spec(), subword_spec()


def golden_lines(name: str) -> list[dict[str, Any]]:
    lines = (GOLDENS / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def golden_connections(name: str) -> dict[Connection, float]:
    with gzip.open(GOLDENS / name / "connections.tsv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    found = {}
    for concept, feature, to_concept, to_feature, segment, strength, _ in rows:
        source, target = neuron_named(concept, feature), neuron_named(to_concept, to_feature)
        found[Connection(source, target, int(segment))] = float(strength)
    assert len(found) == len(rows)
    return found


def neuron_named(concept: str, feature: str) -> Neuron:
    return Neuron(int(concept), PRIME if feature == "*" else int(feature))


@cache
def text_parser() -> TextParser:
    return TextParser(RECOMMENDED)


@cache
def sequences_named(name: str) -> TokenSequences:
    """Parse a text of the reference in one piece."""
    data = (DATA / f"{name}.txt").read_bytes()
    (parsed,) = text_parser().parse([list(document_texts([data], name, RECOMMENDED))])
    return parsed.sequences


def connections_of(row: Row) -> dict[tuple[int, int], dict[tuple[int, int], int]]:
    """Return how often each (concept, feature) followed, by distance and token."""
    found: dict[tuple[int, int], dict[tuple[int, int], int]] = {}
    word = np.where(row.target_feature == PRIME_ID, row.target_concept, row.target_feature)
    token = tokeniser().tokens_of(word).tolist()
    ids = list(zip(row.target_concept.tolist(), row.target_feature.tolist(), strict=True))
    fields = (row.target.tolist(), row.segment.tolist(), row.strength.tolist())
    for at, segment, strength in zip(*fields, strict=True):
        distance = RECOMMENDED.segments - segment
        neurons = found.setdefault((distance, token[at]), {})
        neurons[ids[at]] = strength // increment(distance)
    return found


def positions_of(sequence: TokenSequences) -> list[Position]:
    """Return a batch of one as the yardstick writes it."""
    neurons = neurons_read(sequence)
    kinds = [LETTERS[Delimiter(kind)] for kind in sequence.delimiter.tolist()]
    return list(map(Position, neurons, sequence.column.tolist(), kinds))


def neurons_read(sequence: TokenSequences) -> list[Neuron]:
    """Return the neurons of a batch of one."""
    features = np.where(sequence.prime, PRIME, sequence.token).tolist()
    return list(map(Neuron, sequence.home.tolist(), features))


def batch_of(corpus: Sequence[Sequence[Position]]) -> TokenSequences:
    """Return the yardstick's sequences as a batch.

    A prime neuron is named at its own position. Other tokens are named at -1, because the yardstick
    does not state which token is the noun of their column.
    """
    rows: list[tuple[int, ...]] = []
    for sequence in corpus:
        for at, (neuron, column, kind) in enumerate(sequence):
            named_at = at if neuron.feature == PRIME else -1
            rows.append((neuron.token, neuron.home, column, named_at, KINDS[kind]))
    token, home, column, named, kind = np.array(rows, np.int64).reshape(-1, 5).T
    starts = np.cumsum([0, *map(len, corpus)]).astype(np.int64)
    return TokenSequences(starts, token, home, column, named, kind.astype(np.uint8))


def remembered(corpus: Iterable[Sequence[Position]], spec: ModelSpec) -> Memory:
    memory = Memory(spec.column_segments)
    for sequence in corpus:
        learn(memory, sequence)
    return memory


def learned(delta: Delta, spec: ModelSpec) -> Memory:
    """Return a delta as the yardstick keeps it."""
    known, memory = tokeniser(), Memory(spec.column_segments)
    homes = known.tokens_of(delta.concept).tolist()
    neurons = list(map(Neuron, homes, known.tokens_of(delta.feature).tolist()))
    concept = delta.concept.tolist()
    for at, neuron, count in zip(concept, neurons, delta.count.tolist(), strict=True):
        if at in (DETERMINISTIC, PROBABILISTIC):
            memory.delimiters["d" if at == DETERMINISTIC else "p", neuron.feature] = count
        elif at != ANY:
            memory.occurrences[neuron] = count
        elif neuron.feature != PRIME:
            memory.tokens[neuron.feature] = count
    fields = (delta.source, delta.target, delta.segment, delta.strength)
    everything = 0
    for a, b, segment, units in zip(*(field.tolist() for field in fields), strict=True):
        assert (concept[a] == ANY) == (concept[b] == ANY)
        distance = spec.segments - segment
        if concept[a] != ANY:
            memory.connections[Connection(neurons[a], neurons[b], segment)] = units
        elif neurons[a].feature == PRIME:  # the row of EVERYTHING repeats how often they occur
            assert (units, distance) == (5 * 2**16 * memory.tokens[neurons[b].feature], 1)
            everything += memory.tokens[neurons[b].feature]
        else:
            pair = neurons[a].feature, neurons[b].feature, distance
            memory.pairs[pair], rest = divmod(units, round(10 * 2**16 / (distance + 1)))
            assert not rest
    assert everything == sum(memory.tokens.values())
    return memory


tokens = st.sampled_from([13, 11, 290, 2223, 13225])
"""So few tokens that each meets all others."""


@st.composite
def random_positions(draw: st.DrawFn, most: int = 14) -> list[Position]:
    """Draw a sequence: columns follow one another, and one concept may lead several of them."""
    found = []
    column, home = 0, draw(tokens)
    for _ in range(draw(st.integers(1, most))):
        if draw(st.integers(0, 3)) == 0:
            column, home = column + 1, draw(tokens)
        feature = draw(st.one_of(st.just(PRIME), tokens))
        kind = "" if feature == PRIME else draw(st.sampled_from(["", "d", "p"]))
        found.append(Position(Neuron(home, feature), column, kind))
    return found


random_sequences = st.lists(random_positions(), max_size=6)
random_specs = st.sampled_from([REFERENCE, RECOMMENDED, subword_spec(column_segments=2)])


def place_of(neuron: Neuron) -> Place:
    """Return a neuron as the read-outs write it."""
    return Place(neuron.token, neuron.home, neuron.feature == PRIME)


def places_of(sequence: TokenSequences) -> list[Place]:
    """Return the tokens of a batch of one, all with their columns."""
    return list(map(place_of, neurons_read(sequence)))


def before(places: Sequence[Place], at: int) -> list[Place]:
    """Return the tokens that a choice at a position depends on, the nearest first."""
    return list(places[max(0, at - 5) : at])[::-1]


def chosen(evidence: Evidence, last: Sequence[Place], rows: Rows) -> TokenChoice | None:
    """Read the rows that a choice depends on, and choose."""
    run(evidence.need(needed(evidence, last)), rows)
    return mix(evidence, last)
