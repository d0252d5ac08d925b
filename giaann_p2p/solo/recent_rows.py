"""Reads rows from a store, and keeps the most recently read rows in memory."""

from threading import Lock

from giaann_p2p.model.rows import Answer, Neuron, Question, Row, Rows

_MOST = 1 << 22
"""The most connections of all rows kept in memory; they take some 120 MB."""
_ROW = 16
"""The number of connections that each row counts as, in addition to its own connections."""


class RecentRows:
    """Reads rows, and keeps references to the rows read last, so that reading them again is fast.

    A store returns the same object for a row that is still in use (see `store.memory.made`), and
    otherwise assembles it anew; a frequent word has a long row. Any thread may read.
    """

    def __init__(self, rows: Rows, most: int = _MOST) -> None:
        self._rows, self._most = rows, most
        self._kept: dict[Neuron, Row] = {}  # in order of reading: the latest is the last
        self._connections = 0
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<RecentRows: {len(self._kept):,} rows, {self._connections:,} connections>"

    def read(self, question: Question) -> Answer:
        """Return the rows of the question's neurons, as the store has them now."""
        rows = self._rows.read(question)
        if not (question.names_only or question.frequent):
            with self._lock:
                for row in rows:
                    if row is not None:
                        self._keep(row)
        return rows

    def _keep(self, row: Row) -> None:
        self._drop(row.neuron)
        self._kept[row.neuron] = row
        self._connections += _size(row)
        while self._connections > self._most:
            self._drop(next(iter(self._kept)))

    def _drop(self, neuron: Neuron) -> None:
        row = self._kept.pop(neuron, None)
        self._connections -= 0 if row is None else _size(row)


def _size(row: Row) -> int:
    return _ROW + len(row.target)
