"""Checks the rows that clients join from parts of cut columns, against columns that are not cut.

A client reads the parts of a row from several peers, which may have different chunks at that time.
Let `all` be the chunks that all of these peers have, and `any` those that any of them has. A single
machine that cuts no columns learns one row from `all`, and another row from `any`. The joined row
must lie between these two rows; if they are equal, it must be equal, too. So a part that is lost,
doubled or mixed up is found, but a peer whose part is late is not blamed.

The check uses none of the code that cuts columns except the names of parts.
"""

from collections.abc import Sequence

from giaann_p2p.model.rows import Neuron, Question, Row
from giaann_p2p.sim.lessons import Lessons
from giaann_p2p.swarm.reading.row_match import grown

Chunks = frozenset[int]


class JoinedRows:
    """Remembers the chunks behind each row that honest peers serve."""

    def __init__(self) -> None:
        self._served: dict[Neuron, dict[Chunks, float]] = {}
        """For each neuron, the sets of chunks whose row was served, each with the last time."""

    def served(self, neurons: Sequence[Neuron], chunks: Chunks, now: float) -> None:
        """Note that a peer returned some rows of a shard that has these chunks."""
        for neuron in neurons:
            self._served.setdefault(neuron, {})[chunks] = now

    def fault(
        self, lessons: Lessons, parts: Sequence[Neuron], row: Row | None, asked: float
    ) -> str | None:
        """Return what is wrong with a row that was joined from parts, requested at `asked`."""
        sets = list[Chunks]()
        for part in parts:
            since = [chunks for chunks, at in self._served.get(part, {}).items() if at >= asked]
            if not since:
                return "a client joins a row without one of its parts"
            sets += since
        least, most = Chunks.intersection(*sets), Chunks.union(*sets)
        question = Question(parts[:1])
        (low,), (high,) = (lessons.uncut(chunks).read(question) for chunks in (least, most))
        if not grown(low, row):
            return "a row that a client joined lacks something"
        return None if grown(row, high) else "a row that a client joined says too much"
