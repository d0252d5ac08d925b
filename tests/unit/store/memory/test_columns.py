"""Columns in memory: what is added is what is read, merged or not, and while it is being merged."""

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from weakref import ref

import numpy as np
import pytest
from msgspec.structs import asdict

from giaann_p2p.model.delta import EMPTY, Delta, total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.learn import learn
from giaann_p2p.model.row_slice import EVERYTHING, RowSlice
from giaann_p2p.model.row_slice import whole as joined
from giaann_p2p.model.rows import DeltaRows, Neuron, Question, Row
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.codec.sheaf import SheafRows, decode, encode
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.memory import columns as module
from giaann_p2p.store.memory import heads
from giaann_p2p.store.memory.columns import Columns
from giaann_p2p.store.memory.content import content
from giaann_p2p.store.memory.places import Places
from giaann_p2p.store.memory.shard import Shard
from tests.helpers import SMALL, assert_same, built, in_order

ALL = np.arange(4, dtype=np.uint16)
SENTENCES = [
    "the/ bee/N of/ the/ meadow/N makes/ honey/N",
    "the/ wasp/N of/ the/ meadow/N makes/ none/",
    "honey/N is/ what/ the/ bee/N makes/ of/ nectar/N",
    "bee/N and/ wasp/N and/ bee/N and/ bee/N meet/ ./",
    "cat/N sees/ dog/N sees/ owl/N sees/ fox/N sees/ elk/N sees/ cow/N sees/ pig/N",
]


@pytest.fixture
def columns() -> Columns:
    return held(Columns(Layout(shards=4), Places(SMALL.branches, SMALL.segments)))


