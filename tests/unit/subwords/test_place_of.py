"""The neuron of a chosen token: the one that followed most often in the own rows."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.rows import (
    Answer,
    DeltaRows,
    Name,
    Neuron,
    Question,
    Row,
    Rows,
    empty_row,
    run,
)
from giaann_p2p.model.spec import increment
from giaann_p2p.model.subwords.evidence import CountedRows, Evidence, Place, needed
from giaann_p2p.model.subwords.ids import ANY
from giaann_p2p.model.subwords.learn import learn_tokens
from giaann_p2p.model.subwords.mix import place_of
from tests.helpers_subwords import (
    RECOMMENDED,
    before,
    connections_of,
    places_of,
    sequences_named,
)


class Told:
    """Rows as a liar tells them."""

    def __init__(self, rows: Rows, lie: Callable[[Row], Row]) -> None:
        self._rows, self._lie = rows, lie

    def read(self, question: Question) -> Answer:
        return [row and self._lie(row) for row in self._rows.read(question)]


@pytest.fixture(scope="module")
def rows() -> Rows:
    return DeltaRows(learn_tokens(sequences_named("wiki"), RECOMMENDED))


def evidence_for(last: list[Place], rows: Rows) -> Evidence:
    evidence = Evidence(CountedRows(RECOMMENDED))
    run(evidence.need(needed(evidence, last)), rows)
    return evidence


def votes(evidence: Evidence, last: list[Place]) -> dict[int, Counter[tuple[int, bool]]]:
    """Return how often each (home, is prime) followed, by token."""
    found: dict[int, Counter[tuple[int, bool]]] = {}
    for distance, place in enumerate(last, 1):
        row = evidence.followers(evidence.own(place))
        for (at, token), neurons in connections_of(row.row).items() if row else ():
            for (concept, feature), times in neurons.items() if at == distance else ():
                (home,) = evidence.known.tokens_of(np.array([concept], np.uint64)).tolist()
                prime = evidence.known.ids[token] != feature
                found.setdefault(token, Counter())[home, bool(prime)] += times
    return found


def test_the_neuron_that_followed_most_often_is_taken_or_the_smallest_of_equals(rows: Rows) -> None:
    ties = 0
    for sequence in sequences_named("wiki")[:12]:
        places = places_of(sequence)
        for at in range(6, len(places), 3):
            last = before(places, at)
            evidence = evidence_for(last, rows)
            for token, hits in votes(evidence, last).items():
                most = max(hits.values())
                best = [neuron for neuron, times in hits.items() if times == most]
                home, prime = min(best, key=lambda neuron: (neuron[0], not neuron[1]))
                assert place_of(evidence, token, last) == Place(token, home, prime)
                ties += len(best) > 1 and len(hits) > len(best)
            assert place_of(evidence, 199_997, last) is None
    assert ties > 0


@pytest.mark.parametrize("concept", [ANY, 1])
def test_a_liars_targets_without_a_column_are_no_place(rows: Rows, concept: int) -> None:
    last = before(places_of(sequences_named("wiki")[3:4]), 33)
    honest = evidence_for(last, rows)
    (token, *_) = votes(honest, last)
    assert place_of(honest, token, last) is not None

    def nowhere(row: Row) -> Row:
        return replace(row, target_concept=np.full_like(row.target_concept, concept))

    assert place_of(evidence_for(last, Told(rows, nowhere)), token, last) is None


class One:
    """One row, of whichever neuron is asked for that is not of any column."""

    def __init__(self, row: Row) -> None:
        self._row = row

    def read(self, question: Question) -> Answer:
        return [None if neuron.concept == ANY else self._row for neuron in question.neurons]


def test_of_equal_neurons_of_one_column_the_prime_one_is_taken() -> None:
    token = 2057
    word = int(Evidence(CountedRows(RECOMMENDED)).known.ids[token])
    row = replace(
        empty_row(Neuron(word, PRIME), Name("a noun", None)),
        target_concept=np.array([word, word], np.uint64),
        target_feature=np.array([word, PRIME], np.uint64),
        target=np.arange(2),
        segment=np.full(2, RECOMMENDED.segments - 1, np.uint8),
        strength=np.full(2, increment(1)),
    )
    last = [Place(token, token, prime=True)]
    assert place_of(evidence_for(last, One(row)), token, last) == last[0]
