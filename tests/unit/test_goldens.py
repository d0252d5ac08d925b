"""The reference's own results, connection by connection and token by token (tests/goldens)."""

import csv
import gzip
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from giaann_p2p import Brain
from giaann_p2p.model.activation import Batch
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.evaluate import names_of
from giaann_p2p.model.generate import Mind, best
from giaann_p2p.model.manner import Timing
from giaann_p2p.model.rows import DeltaRows, Question, run
from giaann_p2p.model.sequence import Sequences
from giaann_p2p.model.spec import ModelSpec
from tests.helpers import DATA, GOLDENS, row_of
from tests.helpers_plain import connections_of, positions_of, remembered, shape_of
from tests.plain.learn import Connection
from tests.plain.sequence import Neuron

WIKI = DATA / "wiki.txt"


@cache
def golden_connections(name: str) -> dict[Connection, float]:
    with gzip.open(GOLDENS / name / "connections.tsv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    found = {}
    for concept, feature, to_concept, to_feature, branch, segment, strength in rows:
        source = Neuron(concept, None if feature == "*" else feature)
        target = Neuron(to_concept, None if to_feature == "*" else to_feature)
        found[Connection(source, target, int(branch), int(segment))] = float(strength)
    assert len(found) == len(rows)
    return found


def golden_predictions(name: str) -> list[dict[str, Any]]:
    lines = (GOLDENS / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def predicted_words(sequence: Sequences, rows: DeltaRows, timing: Timing, own: bool) -> list[str]:
    """Predict what follows the first S tokens, from the true ones or from its own."""
    spec, names = ModelSpec(), names_of(sequence)
    mind, words = Mind(Batch(spec), [timing]), []
    for name in names[: spec.seed_tokens]:
        mind.hear(row_of(rows, name))
    for name in names[spec.seed_tokens :]:
        choice = run(best(mind), rows)
        if choice is None:
            break
        (row,) = rows.read(Question([choice.neuron]))
        assert row is not None
        words.append(row.name.word)
        mind.hear(row if own else row_of(rows, name))
    return words


def matched(golden: list[dict[str, Any]], batch: Sequences) -> Iterator[tuple[Any, Sequences]]:
    """Pair each golden with the sequence of its text."""
    sequences = {tuple(s.words): s for s in batch}
    for line in golden:
        words = tuple(entry["target"] for entry in line["predicted"])
        yield line, next(s for key, s in sequences.items() if key[: len(words)] == words)


@pytest.fixture(scope="module")
def brain() -> Brain:
    brain = Brain(ModelSpec(), device="cpu")
    brain.train(WIKI)
    return brain


@pytest.mark.parametrize(
    ("name", "count", "strength"), [("quick", 5714, 10050.68), ("wiki", 83755, 139013.5)]
)
def test_every_connection_is_the_references(
    name: str, count: int, strength: float, request: pytest.FixtureRequest, spec: ModelSpec
) -> None:
    golden = golden_connections(f"{name}12")
    delta: Delta = request.getfixturevalue(f"{name}_delta")
    learned = connections_of(delta)
    increments = remembered(
        map(positions_of, request.getfixturevalue(name)), shape_of(spec)
    ).increments
    assert len(golden) == count
    assert sum(golden.values()) == pytest.approx(strength, abs=0.05)
    assert learned.keys() == golden.keys()
    # Each increment was rounded to 2^-16, and the golden strength to four decimals.
    too_far = {
        key: (units / 2**16, golden[key])
        for key, units in learned.items()
        if abs(units / 2**16 - golden[key]) > increments[key] * 2**-17 + 5e-5 + 1e-9
    }
    assert not too_far


@pytest.mark.parametrize(("name", "own"), [("exact", False), ("generated", True)])
def test_exact_predicts_the_references_word_at_every_place(
    name: str, own: bool, wiki: Sequences, wiki_rows: DeltaRows
) -> None:
    golden = golden_predictions(f"wiki12/predictions.{name}.jsonl")
    assert len(golden) == 138
    for line, sequence in matched(golden, wiki):
        wanted = [p["predicted"] for p in line["predicted"] if p["index"] >= 12]
        assert predicted_words(sequence, wiki_rows, Timing.EXACT, own)[: len(wanted)] == wanted


def test_quick_is_predicted_as_the_reference_predicts_it(
    quick: Sequences, quick_delta: Delta
) -> None:
    golden = golden_predictions("quick12/predictions.targets.jsonl")
    assert len(golden) == 10
    for line, sequence in matched(golden, quick):
        wanted = [p["predicted"] for p in line["predicted"] if p["index"] >= 12]
        assert predicted_words(sequence, DeltaRows(quick_delta), Timing.EXACT, False) == wanted


def test_none_predicts_the_references_words_nearly_everywhere(
    wiki: Sequences, wiki_rows: DeltaRows
) -> None:
    same = right = count = 0
    for line, sequence in matched(golden_predictions("wiki12/predictions.none.jsonl"), wiki):
        entries = [p for p in line["predicted"] if p["index"] >= 12]
        words = predicted_words(sequence, wiki_rows, Timing.NONE, False)
        for word, entry in zip(words, entries, strict=True):
            count += 1
            same += word == entry["predicted"]
            right += word == entry["target"]
    assert count == 1904
    assert right / count >= 0.990
    assert same / count >= 0.995


def test_the_columns_are_the_references(wiki: Sequences) -> None:
    for line, sequence in matched(golden_predictions("wiki12/predictions.exact.jsonl"), wiki):
        assert [name.concept for name in names_of(sequence)] == line["columns"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("timing", "feed", "least"),
    [("exact", "true", 0.9985), ("none", "true", 0.990), ("exact", "own", 0.998)],
)
def test_accuracy_on_wiki(brain: Brain, timing: str, feed: str, least: float) -> None:
    score = brain.evaluate(WIKI, timing=timing, feed=feed)
    assert score.accuracy >= least
    assert (score.sentences, score.seeded) == (138, 1656)
    assert score.predicted + score.unreached == 1904


@pytest.mark.slow
def test_recall_of_wiki_from_the_first_words(brain: Brain) -> None:
    recalled = brain.recall(WIKI)
    assert recalled.sentences > 130
    assert recalled.share >= 0.95
