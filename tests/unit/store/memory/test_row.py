"""Rows on their way to a reader."""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from giaann_p2p.model.delta import total
from giaann_p2p.model.learn import learn
from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.codec.sheaf import SheafRows, decode
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.helpers import SMALL, built
from tests.unit.store.memory.test_columns import SENTENCES, assert_row

LIMITS = Limits(SMALL.branches, SMALL.segments, 1000, 10000)
WHOLE = total([learn(built(*SENTENCES), SMALL)] * 2)
NEURONS = list(map(Neuron, WHOLE.concept.tolist(), WHOLE.feature.tolist()))


@pytest.fixture
def store() -> Store:
    store = Store.in_memory(SMALL, Layout(shards=4))
    store.hold(range(4))
    for chunk in range(2):
        delta = learn(built(*SENTENCES), SMALL)
        store.apply([Update(bytes(16), chunk, np.arange(4, dtype=np.uint16), delta)])
    return store


def told(store: Store, neurons: Sequence[Neuron]) -> SheafRows:
    """Return rows as a reader gets them."""
    concept, feature = zip(*neurons, strict=True) if neurons else ((), ())
    data = store.rows(np.array(concept, np.uint64), np.array(feature, np.uint64))
    return decode(data, LIMITS)


def test_what_travels_is_what_was_read(store: Store) -> None:
    for neurons in (NEURONS, NEURONS[3:9], NEURONS[5:6], NEURONS[::-1]):
        received = told(store, neurons)
        for neuron, row in zip(neurons, store.read(Question(neurons)), strict=True):
            assert_row(received.read(Question([neuron]))[0], row)


def test_neurons_asked_twice_or_unknown_are_sent_once_or_not(store: Store) -> None:
    stranger = Neuron(1, 2)
    asked = [NEURONS[0], stranger, NEURONS[0]]
    assert told(store, asked).neurons == {NEURONS[0]}
    assert [row is not None for row in told(store, asked).read(Question(asked))] == [1, 0, 1]
    assert not told(store, [stranger]).neurons
    assert not told(store, []).neurons


def test_a_target_is_no_row(store: Store) -> None:
    answers = told(store, NEURONS[:1]).read(Question(NEURONS))
    assert [answer is not None for answer in answers] == [True] + [False] * (len(NEURONS) - 1)


@pytest.mark.parametrize("seed", range(6))
def test_rows_travel_whatever_is_merged_wide_or_let_go(seed: int) -> None:
    rng = random.Random(seed)
    store = Store.in_memory(SMALL, Layout(shards=4))
    store.hold(range(4))
    every = np.arange(4, dtype=np.uint16)
    for chunk in range(6):
        delta = learn(built(*rng.sample(SENTENCES, 2)), SMALL)
        if rng.random() < 0.5:
            factor = rng.choice([1, 1 << 15])
            delta = replace(delta, strength=delta.strength * factor)
        store.apply([Update(bytes(16), chunk, every, delta)])
        if rng.random() < 0.4:
            store.content(rng.randrange(4))  # it is merged for that
        if rng.random() < 0.2:
            shard = rng.randrange(4)
            store.drop([shard])
            store.hold([shard])
        asked = rng.sample(NEURONS, rng.randrange(1, len(NEURONS)))
        received = told(store, asked)
        for neuron, row in zip(asked, store.read(Question(asked)), strict=True):
            (found,) = received.read(Question([neuron]))
            assert_row(found, row if row and row.count else None)
