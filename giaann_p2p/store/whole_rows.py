"""Reads whole rows from a store that has cut columns: the rows of all parts are joined."""

from giaann_p2p.model.rows import Answer, Question, Rows
from giaann_p2p.store.cut_columns import CutColumns, columns_in
from giaann_p2p.store.store import Store


class WholeRows:
    """Reads rows; the row of a neuron in a cut column is joined from the rows of all parts."""

    def __init__(self, rows: Rows, columns: CutColumns) -> None:
        self._rows, self._columns = rows, columns

    def __repr__(self) -> str:
        return f"<WholeRows: {self._columns!r}>"

    def read(self, question: Question) -> Answer:
        """Return the rows of the question's neurons."""
        if not self._columns or question.names_only or question.frequent:
            return self._rows.read(question)  # part 0 has the name and all occurrences
        rows = self._rows.read(Question(self._columns.asked(question.neurons)))
        return self._columns.joined(question.neurons, rows)


def whole_rows(store: Store) -> WholeRows:
    """Return a reader of whole rows for a store that holds all shards, such as a brain's."""
    return WholeRows(store, columns_in(store.names().values(), store.layout.cuts or ()))
