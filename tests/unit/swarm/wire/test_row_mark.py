"""Marks of rows: equal for equal rows in any order, and for no others."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from giaann_p2p.model.rows import Name, Neuron, Question, Row
from giaann_p2p.store.codec import plain
from giaann_p2p.swarm.reading.row_match import same
from giaann_p2p.swarm.wire.row_mark import MARK_BYTES, _mixed, _total, mark
from tests.helpers_swarm import LIMITS

SALT = bytes(range(16))
NAME = Name("bee", "makes")


def made(links: list[tuple[int, int, int, int, int]], count: int = 3) -> Row:
    """Return a row of connections: concept, feature, branch, segment and strength of each."""
    targets = list(dict.fromkeys(link[:2] for link in links))
    order = sorted(links, key=lambda link: (targets.index(link[:2]), link[2:4]))
    return Row(
        NAME.neuron,
        NAME,
        count,
        np.array([concept for concept, _ in targets], np.uint64),
        np.array([feature for _, feature in targets], np.uint64),
        np.array([targets.index(link[:2]) for link in order], np.int64),
        np.array([link[2] for link in order], np.uint8),
        np.array([link[3] for link in order], np.uint8),
        np.array([link[4] for link in order], np.int64),
    )


LINKS = [(1, 2, 0, 0, 7), (1, 2, 0, 1, 8), (3, 4, 0, 0, 7), (5, 4, 1, 0, 1 << 40)]
ROW = made(LINKS)


def test_the_mark_of_a_row_never_changes() -> None:
    assert mark(ROW, SALT).hex() == "3b5aa36ceec421c9"
    assert len(mark(ROW, SALT)) == MARK_BYTES


def test_the_order_of_targets_and_the_encoding_do_not_count() -> None:
    assert mark(made(LINKS[::-1]), SALT) == mark(ROW, SALT)
    (sent,) = plain.decode(plain.encode([ROW]), LIMITS).read(Question([ROW.neuron]))
    assert sent is not None
    assert mark(sent, SALT) == mark(ROW, SALT)


def test_a_row_is_left_as_it_was() -> None:
    row = made(LINKS)
    for array in (row.target_concept, row.target_feature, row.branch, row.strength):
        array.flags.writeable = False
    mark(row, SALT)
    assert same(row, ROW)


def test_with_another_salt_it_is_another_mark() -> None:
    marks = {mark(ROW, n.to_bytes(16, "little")) for n in range(100)}
    assert len(marks) == 100


CHANGES: dict[str, Callable[[], Row]] = {
    "count": lambda: replace(ROW, count=4),
    "concept": lambda: replace(ROW, neuron=Neuron(6, NAME.neuron.feature)),
    "feature": lambda: replace(ROW, neuron=Neuron(NAME.neuron.concept, 8)),
    "name": lambda: replace(ROW, name=Name("bees", "makes")),
    "letters from name to name": lambda: replace(ROW, name=Name("beem", "akes")),
    "no feature": lambda: replace(ROW, name=Name("bee", None)),
    "an empty feature": lambda: replace(ROW, name=Name("bee", "")),
    "one connection less": lambda: made(LINKS[1:]),
    "one connection twice": lambda: made([*LINKS, LINKS[-1]]),
    "none": lambda: made([]),
    "one strength": lambda: made([(1, 2, 0, 0, 6), *LINKS[1:]]),
    "strength moved": lambda: made([(1, 2, 0, 0, 6), (1, 2, 0, 1, 9), *LINKS[2:]]),
    "strengths swapped": lambda: made([(1, 2, 0, 0, 8), (1, 2, 0, 1, 7), *LINKS[2:]]),
    "a high strength": lambda: made([*LINKS[:3], (5, 4, 1, 0, 1 << 41)]),
    "a branch": lambda: made([*LINKS[:3], (5, 4, 0, 0, 1 << 40)]),
    "a segment": lambda: made([*LINKS[:3], (5, 4, 1, 1, 1 << 40)]),
    "branch for segment": lambda: made([*LINKS[:3], (5, 4, 0, 1, 1 << 40)]),
    "target concept": lambda: made([*LINKS[:3], (6, 4, 1, 0, 1 << 40)]),
    "target feature": lambda: made([*LINKS[:3], (5, 3, 1, 0, 1 << 40)]),
    "concept for feature": lambda: made([*LINKS[:3], (4, 5, 1, 0, 1 << 40)]),
    "features swapped": lambda: made([(1, 4, 0, 0, 7), (1, 4, 0, 1, 8), (3, 2, 0, 0, 7), LINKS[3]]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_row_that_differs_has_another_mark(name: str) -> None:
    others = [change() for other, change in CHANGES.items() if other != name]
    told = CHANGES[name]()
    assert mark(told, SALT) != mark(ROW, SALT)
    assert mark(told, SALT) not in {mark(other, SALT) for other in others}


link = st.tuples(*[st.integers(0, 2)] * 2, *[st.integers(0, 1)] * 2, st.integers(1, 3))
rows = st.lists(link, max_size=5, unique_by=lambda one: one[:4])


@given(rows, rows, st.binary(min_size=16, max_size=16))
def test_marks_are_equal_where_rows_are(one: list, other: list, salt: bytes) -> None:
    first, second = made(one), made(other)
    assert (mark(first, salt) == mark(second, salt)) == same(first, second)


def test_each_bit_of_a_connection_changes_half_of_the_bits_that_are_added_up() -> None:
    """A weak sum would be easy to hit: differences must not be foreseeable."""
    before = _mixed(_mixed(np.array([1 << 20], np.uint64)) + np.uint64(3))
    for bit in range(64):
        after = _mixed(_mixed(np.array([1 << 20 ^ 1 << bit], np.uint64)) + np.uint64(3))
        assert 16 < int(before[0] ^ after[0]).bit_count() < 48


def test_a_difference_of_strengths_makes_another_difference_with_each_salt_and_target() -> None:
    """Otherwise two changes could be made whose differences add up to nothing."""
    found = set[int]()
    for n in range(50):
        salt = n.to_bytes(16, "little")
        for target in range(4):
            one, other = (_total(made([(target, 1, 0, 0, s)]), salt) for s in (1, 1 + (1 << 62)))
            found.add((one - other) % (1 << 64))
    assert len(found) == 200
