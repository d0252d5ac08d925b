"""Rows on their way to a reader."""

import numpy as np
import pytest

from giaann_p2p.model.delta import EMPTY, total
from giaann_p2p.model.learn import learn
from giaann_p2p.model.rows import DeltaRows, Neuron, Question
from giaann_p2p.store.codec.parcel import Limits, decode
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.helpers import SMALL, assert_same, built
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


def test_what_travels_is_what_was_read(store: Store) -> None:
    for neurons in (NEURONS, NEURONS[3:9], NEURONS[5:6], NEURONS[::-1]):
        received = DeltaRows(decode(store.rows(neurons), LIMITS))
        for neuron, row in zip(neurons, store.read(Question(neurons)), strict=True):
            assert_row(received.read(Question([neuron]))[0], row)


def test_all_rows_are_all_there_is(store: Store) -> None:
    assert_same(decode(store.rows(NEURONS), LIMITS), WHOLE)


def test_neurons_asked_twice_or_unknown_are_sent_once_or_not(store: Store) -> None:
    stranger = Neuron(1, 2)
    assert store.rows([NEURONS[0], stranger, NEURONS[0]]) == store.rows(NEURONS[:1])
    assert_same(decode(store.rows([stranger]), LIMITS), EMPTY)
    assert_same(decode(store.rows([]), LIMITS), EMPTY)


def test_a_target_is_no_row(store: Store) -> None:
    received = decode(store.rows(NEURONS[:1]), LIMITS)
    answers = DeltaRows(received).read(Question(NEURONS))
    assert [answer is not None for answer in answers] == [True] + [False] * (len(NEURONS) - 1)
