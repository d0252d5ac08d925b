"""Rows that a reader still uses, remembered by neuron."""

from giaann_p2p.model.rows import Name, Row, empty_row
from giaann_p2p.store.memory import made
from giaann_p2p.store.memory.made import MadeRows


def row() -> Row:
    name = Name("bee", None)
    return empty_row(name.neuron, name)


def test_a_row_that_is_used_is_found_until_it_changes() -> None:
    rows, one = MadeRows(), row()
    rows.add(7, 3, 0, one)
    assert rows.get(7, 3, 0) is one
    assert rows.get(8, 3, 0) is None
    assert rows.get(7, 4, 0) is None
    assert rows.get(7, 3, 1) is None
    other = row()
    rows.add(7, 4, 0, other)
    assert (rows.get(7, 4, 0), rows.get(7, 3, 0)) == (other, None)
    del other
    assert rows.get(7, 4, 0) is None


def test_what_is_left_of_rows_that_nobody_uses_is_removed() -> None:
    rows = MadeRows()
    for number in range(10 * made._LEAST):
        rows.add(number, 0, 0, row())
        assert len(rows) <= made._LEAST
    used = [row() for _ in range(10 * made._LEAST)]
    for number, one in enumerate(used):
        rows.add(number, 0, 0, one)
        for dead in range(5):
            rows.add(-1 - dead - 5 * number, 0, 0, row())
        assert len(rows) <= max(made._LEAST, 2 * (number + 1))
    assert [rows.get(number, 0, 0) for number in range(len(used))] == used
