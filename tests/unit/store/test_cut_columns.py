"""Columns that are cut by target: where each connection is, and how rows are joined again."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from msgspec import structs

from giaann_p2p.errors import SpecError
from giaann_p2p.model.delta import total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.rows import DeltaRows, Neuron, Question, Row
from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.codec.sheaf import decode
from giaann_p2p.store.cut_columns import columns_in, cut_columns, whole
from giaann_p2p.store.cuts import MARK, MOST_ALL, MOST_CUT, MOST_PARTS, Cut
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.fsck import fsck
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from giaann_p2p.store.whole_rows import whole_rows
from giaann_p2p.swarm.reading.row_match import same
from giaann_p2p.swarm.wire.row_mark import LEAST, mark
from tests.helpers import SMALL, assert_same
from tests.helpers_cut import BEE, COLUMNS, CUTS, LESSONS, WHOLE, neurons
from tests.helpers_store import JOB

LAYOUT = Layout(shards=4, cuts=CUTS)
LEARNED = total([*map(COLUMNS.cut, LESSONS)])


def updates(store: Store, numbers: Iterable[int], back: bool = False) -> list[Update]:
    """Return what lessons add to a store, or what they take back."""
    mark = WITHDRAWN if back else 0
    return [Update(JOB, n | mark, store.shards, COLUMNS.cut(LESSONS[n])) for n in numbers]


def holding(disk: FakeDisk | None, numbers: Iterable[int]) -> Store:
    store = Store.open(disk, SMALL, LAYOUT) if disk else Store.in_memory(SMALL, LAYOUT)
    store.hold(range(LAYOUT.shards))
    for one in updates(store, numbers):
        store.apply([one])
    return store


def at_once(store: Store, asked: Sequence[Neuron]) -> list[Row | None]:
    """Return rows as a storage peer sends them: all in one sheaf."""
    concept, feature = (np.array(part, np.uint64) for part in zip(*asked, strict=True))
    return decode(store.rows(concept, feature), store.limits).read(Question(asked))


def check(store: Store, numbers: Sequence[int]) -> None:
    """Check that a store's rows are those of a delta that was never cut."""
    asked = neurons(WHOLE)
    known = total([LESSONS[n] for n in numbers])
    wanted = DeltaRows(known).read(Question(asked))
    one_by_one = whole_rows(store).read(Question(asked))
    together = COLUMNS.joined(asked, at_once(store, COLUMNS.asked(asked)))
    assert all(map(same, wanted, one_by_one))
    assert all(map(same, wanted, together))
    assert digest(store.knowledge()) == digest(known)
    assert [noun.name for noun in store.nouns()] == ["bee", "elk"]


def test_where_a_connection_is_never_changes() -> None:
    delta = COLUMNS.cut(LESSONS[0])
    row = delta.find(*BEE)
    assert row is not None
    held = [delta.find(concept, PRIME) for concept, _ in COLUMNS.parts(BEE)]
    lengths = [0 if at is None else int(delta.lengths[at]) for at in held]
    assert lengths == [10, 14, 20, 4, 8, 8, 13, 12, 4, 4, 6, 10, 6, 8, 14, 6]
    assert word_id(f"bee{MARK}1") == COLUMNS.parts(BEE)[1].concept == 0xF4CF1636A7AF56CD


def test_the_layout_of_columns_without_parts_is_written_as_before() -> None:
    assert msgspec.json.encode(Layout(shards=4, cuts=())) == b'{"shards":4,"blocks":1}'
    data = msgspec.json.encode(Layout(shards=4, cuts=(*reversed(CUTS),)))
    assert data == b'{"shards":4,"blocks":1,"cuts":[["bee",16],["elk",4]]}'
    back = msgspec.json.decode(data, type=Layout)
    assert back == LAYOUT
    assert back.columns is LAYOUT.columns
    assert str(back) == "shards=4, blocks=1, chunk=64, 2 cut columns"
    assert back.with_shards(8).columns is LAYOUT.columns
    assert not Layout().columns


