"""Numbers of neurons: given once, found one by one and many at a time, in little memory."""

import threading

import numpy as np
import pytest

from giaann_p2p.model import neurons as module
from giaann_p2p.model.hash_table import FREE
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.neurons import Neurons


def pairs(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.integers(0, 1 << 64, count, np.uint64), random.integers(0, 3, count, np.uint64)


def test_numbers_count_up_in_the_order_of_coming() -> None:
    neurons = Neurons()
    concept, feature = pairs(100)
    assert neurons.numbers(concept, feature).tolist() == list(range(100))
    again = neurons.numbers(concept[::-1].copy(), feature[::-1].copy())
    assert again.tolist() == list(range(99, -1, -1))
    assert len(neurons) == 100


def test_growth_moves_nothing() -> None:
    neurons, expected = Neurons(), {}
    for seed in range(30):
        concept, feature = pairs(997, seed)
        for i, number in enumerate(neurons.numbers(concept, feature).tolist()):
            expected[int(concept[i]), int(feature[i])] = number
    assert len(neurons) == len(expected) == 30 * 997
    assert sorted(expected.values()) == list(range(len(expected)))
    named = zip(*[part.tolist() for part in neurons.ids(np.arange(len(neurons)))], strict=True)
    assert list(named) == list(expected)
    for (concept, feature), number in expected.items():
        assert neurons.find(concept, feature) == number


def test_little_of_the_arrays_is_unused() -> None:
    """A neuron takes 8 bytes, a sixteenth more, and a slot of 4 of which 9/16 to 3/4 are used."""
    neurons, words = Neurons(), np.arange(1, 1201, dtype=np.uint64)
    words *= np.uint64(0x9E3779B97F4A7C15)
    for at in range(1, 1201):
        neurons.numbers(np.full(300, words[at - 1]), words[:300])
        assert len(neurons) == 300 * at <= neurons.room <= 300 * at * 17 / 16
        if at > 400:
            assert 8 + 4 / 0.75 < neurons.nbytes / len(neurons) < 8.5 + 4 / 0.56 + 50 / 300


def test_a_concepts_neurons_are_found() -> None:
    neurons = Neurons()
    assert neurons.of_concept(7).tolist() == []
    concept, feature = pairs(1000)
    concept[::3] = 7
    feature[::3] = np.arange(334)
    neurons.numbers(concept, feature)
    assert neurons.of_concept(7).tolist() == list(range(0, 1000, 3))
    assert neurons.of_concept(8).tolist() == []


@pytest.mark.parametrize("count", [1, 32, 33, 700])
def test_some_are_looked_up_whether_known_or_not(count: int) -> None:
    neurons, (concept, feature) = Neurons(), pairs(1000)
    neurons.numbers(concept, feature)
    wanted = np.random.default_rng(count).permutation(1000)[:count]
    other = (wanted % 2).astype(np.uint64)
    found = neurons.look_up(concept[wanted] + other, feature[wanted])
    assert found.dtype == np.uint32
    assert found.tolist() == np.where(other, FREE, wanted).tolist()
    found = neurons.look_up(concept[wanted], feature[wanted] + np.uint64(3) * other)
    assert found.tolist() == np.where(other, FREE, wanted).tolist()


def test_neurons_are_found_while_others_come() -> None:
    neurons, concept = Neurons(), np.arange(1, 60_001, dtype=np.uint64)
    feature = concept + np.uint64(7)
    wrong, done, added = list[object](), threading.Event(), [0]

    def look_up() -> None:
        while not done.is_set():
            known = added[-1]
            found = neurons.look_up(concept[: known + 500], feature[: known + 500])
            if found[:known].tolist() != list(range(known)):
                wrong.append(found)
            right = found == np.arange(len(found))
            if not (right | (found == FREE)).all():  # others may be added just now
                wrong.append(found)
            if known and neurons.find(known, known + 7) != known - 1:
                wrong.append(known)
            if known and neurons.of_concept(known).tolist() != [known - 1]:
                wrong.append(known)
            ids = neurons.ids(np.arange(known))
            if any(ids[0] != concept[:known]) or any(ids[1] != feature[:known]):
                wrong.append(ids)

    readers = [threading.Thread(target=look_up) for _ in range(2)]
    for reader in readers:
        reader.start()
    for first in range(0, len(concept), 50):
        neurons.numbers(concept[first : first + 50], feature[first : first + 50])
        added.append(first + 50)
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []


def test_an_unknown_neuron_has_no_number() -> None:
    neurons = Neurons()
    assert neurons.find(1, 2) is None
    neurons.numbers(np.array([1], np.uint64), np.array([2], np.uint64))
    assert neurons.find(1, 2) == 0
    assert neurons.find(1, 3) is None
    assert neurons.find(2, 2) is None


def test_neurons_that_fall_on_one_place_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.secrets, "randbits", lambda _: 0)  # factors 1: only high bits count
    neurons = Neurons()
    concept = np.arange(500, dtype=np.uint64)
    zero = np.zeros(500, np.uint64)
    assert neurons.numbers(concept, zero).tolist() == list(range(500))
    assert [neurons.find(i, 0) for i in range(500)] == list(range(500))
    assert neurons.find(500, 0) is None


def test_neurons_are_told_by_their_words() -> None:
    neurons = Neurons()
    concept, feature = np.array([9, 5, 9], np.uint64), np.array([PRIME, 9, 7], np.uint64)
    numbers = neurons.numbers(concept, feature)
    words, concepts, features = neurons.word_indices(numbers)
    assert words.tolist() == [PRIME, 5, 7, 9]
    assert (words[concepts].tolist(), words[features].tolist()) == ([9, 5, 9], [PRIME, 9, 7])
    words, concepts, features = neurons.word_indices(numbers[1:2])
    assert (words.tolist(), concepts.tolist(), features.tolist()) == ([PRIME, 5, 9], [1], [2])
    assert [part.tolist() for part in neurons.word_indices(numbers[:0])] == [[PRIME], [], []]
