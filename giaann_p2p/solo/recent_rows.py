"""The rows of a store, of which those read last stay in memory."""

from threading import Lock

from giaann_p2p.model.rows import Answer, Neuron, Question, Row, Rows

_MOST = 1 << 22
"""The most connections of the rows that stay: some 120 MB."""
_ROW = 16
"""A row counts as so many connections, besides its own."""


class RecentRows:
    """Reads rows, and keeps those read last.

    A store assembles a row anew unless somebody still has it (see `store.memory.shard`), and a
    frequent word has a long row. Any thread may read.
    """

    def __init__(self, rows: Rows, most: int = _MOST) -> None:
        self._rows, self._most = rows, most
        self._kept: dict[Neuron, Row] = {}  # the one read last is the last
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
