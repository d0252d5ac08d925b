"""Rows of columns that are cut: the reader asks for parts, and returns whole rows."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from giaann_p2p.model.delta import total
from giaann_p2p.model.ids import word_id
from giaann_p2p.model.rows import Answer, DeltaRows, Neuron, Question
from giaann_p2p.node.reading.reader import RowReader
from giaann_p2p.store.cut_columns import cut_columns
from giaann_p2p.store.cuts import Cut
from giaann_p2p.swarm.reading.known_rows import NOTHING_KNOWN, Known
from giaann_p2p.swarm.reading.row_match import same
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.row_mark import LEAST
from tests.unit.node.helpers import FOUNDER, MANIFEST
from tests.unit.store.test_cut_columns import BEE, COLUMNS, LESSONS, WHOLE, neurons

ASKED = neurons(WHOLE)
TRUE = DeltaRows(WHOLE).read(Question(ASKED))
FINER = cut_columns((Cut("bee", 64), *COLUMNS.cuts[1:]))


class Reading:
    """A reader whose peers hold what was learned while some columns were in force."""

    def __init__(self, rules: Rules) -> None:
        by_turns = [rules.cuts[n % len(rules.cuts)].cut(one) for n, one in enumerate(LESSONS)]
        self._held = DeltaRows(total(by_turns))
        self.asked, self.known = list[Neuron](), dict[Neuron, Any]()
        around = SimpleNamespace(rules=rules, me=FOUNDER.peer)
        self.reader = RowReader(cast(Any, None), MANIFEST, cast(Any, around), lambda: 0.0)
        self.reader._read = self.read  # type: ignore[method-assign]

    async def read(self, asked: Sequence[Neuron], known: Known) -> Answer:
        self.asked, self.known = [*asked], {**known}
        return self._held.read(Question(asked))

    def rows(self, known: Known = NOTHING_KNOWN) -> Answer:
        return asyncio.run(self.reader.rows(ASKED, known))


def test_a_row_is_what_its_parts_say() -> None:
    reading = Reading(Rules(4, cuts=(COLUMNS,)))
    assert all(map(same, reading.rows(), TRUE))
    assert reading.asked == COLUMNS.asked(ASKED)
    assert len(reading.asked) > len(ASKED)
    whole = Reading(Rules(4))
    assert all(map(same, whole.rows(), TRUE))
    assert whole.asked == ASKED


def test_a_row_is_whole_after_its_column_was_cut_further() -> None:
    reading = Reading(Rules(4, sizes=(64, 128), cuts=(COLUMNS, FINER)))
    assert all(map(same, reading.rows(), TRUE))
    assert reading.asked == FINER.asked(ASKED)


def test_what_is_known_is_told_by_parts() -> None:
    reading = Reading(Rules(4, cuts=(COLUMNS,)))
    known = {row.neuron: row for row in TRUE if row is not None}
    reading.rows(known)
    long = [part for part in COLUMNS.parts(BEE) if part in reading.known]
    assert BEE in reading.asked
    for part in long:
        assert len(reading.known[part].strength) >= LEAST
        assert same(reading.known[part], DeltaRows(COLUMNS.cut(WHOLE)).read(Question([part]))[0])


def test_it_tells_how_many_parts_a_row_has() -> None:
    reader = Reading(Rules(4, cuts=(COLUMNS,))).reader
    parts = {cut.word: cut.parts for cut in COLUMNS.cuts}
    bee, other = Neuron(word_id("bee"), 7), Neuron(7, 7)
    assert (reader.parts_of(bee), reader.parts_of(other)) == (parts["bee"], 1)
