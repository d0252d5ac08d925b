"""Rows of columns that are cut: the reader asks for parts, and returns whole rows."""

import asyncio
from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any, cast

from giaann_p2p.model.delta import total
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.rows import Answer, DeltaRows, Neuron, Question
from giaann_p2p.node.reading.reader import RowReader
from giaann_p2p.node.reading.row_cache import _MOST_GUESSES, Bill, RowCache
from giaann_p2p.store.cut_columns import cut_columns
from giaann_p2p.store.cuts import Cut
from giaann_p2p.swarm.reading.known_rows import NOTHING_KNOWN, Known
from giaann_p2p.swarm.reading.row_match import same
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.row_mark import LEAST
from tests.helpers_cut import BEE, COLUMNS, LESSONS, WHOLE, neurons
from tests.unit.node.helpers import FOUNDER, MANIFEST

ASKED = neurons(WHOLE)
TRUE = DeltaRows(WHOLE).read(Question(ASKED))
MANY_BEES = [Neuron(word_id("bee"), feature) for feature in range(300)]
MOST_BEES = _MOST_GUESSES // COLUMNS.parts_of(BEE)
"""How many rows of a cut column may be prefetched at once."""
FINER = cut_columns((Cut("bee", 64), *COLUMNS.cuts[1:]))


class Reading:
    """A reader whose peers hold what was learned while some columns were in force."""

    def __init__(self, rules: Rules) -> None:
        by_turns = [rules.cuts[n % len(rules.cuts)].cut(one) for n, one in enumerate(LESSONS)]
        self._held = DeltaRows(total(by_turns))
        self.asked, self.known = list[Neuron](), dict[Neuron, Any]()
        self.news: Collection[Neuron] | None = None
        """The parts that are sent although they are known; None if no part is confirmed."""
        around = SimpleNamespace(rules=rules, me=FOUNDER.peer)
        self.reader = RowReader(cast(Any, None), MANIFEST, cast(Any, around), lambda: 0.0)
        self.reader._read = self.read  # type: ignore[method-assign]

    async def read(self, asked: Sequence[Neuron], known: Known) -> Answer:
        self.asked, self.known = [*asked], {**known}
        rows = self._held.read(Question(asked))
        if self.news is None:
            return rows
        there = known.keys() - self.news
        return [known[one] if one in there else row for one, row in zip(asked, rows, strict=True)]

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


def test_a_row_whose_parts_are_confirmed_is_the_known_one() -> None:
    reading = Reading(Rules(4, cuts=(COLUMNS,)))
    known = {row.neuron: row for row in reading.rows() if row is not None}
    at = ASKED.index(BEE)
    assert reading.rows(known)[at] is not known[BEE]  # it was sent anew
    reading.news = [next(part for part in COLUMNS.parts(BEE) if part in reading.known)]
    assert reading.rows(known)[at] is not known[BEE]  # a part of it was
    reading.news = ()
    again = reading.rows(known)
    assert again[at] is known[BEE]
    assert all(map(same, again, TRUE))


def test_short_parts_are_sent_anew_and_may_be_news() -> None:
    reading = Reading(Rules(4, cuts=(COLUMNS,)))
    reading.news = ()
    parts = DeltaRows(COLUMNS.cut(WHOLE)).read(Question(COLUMNS.parts(BEE)))
    short = [n for n, part in enumerate(parts) if n and part and len(part.strength) < LEAST]
    parts[short[0]] = None
    (before,) = COLUMNS.joined([BEE], parts)
    assert before is not None
    after = reading.rows({BEE: before})[ASKED.index(BEE)]
    assert reading.known
    assert after is not before
    assert after is not None
    assert len(after.strength) > len(before.strength)


def test_a_row_whose_parts_are_confirmed_costs_as_little_as_one_that_was_not_sent() -> None:
    reading, came = Reading(Rules(4, cuts=(COLUMNS,))), 0
    elk, known, new = Neuron(word_id("elk"), PRIME), Bill(), Bill()  # it occurs half as often

    async def story() -> None:
        nonlocal came
        never = -1.0  # no row is ever fresh
        cache = RowCache(reading.reader.rows, 1 << 24, fresh=never, received=lambda: came)
        await cache.rows(Question([BEE]))
        reading.news, came = (), 1 << 20
        first, second = cache.rows(Question([BEE]), known), cache.rows(Question([elk]), new)
        await asyncio.gather(first, second)

    asyncio.run(story())
    assert reading.known
    assert 0 < known.nbytes < new.nbytes


def test_it_tells_how_many_parts_a_row_has() -> None:
    reader = Reading(Rules(4, cuts=(COLUMNS,))).reader
    parts = {cut.word: cut.parts for cut in COLUMNS.cuts}
    bee, other = Neuron(word_id("bee"), 7), Neuron(7, 7)
    assert (reader.parts_of(bee), reader.parts_of(other)) == (parts["bee"], 1)
