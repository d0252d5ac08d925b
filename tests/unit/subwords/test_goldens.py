"""The reference's own results on its own texts, connection by connection (tests/goldens)."""

import json

import numpy as np
import pytest

from giaann_p2p.model.subwords.ids import ANY, EVERYTHING
from giaann_p2p.model.subwords.learn import learn_tokens
from giaann_p2p.model.subwords.tokeniser import tokeniser
from tests.helpers import GOLDENS
from tests.helpers_subwords import (
    LETTERS,
    RECOMMENDED,
    REFERENCE,
    golden_connections,
    golden_lines,
    learned,
    neurons_read,
    sequences_named,
)


@pytest.mark.parametrize(("name", "sequences", "tokens"), [("quick", 4, 298), ("wiki", 47, 3900)])
def test_every_token_and_its_column_are_the_references(
    name: str, sequences: int, tokens: int
) -> None:
    batch, texts = sequences_named(name), tokeniser().texts
    golden = golden_lines(f"v2m_{name}/predictions.train.jsonl")
    assert (len(batch), len(batch.token), len(golden)) == (sequences, tokens, sequences)
    for sequence, line in zip(batch, golden, strict=True):
        assert sequence.token.tolist() == line["ids"]
        assert [texts[token] for token in sequence.token.tolist()] == line["tokens"]
        assert sequence.column.tolist() == line["columns"]
        assert [LETTERS[kind] for kind in sequence.delimiter.tolist()] == line["delimiters"]
        neurons = [[n.home, None if n.feature < 0 else n.feature] for n in neurons_read(sequence)]
        assert neurons == line["neurons"]


@pytest.mark.parametrize("name", ["quick", "wiki"])
def test_known_columns_are_those_of_the_goldens(name: str) -> None:
    if name == "wiki":
        for sequence, line in zip(
            sequences_named(name), golden_lines("v2m_wiki/predictions.readout.jsonl"), strict=True
        ):
            assert sequence.named_at.tolist() == line["known_from"]
    for sequence in sequences_named(name):
        assert np.array_equal(sequence.token[sequence.named_at], sequence.home)


@pytest.mark.parametrize(
    ("name", "count", "strength"), [("quick", 5527, 10949.81), ("wiki", 70638, 141702.77)]
)
def test_every_connection_is_the_references(name: str, count: int, strength: float) -> None:
    golden = golden_connections(f"v2m_{name}")
    found = learned(learn_tokens(sequences_named(name), REFERENCE), REFERENCE).connections
    assert len(golden) == count
    assert sum(golden.values()) == pytest.approx(strength, abs=0.01)
    assert found.keys() == golden.keys()
    assert max(abs(units / 2**16 - golden[key]) for key, units in found.items()) < 0.0005


@pytest.mark.parametrize(("name", "certain", "likely"), [("quick", 35, 2), ("wiki", 305, 9)])
def test_the_same_tokens_are_flagged_as_delimiters(name: str, certain: int, likely: int) -> None:
    golden = json.loads((GOLDENS / f"v2m_{name}" / "delimiters.json").read_text())
    found = learned(learn_tokens(sequences_named(name), REFERENCE), REFERENCE).delimiters
    flagged = {kind: sorted(token for one, token in found if one == kind) for kind in "dp"}
    assert flagged == {"d": golden["deterministic"], "p": golden["probabilistic"]}
    assert (len(flagged["d"]), len(flagged["p"])) == (certain, likely)


def test_the_recommended_model_has_fewer_connections() -> None:
    delta = learn_tokens(sequences_named("wiki"), RECOMMENDED)
    everything = delta.find(*EVERYTHING)
    assert everything is not None
    tokens = int(delta.lengths[everything])
    assert delta.connections == 34_074 + tokens
    assert tokens == len(set(sequences_named("wiki").token.tolist()))
    assert delta.count[everything] == 3900
    assert int(delta.lengths[delta.concept == np.uint64(ANY)].sum()) > 0
