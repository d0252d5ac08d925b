"""The tagger's numbers are the same to the last bit, however they are computed."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from giaann_p2p.errors import PipelineError
from giaann_p2p.model import english, tagger_layers, token_types
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.tagger_layers import TaggerLayers
from giaann_p2p.model.tagger_tables import (
    ACTIVATION_BITS,
    PIECES,
    UNIT,
    WEIGHT_BITS,
    Embedding,
    Floats,
    Layer,
    TaggerTables,
    checked,
)
from giaann_p2p.model.token_types import Tokens, TokenTypes, tokens_of
from tests.helpers import DATA

LOGITS = "7d087abc77d2470b5956fa7a843d307e"
"""The digest of wiki's logits: the same on every machine."""


@pytest.fixture(scope="module")
def tables(spec: ModelSpec) -> TaggerTables:
    return english.pipeline(spec).tables


@pytest.fixture(scope="module")
def sentences(spec: ModelSpec) -> list[Tokens]:
    lines = (DATA / "wiki.txt").read_text().splitlines()
    with english.pipeline(spec).words.open() as nlp:
        return [tokens_of([nlp.make_doc(line)]) for line in lines if line]


def logits(
    layers: TaggerLayers, sentences: Sequence[Tokens], batch: int = 64, order: int = 1
) -> Floats:
    """Return the logits of all sentences, in batches of so many, from the last if order is -1."""
    types, parts = TokenTypes(layers), []
    for first in range(0, len(sentences), batch):
        some = sentences[::order][first : first + batch]
        lengths = list(map(len, some))
        found = np.asarray(layers.logits(*types.of(np.concatenate(some)), lengths))
        parts += np.split(found, np.cumsum(list(map(len, some)))[:-1])
    return np.concatenate(parts[::order])


def digest(array: Floats) -> str:
    return hashlib.blake2b(array.astype("<f8").tobytes(), digest_size=16).hexdigest()


def test_the_numbers_are_those_that_are_written_down(
    tables: TaggerTables, sentences: list[Tokens]
) -> None:
    found = logits(TaggerLayers(tables), sentences)
    assert digest(found) == LOGITS
    assert np.abs(found).max() < 1 << 53


@pytest.mark.parametrize("batch", [1, 7, 97, 4096])
@pytest.mark.parametrize("device", ["cpu", None])
def test_no_batch_no_order_and_no_library_makes_a_difference(
    batch: int, device: str | None, tables: TaggerTables, sentences: list[Tokens]
) -> None:
    layers = TaggerLayers(tables, device)
    assert digest(logits(layers, sentences, batch)) == LOGITS
    assert digest(logits(layers, sentences, batch, -1)) == LOGITS


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("number", [1, 2])
def test_no_number_of_threads_makes_a_difference(
    number: int, tables: TaggerTables, sentences: list[Tokens]
) -> None:
    torch.set_num_threads(number)
    assert digest(logits(TaggerLayers(tables), sentences)) == LOGITS


