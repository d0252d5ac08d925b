"""Rows on a shelf: never more bytes than there may be, no guess in the place of what is used."""

import random

import numpy as np

from giaann_p2p.model.rows import Name, Neuron, Row, empty_row
from giaann_p2p.node.reading.row_shelf import RowShelf, size_of

EMPTY = size_of(None)


def row(number: int, targets: int = 0) -> Row:
    whole = np.arange(2 * targets + 10, dtype=np.int64)
    part = whole[:targets]
    return Row(
        Neuron(number, 0),
        Name("bee", None),
        1,
        part.view(np.uint64),
        part.view(np.uint64),
        part,
        part.astype(np.uint8),
        part.astype(np.uint8),
        part,
    )


def test_it_keeps_what_was_asked_for_last() -> None:
    shelf = RowShelf(8 * EMPTY + 8)  # seven in use, one guess
    for number in range(7):
        shelf.put(Neuron(number, 0), None, number)
    assert shelf.take(Neuron(0, 0)) == ((None, 0), False)
    shelf.put(Neuron(7, 0), None, 7.0)
    assert Neuron(1, 0) not in shelf
    assert [n for n in range(8) if Neuron(n, 0) in shelf] == [0, 2, 3, 4, 5, 6, 7]
    assert shelf.take(Neuron(1, 0)) == (None, False)
    assert shelf.wasted == 0


def test_guesses_take_only_the_place_of_guesses() -> None:
    shelf = RowShelf(8 * EMPTY + 8)
    for number in range(7):
        shelf.put(Neuron(number, 0), None, 0.0)
    for number in range(10, 20):
        shelf.put(Neuron(number, 0), None, 0.0, guess=True)
    assert all(Neuron(number, 0) in shelf for number in range(7))
    assert Neuron(19, 0) in shelf
    assert Neuron(18, 0) not in shelf
    assert shelf.wasted == 9
    assert shelf.take(Neuron(19, 0)) == ((None, 0.0), True)
    assert shelf.take(Neuron(19, 0)) == ((None, 0.0), False)
    assert Neuron(0, 0) not in shelf  # that one is in use now, and takes the oldest one's place
    assert shelf.wasted == 9


def test_a_guess_of_what_is_in_use_stays_in_use_and_is_newer() -> None:
    shelf = RowShelf(8 * EMPTY)
    shelf.put(Neuron(1, 0), None, 1.0)
    shelf.put(Neuron(1, 0), row(1), 2.0, guess=True)
    kept, was_guess = shelf.take(Neuron(1, 0))
    assert kept is not None
    assert (kept.read, was_guess) == (2.0, False)
    shelf.put(Neuron(2, 0), None, 1.0, guess=True)
    shelf.put(Neuron(2, 0), None, 3.0)
    assert shelf.take(Neuron(2, 0)) == ((None, 3.0), False)


def test_a_row_that_was_read_again_and_is_the_same_stays_the_same_object() -> None:
    shelf, changed = RowShelf(1 << 20), row(1, 3)
    first = shelf.put(Neuron(1, 0), row(1, 3), 1.0)
    assert shelf.put(Neuron(1, 0), row(1, 3), 2.0) is first
    kept = shelf.look(Neuron(1, 0))
    assert kept is not None
    assert kept.row is first
    assert kept.read == 2.0
    changed.strength[0] += 1
    assert shelf.put(Neuron(1, 0), changed, 3.0) is not first


def test_a_row_is_kept_without_what_it_was_cut_from() -> None:
    shelf, whole = RowShelf(1 << 20), row(3, 100)
    shelf.put(whole.neuron, whole, 0.0)
    kept = shelf.look(whole.neuron)
    assert kept is not None
    assert kept.row is not None
    arrays = [kept.row.target_concept, kept.row.target, kept.row.strength, kept.row.branch]
    assert all(array.base is None for array in arrays)
    assert kept.row.target.tolist() == whole.target.tolist()
    assert shelf.nbytes == size_of(whole) > 100 * 34


def test_it_never_takes_more_than_it_may() -> None:
    chance, most = random.Random(1), 40_000
    shelf = RowShelf(most)
    for _ in range(3000):
        number = chance.randrange(60)
        if chance.random() < 0.5:
            shelf.take(Neuron(number, 0))
        else:
            found = chance.choice([None, row(number, chance.randrange(2000))])
            shelf.put(Neuron(number, 0), found, 0.0, guess=chance.random() < 0.5)
        assert shelf.nbytes <= most
    shelf.put(Neuron(99, 0), row(99, 10_000), 0.0)  # larger than all
    assert Neuron(99, 0) not in shelf
    assert (len(shelf), shelf.nbytes) == (0, 0) or shelf.nbytes <= most


def test_it_tells_of_itself() -> None:
    shelf = RowShelf(1 << 20)
    shelf.put(Neuron(1, 0), empty_row(Neuron(1, 0), Name("bee", None)), 0.0)
    assert repr(shelf) == "<RowShelf: 1 rows, 1,024 bytes>"
