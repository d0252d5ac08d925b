"""docs/concepts.md is true: the sentence is learned as it says."""

import re
from pathlib import Path

import pytest

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.learn import learn
from giaann_p2p.model.parse import Parser
from giaann_p2p.model.sequence import Sequences
from giaann_p2p.model.spec import UNITS, ModelSpec
from giaann_p2p.store.layout import Layout
from tests.helpers import sequences_of

PAGE = (Path(__file__).parents[2] / "docs/concepts.md").read_text()
TABLES = re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def sentence(parser: Parser) -> Sequences:
    found = re.search(r"^> (.*)$", PAGE, re.MULTILINE)
    assert found
    return sequences_of(found[1], parser)


@pytest.fixture(scope="module")
def learned(sentence: Sequences, spec: ModelSpec) -> Delta:
    return learn(sentence, spec)


def cells(table: str) -> list[list[str]]:
    """Return a table's rows without the first two."""
    rows = table.splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def neuron(text: str) -> tuple[int, int]:
    """Return the neuron that the page calls `honey` or ``summer `the` ``."""
    concept, _, feature = text.partition(" ")
    return word_id(concept), word_id(feature.strip("`")) if feature else PRIME


def test_the_columns_and_their_neurons(sentence: Sequences) -> None:
    told = [
        (word_id(concept.strip("`")), word_id(word[1:-1]) if word[0] == "`" else PRIME)
        for concept, words in cells(TABLES[0])
        for word in words.split()
    ]
    places = zip(sentence.concept.tolist(), sentence.feature.tolist(), strict=True)
    assert told == list(places)


def test_the_connections(learned: Delta) -> None:
    names = list(zip(learned.concept.tolist(), learned.feature.tolist(), strict=True))
    fields = (learned.source, learned.target, learned.segment, learned.strength)
    found = {
        (names[source], names[target], segment): units / UNITS
        for source, target, segment, units in zip(*(f.tolist() for f in fields), strict=True)
    }
    for source, target, _, strength, *segments in cells(TABLES[1]):
        numbers = [int(text.split()[0]) for text in segments if text[0].isdigit()]
        there = {s for (a, b, s) in found if (a, b) == (neuron(source), neuron(target))}
        assert there == set(numbers)
        for segment in numbers:
            value = found[neuron(source), neuron(target), segment]
            assert round(value, 4) == float(strength)
    assert f"{int((learned.count > 0).sum())} rows and {len(found)} connections" in PAGE


def test_the_shards() -> None:
    layout = Layout(shards=16)
    for concept, shard in re.findall(r"`(\w+)` (?:is in shard|in) (\d+)", PAGE):
        assert layout.shard_of(word_id(concept), PRIME) == int(shard)