@pytest.fixture(params=[(1, 1 << 31), (50, 1 << 31), (50, 1), (1 << 19, 1 << 31)])
def eager(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge after each connection, now and then, or hardly ever; move the base of pieces or not."""
    pending, pieces = request.param
    monkeypatch.setattr(module, "_LEAST_PENDING", pending)
    monkeypatch.setattr(heads, "_MOST", pieces)


def held(columns: Columns) -> Columns:
    for number in range(columns.layout.shards):
        columns.hold(number)
    return columns


def deltas() -> Iterator[Delta]:
    return (learn(built(sentence), SMALL) for sentence in SENTENCES * 3)


def whole(columns: Columns) -> Delta:
    shards = [columns.merge(number) for number in range(columns.layout.shards)]
    known = [shard for shard in shards if shard is not None]
    return content(known, columns.neurons, columns.places, columns.names)


def read_at_once(
    columns: Columns, neurons: list[Neuron], within: RowSlice = EVERYTHING
) -> SheafRows:
    """Read many rows, and bring them to where they were asked for."""
    named = np.array([*neurons], np.uint64).reshape(-1, 2)
    data = encode(columns.rows(named[:, 0], named[:, 1], within), SMALL.branches, SMALL.segments)
    return decode(data, Limits(SMALL.branches, SMALL.segments, 10_000, 100_000))


def assert_rows(columns: Columns, neurons: list[Neuron]) -> None:
    """Compare many rows read at once with each of them read alone."""
    found = read_at_once(columns, neurons)
    for neuron, row in zip(neurons, found.read(Question(neurons)), strict=True):
        alone = columns.row(neuron)
        assert_row(row, alone if alone and alone.count else None)


def assert_row(row: Row | None, expected: Row | None) -> None:
    assert (row is None) == (expected is None)
    if row is not None and expected is not None:
        row = in_order(row)
        for name, value in asdict(in_order(expected)).items():
            found = getattr(row, name)
            if isinstance(value, np.ndarray):
                assert found.dtype == value.dtype, name
                assert found.tolist() == value.tolist(), name
            else:
                assert found == value, name


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("halvings", [1, 3])
def test_the_slices_of_rows_merged_or_not_are_the_rows(columns: Columns, halvings: int) -> None:
    for at, delta in enumerate(deltas()):
        columns.add(delta, ALL)
        if at == 10:
            columns.merge_all()
    everything = total(list(deltas()))
    named = zip(everything.concept.tolist(), everything.feature.tolist(), strict=True)
    neurons = [Neuron(*one) for one in named]
    slices = [EVERYTHING]
    for _ in range(halvings):
        slices = [half for one in slices for half in one.halves]
    found = [read_at_once(columns, neurons, one).read(Question(neurons)) for one in slices]
    rows = read_at_once(columns, neurons).read(Question(neurons))
    for some, row in zip(zip(*found, strict=True), rows, strict=True):
        assert_row(joined(some), row)
        for one, part in zip(slices, some, strict=True):
            assert part is None or one.has(part.target_concept, part.target_feature).all()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("seed", range(4))
def test_many_rows_at_once_are_those_read_one_by_one(columns: Columns, seed: int) -> None:
    rng, parts = random.Random(seed), list(deltas())
    everything = total(parts)
    named = zip(everything.concept.tolist(), everything.feature.tolist(), strict=True)
    neurons = [*(Neuron(*one) for one in named), Neuron(1, 2)]
    here = set(range(4))
    for delta in parts:
        columns.add(delta, np.array(sorted(here), np.uint16))
        if rng.random() < 0.3:
            columns.merge(rng.randrange(4))
        if rng.random() < 0.3:
            number = rng.randrange(4)
            (columns.drop if number in here else columns.hold)(number)
            here ^= {number}
        assert_rows(columns, rng.sample(neurons, rng.randint(0, len(neurons))))
    columns.merge_all()
    assert_rows(columns, neurons)


@pytest.mark.usefixtures("eager")
def test_rows_are_those_of_the_sum_of_what_was_added(columns: Columns) -> None:
    added: list[Delta] = []
    for delta in deltas():
        columns.add(delta, ALL)
        added.append(delta)
        expected = total(added)
        for concept, feature in zip(
            expected.concept.tolist(), expected.feature.tolist(), strict=True
        ):
            neuron = Neuron(concept, feature)
            (row,) = DeltaRows(expected).read(Question([neuron]))
            assert_row(columns.row(neuron), row)
    assert_same(whole(columns), total(added))


@pytest.mark.usefixtures("eager")
def test_a_row_that_someone_has_is_made_again_only_if_it_changed(columns: Columns) -> None:
    added: list[Delta] = []
    had: dict[Neuron, Row | None] = {}
    again = 0
    for delta in deltas():
        columns.add(delta, ALL)
        added.append(delta)
        expected = DeltaRows(total(added))
        neurons = [Neuron(*named) for named in expected.neurons]
        rows = {neuron: columns.row(neuron) for neuron in neurons}
        for neuron, row in zip(neurons, expected.read(Question(neurons)), strict=True):
            assert_row(rows[neuron], row)
            assert columns.row(neuron) is rows[neuron]
            again += rows[neuron] is had.get(neuron)
        had = rows
    assert again > 0
    columns.subtract(added[0], ALL)
    expected = DeltaRows(total(added[1:]))
    for neuron in neurons:
        assert_row(columns.row(neuron), expected.read(Question([neuron]))[0])


def test_rows_that_nobody_has_are_not_kept(columns: Columns) -> None:
    columns.add(next(deltas()), ALL)
    row = columns.row(Neuron(word_id("bee"), PRIME))
    assert row is not None
    kept = ref(row)
    del row
    assert kept() is None


def test_a_row_that_someone_has_gets_the_new_text_of_its_word(columns: Columns) -> None:
    delta, neuron = next(deltas()), Neuron(word_id("bee"), PRIME)
    columns.add(delta, ALL)
    row = columns.row(neuron)
    columns.add(replace(EMPTY, names={word_id("bee"): "a bee"}), ALL)
    renamed = columns.row(neuron)
    assert row is not None
    assert renamed is not None
    assert (row.name.word, renamed.name.word) == ("bee", "a bee")


@pytest.mark.usefixtures("eager")
def test_a_name_is_read_without_the_row(columns: Columns) -> None:
    added: list[Delta] = []
    for delta in deltas():
        columns.add(delta, ALL)
        added.append(delta)
        rows = DeltaRows(total(added))
        neurons = [*(Neuron(*named) for named in rows.neurons), Neuron(1, 2)]
        for neuron, row in zip(neurons, rows.read(Question(neurons)), strict=True):
            found = columns.row(neuron, names_only=True)
            assert (found and found.name) == (row and row.name)
            assert found is None or not len(found.target)
    for delta in added:
        columns.subtract(delta, ALL)
    assert all(columns.row(neuron, names_only=True) is None for neuron in neurons)


def test_only_rows_of_the_shards_asked_for_are_added(columns: Columns) -> None:
    delta = learn(built(*SENTENCES), SMALL)
    columns.add(delta, np.array([1, 3], np.uint16))
    shards = columns.layout.shards_of(delta.concept, delta.feature).tolist()
    assert set(shards) == {0, 1, 2, 3}
    neurons = map(Neuron, delta.concept.tolist(), delta.feature.tolist())
    for neuron, shard in zip(neurons, shards, strict=True):
        assert (columns.row(neuron) is not None) == (shard in (1, 3))


@pytest.mark.usefixtures("eager")
def test_a_columns_words_are_found_the_most_frequent_first(columns: Columns) -> None:
    for delta in deltas():
        columns.add(delta, ALL)
    columns.merge_all()
    rows = whole(columns)
    for concept in {*rows.concept.tolist()}:
        here = (rows.concept == concept) & (rows.count > 0)
        counts = dict(zip(rows.feature[here].tolist(), rows.count[here].tolist(), strict=True))
        found = columns.features(concept, 1000).tolist()
        assert set(found) == set(counts)
        assert [counts[feature] for feature in found] == sorted(counts.values(), reverse=True)
        assert columns.features(concept, 2).tolist() == found[:2]
    assert not len(columns.features(1, 1000))


def test_words_that_were_added_lately_are_found_too(columns: Columns) -> None:
    for delta in deltas():
        columns.add(delta, ALL)
        here = delta.count > 0
        pairs = zip(delta.concept[here].tolist(), delta.feature[here].tolist(), strict=True)
        assert all(feature in columns.features(concept, 1000) for concept, feature in pairs)


def test_a_dropped_shard_is_gone_and_may_come_back(columns: Columns) -> None:
    parts = list(deltas())
    for delta in parts:
        columns.add(delta, ALL)
    expected = total(parts)
    for number in range(4):
        shard = columns.merge(number)
        assert shard is not None
        kept = content([shard], columns.neurons, columns.places, columns.names)
        columns.drop(number)
        for concept, feature in zip(kept.concept.tolist(), kept.feature.tolist(), strict=True):
            if columns.layout.shard_of(concept, feature) == number:
                assert columns.row(Neuron(concept, feature)) is None
        columns.adopt(np.array([number], np.uint16), kept)
    assert_same(whole(columns), expected)


@pytest.mark.parametrize("times", [1, 12_345, 2**13, 2**30])
def test_strengths_of_any_size_are_read_merged_or_not(columns: Columns, times: int) -> None:
    """By reading rows one by one, and many at once; what is taken back is below 0 meanwhile."""
    parts = [replace(part, strength=part.strength * times) for part in deltas()]
    expected = total([*parts, *deltas()])
    neurons = list(map(Neuron, expected.concept.tolist(), expected.feature.tolist()))
    for step, delta in enumerate([*deltas(), *parts]):
        columns.add(delta, ALL)
        if step % 4 == 2:
            columns.merge_all()
        if step % 4 == 3:
            columns.merge(step // 4 % 4)
        assert_rows(columns, neurons)
        rows = read_at_once(columns, neurons).read(Question(neurons))
        assert [row and row.strength.sum() for row in rows] == [
            row and row.strength.sum() for row in map(columns.row, neurons)
        ]
    assert_same(whole(columns), expected)
    for delta in parts:
        columns.subtract(delta, ALL)
        assert_rows(columns, neurons)
    assert_same(whole(columns), total(list(deltas())))


def test_everything_is_accounted_for(columns: Columns) -> None:
    assert columns.connections == 0
    before = columns.nbytes
    parts = list(deltas())
    for delta in parts:
        columns.add(delta, ALL)
    assert columns.connections == sum(delta.connections for delta in parts)
    pending = columns.nbytes
    columns.merge_all()
    assert columns.connections == total(parts).connections
    assert before < columns.nbytes < pending


@pytest.mark.parametrize("pieces", [1 << 31, 1])
def test_reading_while_writing_sees_each_row_at_one_moment(
    monkeypatch: pytest.MonkeyPatch, pieces: int
) -> None:
    """Every chunk adds the same to a row, so a row's strengths are all the same multiple.

    This holds if the pieces have one base, and if the base moves on with each chunk.
    """
    monkeypatch.setattr(heads, "_MOST", pieces)
    monkeypatch.setattr(module, "_LEAST_PENDING", 64)
    columns = held(Columns(Layout(shards=4), Places(SMALL.branches, SMALL.segments)))
    delta = learn(built(*SENTENCES), SMALL)
    units = {}
    for neuron in map(Neuron, delta.concept.tolist(), delta.feature.tolist()):
        (row,) = DeltaRows(delta).read(Question([neuron]))
        assert row is not None
        units[neuron] = row
    wrong: list[object] = []
    done = threading.Event()

    def one_by_one() -> Iterator[Row | None]:
        return (columns.row(neuron) for neuron in units)

    def at_once() -> Iterator[Row | None]:
        return iter(read_at_once(columns, list(units)).read(Question(list(units))))

    def read(rows: Callable[[], Iterator[Row | None]]) -> None:
        last = dict.fromkeys(units, 0)
        while not done.is_set():
            for (neuron, once), row in zip(units.items(), rows(), strict=True):
                times = row.count // once.count if row else 0
                if times < last[neuron]:
                    wrong.append((neuron, times, last[neuron]))
                if row and row.strength.tolist() != (once.strength * times).tolist():
                    wrong.append((neuron, row, times))
                last[neuron] = times

    ways = [one_by_one, one_by_one, at_once, at_once]
    readers = [threading.Thread(target=read, args=(way,)) for way in ways]
    for reader in readers:
        reader.start()
    for _ in range(300):
        columns.add(delta, ALL)
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert_same(whole(columns), total([delta] * 300))
    assert (columns._heads.base > 0) == (pieces == 1)


def test_a_merge_that_fails_leaves_no_mark(
    columns: Columns, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = list(deltas())

    def fail(*_: object) -> None:
        raise MemoryError

    for number, delta in enumerate(parts):
        columns.add(delta, ALL)
        with monkeypatch.context() as patch:
            patch.setattr(Shard, "merged", fail)
            for shard in range(4):
                with contextlib.suppress(MemoryError):  # raised where something is to be merged
                    columns.merge(shard)
        if number % 2:
            columns.merge(number % 4)
        columns.drop(3)
        columns.hold(3)
    kept = [content_of(columns, number) for number in range(4)]
    expected = total(parts)
    shards = columns.layout.shards_of(expected.concept, expected.feature).astype(np.int64)
    for number, delta in expected.cut(shards).items():
        if number != 3:
            assert digest(kept[number]) == digest(delta)
    assert kept[3].neurons == 0


def content_of(columns: Columns, number: int) -> Delta:
    shard = columns.merge(number)
    assert shard is not None
    return content([shard], columns.neurons, columns.places, columns.names)


def test_batches_without_connections_are_merged_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LEAST_PENDING", 1 << 10)
    columns = held(Columns(Layout(shards=4), Places(SMALL.branches, SMALL.segments)))
    lone = learn(built("bee/N"), SMALL)
    assert lone.connections == 0
    for _ in range(200):
        columns.add(lone, ALL)
    assert len(columns._pending.batches) < 40
    assert_same(whole(columns), total([lone] * 200))