@pytest.mark.parametrize(
    ("cuts", "why"),
    [
        ([Cut("bee", 3)], "a power of two from 2 to 1,024; they are 3"),
        ([Cut("bee", 1)], "they are 1"),
        ([Cut("bee", 0)], "they are 0"),
        ([Cut("bee", -2)], "they are -2"),
        ([Cut("bee", 2 * MOST_PARTS)], "they are 2,048"),
        ([Cut("", 2)], "'' is no word"),
        ([Cut("b" * 101, 2)], "is no word"),
        ([Cut(f"bee{MARK}1", 2)], "is no word"),
        ([Cut("bee", 2), Cut("bee", 4)], "the column 'bee' is cut twice"),
        ([Cut(f"b{n}", 2) for n in range(MOST_CUT + 1)], "at most 2,048 columns"),
        ([Cut(f"b{n}", MOST_PARTS) for n in range(65)], "at most 65,536 parts in all, not 66,560"),
    ],
)
def test_a_layout_says_what_is_wrong_with_its_cuts(cuts: list[Cut], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        Layout(cuts=tuple(cuts))


def test_as_many_columns_and_parts_as_may_be() -> None:
    largest = tuple(Cut(f"b{n}", MOST_PARTS) for n in range(MOST_ALL // MOST_PARTS))
    assert Layout(cuts=largest).columns.most == MOST_PARTS
    assert len(Layout(cuts=tuple(Cut(f"b{n}", 2) for n in range(MOST_CUT))).columns) == MOST_CUT


@pytest.mark.parametrize("disk", [FakeDisk(), None], ids=["disk", "memory"])
def test_rows_of_a_store_are_as_if_nothing_was_cut(disk: FakeDisk | None) -> None:
    store = holding(disk and FakeDisk(), range(6))
    check(store, range(6))
    store.apply(updates(store, [2], back=True))
    left = [0, 1, 3, 4, 5]
    check(store, left)
    if disk:
        store.compact()
        check(store, left)
    store.double(16)
    check(store, left)
    store.apply(updates(store, left[1:], back=True))
    check(store, [0])


def test_rows_of_a_store_are_the_same_after_it_was_closed() -> None:
    disk = FakeDisk()
    with holding(disk, range(3)) as store:
        store.snapshot()
        store.apply(updates(store, [3, 4]))
        store.apply(updates(store, [1], back=True))
    assert not fsck(disk).problems
    with Store.open(disk, SMALL, LAYOUT) as store:
        assert store.layout.columns == COLUMNS
        check(store, [0, 2, 3, 4])


def test_a_part_all_of_which_was_withdrawn_is_no_row() -> None:
    store = holding(None, [0, 1])
    asked = COLUMNS.asked(neurons(WHOLE))
    store.apply(updates(store, [1], back=True))
    for row, other in zip(
        store.read(Question(asked)), holding(None, [0]).read(Question(asked)), strict=True
    ):
        assert same(row, other)
        assert row is None or row.count or len(row.target)
    assert all(map(same, at_once(store, asked), store.read(Question(asked))))


def test_no_list_of_nouns_has_parts() -> None:
    store = holding(None, range(6))
    rows = store.read(Question([], frequent=10)), DeltaRows(LEARNED).read(Question([], frequent=10))
    for nouns in rows:
        assert [(row.name, row.count) for row in nouns if row] == [
            (row.name, row.count) for row in DeltaRows(WHOLE).read(Question([], frequent=10)) if row
        ]
    assert store.nouns(frequent=10) == store.nouns()
    (row,) = whole_rows(store).read(Question([BEE], names_only=True))
    assert row is not None
    assert row.name.concept == "bee"


def test_marks_of_known_parts_are_those_of_their_holders() -> None:
    salt = b"salt" * 4
    rows = {row.neuron: row for row in DeltaRows(WHOLE).read(Question(neurons(WHOLE))) if row}
    known = COLUMNS.known(rows)
    store = holding(None, range(6))
    marked = 0
    for neuron, row in known.items():
        (held,) = store.read(Question([neuron]))
        assert held is not None or not len(row.target)
        if len(row.target) >= LEAST and held is not None:
            assert mark(row, salt) == mark(held, salt)
            marked += neuron.concept in {concept for concept, _ in COLUMNS.parts(BEE)}
    assert marked > 1


def test_without_its_first_part_a_row_is_unknown() -> None:
    rows = DeltaRows(LEARNED).read(Question(COLUMNS.parts(BEE)))
    assert COLUMNS.joined([BEE], rows) != [None]
    assert COLUMNS.joined([BEE], [None, *rows[1:]]) == [None]
    some = COLUMNS.joined([BEE], [rows[0], *[None] * 15])[0]
    assert same(some, rows[0])


def test_a_part_adds_no_targets_of_other_parts_and_no_occurrences() -> None:
    asked = COLUMNS.parts(BEE)
    rows = DeltaRows(LEARNED).read(Question(asked))
    (honest,) = COLUMNS.joined([BEE], rows)
    assert honest is not None
    first, other = rows[0], rows[3]
    assert first is not None
    assert other is not None
    lie = structs.replace(
        other,
        count=10**6,
        target_concept=np.concatenate([first.target_concept, other.target_concept]),
        target_feature=np.concatenate([first.target_feature, other.target_feature]),
        target=np.concatenate([first.target, other.target + len(first.target_concept)]),
        branch=np.concatenate([first.branch, other.branch]),
        segment=np.concatenate([first.segment, other.segment]),
        strength=np.concatenate([first.strength, other.strength]),
    )
    (told,) = COLUMNS.joined([BEE], [*rows[:3], lie, *rows[4:]])
    assert told is not None
    assert same(told, honest)
    targets = [*zip(told.target_concept.tolist(), told.target_feature.tolist(), strict=True)]
    assert len({*targets}) == len(targets)


def test_only_cut_columns_are_touched() -> None:
    apart = cut_columns((Cut("owl", 4),))
    assert apart.cut(LESSONS[0]) is LESSONS[0]
    assert whole(LESSONS[0]) is LESSONS[0]
    assert cut_columns(()).cut(LESSONS[0]) is LESSONS[0]
    assert_same(whole(COLUMNS.cut(LESSONS[0])), LESSONS[0])


def test_only_parts_long_enough_are_told_of() -> None:
    rows = {row.neuron: row for row in DeltaRows(WHOLE).read(Question(neurons(WHOLE))) if row}
    known, some = COLUMNS.known(rows), COLUMNS.known(rows, LEAST)
    parts = {neuron for one in CUTS for neuron in COLUMNS.parts(Neuron(word_id(one.word), PRIME))}
    long = {neuron for neuron in parts if len(known[neuron].strength) >= LEAST}
    assert 0 < len(long) < len(parts)
    assert {*some} & parts == long
    assert all(same(known[neuron], row) for neuron, row in some.items())


def test_names_of_parts_that_were_made_up_take_no_room() -> None:
    honest = [f"bee{MARK}{number}" for number in range(1, 16)]
    lies = [f"a{number}{MARK}1" for number in range(MOST_ALL // 2)]
    lies += [f"b{number}{MARK}{MOST_PARTS - 1}" for number in range(1000)]
    for names in ([*honest, *lies], [*lies, *honest]):
        found = {cut.word: cut.parts for cut in columns_in(names, [Cut("elk", 4)]).cuts}
        assert (found["bee"], found["elk"]) == (16, 4)
        assert sum(found.values()) <= MOST_ALL
    assert columns_in(lies).cuts == columns_in(reversed(lies)).cuts


def test_connections_to_a_part_which_only_a_liar_makes_stay_apart() -> None:
    cut = COLUMNS.cut(LESSONS[0])
    part = next(
        number
        for number, concept in enumerate(cut.concept.tolist())
        if MARK in cut.names.get(concept, "")
    )
    target = cut.target.copy()
    target[-1] = part
    back = whole(replace(cut, target=target))
    assert back.connections == cut.connections
    ends = {
        *zip(back.concept[back.target].tolist(), back.feature[back.target].tolist(), strict=True)
    }
    assert (int(cut.concept[part]), int(cut.feature[part])) in ends
    rows = (back.count > 0) | (back.lengths > 0)
    assert not any(MARK in back.names[word] for word in back.concept[rows].tolist())