class Reblocked(TaggerLayers):
    """Multiplies with the terms of each sum in another order, and in two halves."""

    def _product(self, inputs: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        order = torch.randperm(len(weight), generator=torch.Generator().manual_seed(len(weight)))
        one, other = order[: len(weight) // 3], order[len(weight) // 3 :]
        return inputs[:, one] @ weight[one] + inputs[:, other] @ weight[other]


def test_no_order_of_addition_makes_a_difference(
    tables: TaggerTables, sentences: list[Tokens]
) -> None:
    assert digest(logits(Reblocked(tables), sentences)) == LOGITS


def test_floating_point_would_make_one(tables: TaggerTables, sentences: list[Tokens]) -> None:
    """So that the tests above can fail: weights that are not whole are told apart by them."""
    broken = tables._replace(weight=tables.weight / 3)
    assert digest(logits(TaggerLayers(broken), sentences)) != digest(
        logits(Reblocked(broken), sentences)
    )


@pytest.mark.parametrize("device", ["cpu", None])
def test_what_is_far_off_counts_as_64(device: str | None, tables: TaggerTables) -> None:
    """Else sums of squares could need rounding."""
    layers, one = TaggerLayers(tables, device), float(1 << ACTIVATION_BITS + WEIGHT_BITS)

    def normed(farthest: float) -> list[float]:
        sums = np.zeros(PIECES * layers.width)
        sums[:2] = farthest * one, 32 * one
        gain = np.full(layers.width, UNIT)
        layer = Layer(np.zeros((1, len(sums))), sums, gain, np.zeros(layers.width))
        found: list[float] = layers._normed(
            layers._zeros(1, len(sums)), layers._layer(layer)
        ).tolist()
        return found

    assert normed(63) != normed(64) == normed(65) == normed(900)


def test_weights_whose_sums_could_be_rounded_are_refused(tables: TaggerTables) -> None:
    assert checked(tables) is tables
    for grown in (
        tables._replace(weight=tables.weight * 4096.0),
        tables._replace(first=tables.first._replace(weight=tables.first.weight * 4096.0)),
        tables._replace(
            windows=[layer._replace(weight=layer.weight * 4096.0) for layer in tables.windows]
        ),
        tables._replace(bias=tables.bias + float(1 << 53)),
    ):
        with pytest.raises(PipelineError, match="too large for exact sums"):
            checked(grown)


def test_the_digest_covers_every_number_and_name(tables: TaggerTables) -> None:
    def changed(layer: Layer) -> list[Layer]:
        return [layer._replace(**{name: getattr(layer, name) + 1}) for name in Layer._fields]

    rows, seed = tables.embeddings[2]
    others = [
        tables._replace(embeddings=[*tables.embeddings[:2], Embedding(rows + 1, seed)]),
        tables._replace(embeddings=[*tables.embeddings[:2], Embedding(rows, seed + 1)]),
        *[tables._replace(first=layer) for layer in changed(tables.first)],
        *[tables._replace(windows=[layer]) for layer in changed(tables.windows[0])],
        tables._replace(windows=tables.windows[::-1]),
        tables._replace(weight=tables.weight + 1),
        tables._replace(bias=tables.bias + 1),
        tables._replace(tags=tables.tags[1:]),
    ]
    digests = {other.digest for other in [tables, *others]}
    assert len(digests) == 1 + len(others)


def test_only_so_many_types_are_remembered(tables: TaggerTables, sentences: list[Tokens]) -> None:
    layers = TaggerLayers(tables)
    known, few, none = TokenTypes(layers), TokenTypes(layers, 60), TokenTypes(layers, 1)
    for sentence in sentences[:40]:
        table, numbers = known.of(sentence)
        for types in (few, none):
            other, others = types.of(sentence)
            assert (other[others] == table[numbers]).all()
    assert len(few._numbers) <= 60
    assert len(none._numbers) <= max(map(len, sentences))
    assert len(known._numbers) > 300


def test_a_type_is_computed_once(
    tables: TaggerTables, sentences: list[Tokens], monkeypatch: pytest.MonkeyPatch
) -> None:
    layers, computed = TaggerLayers(tables), list[int]()
    types, compute = TokenTypes(layers), layers.types

    def noted(attributes: Tokens) -> Any:  # noqa: ANN401  (an array of the layers' own)
        computed.append(len(attributes))
        return compute(attributes)

    monkeypatch.setattr(layers, "types", noted)
    for _ in range(2):
        types.of(np.concatenate(sentences))
    assert computed == [len(types._numbers)]
    assert token_types.MOST >= 1 << 16


@pytest.mark.parametrize("most", [1, 100])
def test_sentences_are_computed_in_blocks_of_any_size(
    most: int, tables: TaggerTables, sentences: list[Tokens], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tagger_layers, "_AT_ONCE", {"cpu": most})
    assert digest(logits(TaggerLayers(tables), sentences)) == LOGITS


def test_no_sentences_and_empty_ones(tables: TaggerTables, sentences: list[Tokens]) -> None:
    layers = TaggerLayers(tables)
    table, numbers = TokenTypes(layers).of(sentences[0])
    tags = layers.tags(table, numbers, [len(numbers)]).tolist()
    assert layers.tags(table, numbers, [0, len(numbers), 0]).tolist() == tags
    assert layers.tags(table, numbers[:0], [0, 0]).tolist() == []
