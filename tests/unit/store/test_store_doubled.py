"""Stores whose shards are divided: the same rows as if there had been more shards all along."""

import random
import threading
from collections.abc import Iterable

import numpy as np
import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.model.rows import Question
from giaann_p2p.sim.lessons import Lessons
from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.cold import name_of
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.sync import NEVER
from giaann_p2p.store.fsck import fsck
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.memory import columns
from giaann_p2p.store.memory.columns import Columns
from giaann_p2p.store.records import Kind, double_record, doubled_to
from giaann_p2p.store.seal import told
from giaann_p2p.store.store import Store
from giaann_p2p.store.transfer import Export, Import
from giaann_p2p.store.update import Packed, Update
from tests.helpers import SMALL
from tests.helpers_store import (
    JOB,
    assert_rows,
    lessons,
    plain_row,
    plain_store,
    retained_of,
    state_of,
)
from tests.unit.store.helpers import LAYOUT, LESSONS

MANY = lessons(300, seed=3)
SINCE = 1.8e9


def filled(store: Store, chosen: Iterable[int] = range(20)) -> Store:
    store.hold(range(store.layout.shards))
    store.apply([LESSONS[i].update(range(store.layout.shards)) for i in chosen])
    return store


def from_the_beginning(shards: int, chosen: Iterable[int] = range(20)) -> Store:
    return filled(Store.in_memory(SMALL, Layout(shards=shards)), chosen)


def opened(disk: FakeDisk | None, retain: bool = True) -> Store:
    """Open a store of four shards, on a disk or in memory."""
    if disk is None:
        return Store.in_memory(SMALL, LAYOUT, retain=retain)
    return Store.open(disk, SMALL, LAYOUT, retain=retain, spare=1 << 20)


disks = pytest.mark.parametrize("disk", [FakeDisk(), None], ids=["disk", "memory"], indirect=True)


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> FakeDisk | None:
    return None if getattr(request, "param", 1) is None else FakeDisk()


@disks
@pytest.mark.parametrize("numbers", [[8], [8, 16], [64], [8, 1 << 10]])
@pytest.mark.parametrize("pending", [1, 100, 1 << 19])
def test_each_shard_is_what_it_were_if_there_had_been_as_many_from_the_beginning(
    disk: FakeDisk | None, numbers: list[int], pending: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_LEAST_PENDING", pending)
    store = filled(opened(disk))
    for number in numbers:
        store.double(number)
    expected = from_the_beginning(numbers[-1])
    assert store.layout.shards == numbers[-1]
    assert store.digest() == expected.digest()
    assert state_of(store) == state_of(expected)
    neurons = sorted({neuron for one in LESSONS[:20] for neuron in one.rows})
    concept, feature = (np.array(ids, np.uint64) for ids in zip(*neurons, strict=True))
    assert store.connections_of(concept, feature) > 0
    for one in store, expected:
        for number in range(numbers[-1]):
            one.content(number)  # merges
    assert store.connections_of(concept, feature) == expected.connections_of(concept, feature)
    rows = [[plain_row(row) for row in one.read(Question(neurons))] for one in (store, expected)]
    assert rows[0] == rows[1]
    for number in {concept for concept, _ in neurons}:
        assert store.features(number, 5).tolist() == expected.features(number, 5).tolist()
    if disk:
        for readonly in (True, False):
            with Store.open(disk, SMALL, LAYOUT, readonly=readonly) as again:
                assert again.layout == store.layout
                assert state_of(again) == state_of(expected)
        assert fsck(disk).problems == []


@disks
def test_a_divided_store_goes_on(disk: FakeDisk | None) -> None:
    store = filled(opened(disk))
    store.double(16)
    chosen = range(20, 40)
    assert [new.tolist() for new in store.apply([LESSONS[0].update(range(16))])] == [[]]
    store.apply([LESSONS[i].update(range(16)) for i in chosen])
    store.apply([LESSONS[7].update(range(16))._replace(chunk=7 | WITHDRAWN)])
    wanted = from_the_beginning(16, [i for i in range(40) if i != 7])
    assert store.digest() == wanted.digest()


def test_what_cannot_be_is_refused_and_the_present_number_is_nothing_new(disk: FakeDisk) -> None:
    store = filled(opened(disk))
    before, state = disk.operations, state_of(store)
    store.double(4)
    for wrong in (0, 2, 6, 1 << 17, -8):
        with pytest.raises(UsageError, match=f"4 shards can become .*, not {wrong}"):
            store.double(wrong)
    assert disk.operations == before
    assert state_of(store) == state
    store.close()
    with pytest.raises(UsageError, match="closed"):
        store.double(8)
    with (
        Store.open(disk, readonly=True) as seen,
        pytest.raises(UsageError, match="for reading only"),
    ):
        seen.double(8)


def test_a_record_of_a_doubling() -> None:
    assert doubled_to(memoryview(double_record(1 << 16))) == 1 << 16
    assert Kind.DOUBLE == 7


@disks
def test_kept_deltas_are_those_of_all_parts(disk: FakeDisk | None) -> None:
    store = filled(opened(disk), range(6))
    store.apply([LESSONS[6].update([1, 2])])
    store.release(JOB, [0])
    store.double(8)
    everything = {*store.retained_for(0).of(JOB)}
    assert everything == {1, 2, 3, 4, 5}
    assert [{*store.retained_for(n).of(JOB)} - everything for n in range(8)] == [
        {6} if n % 4 in (1, 2) else set() for n in range(8)
    ]
    store.drop([5])
    store.release(JOB, [1], [6])
    assert {*store.retained_for(6).of(JOB)} == {2, 3, 4, 5, 6}
    assert {*store.retained_for(2).of(JOB)} == {1, 2, 3, 4, 5, 6}
    assert store.archive_bytes > 0
    if disk:
        assert [one.shards.tolist() for one in store.remembered(JOB, 0, range(8))] == [
            [0, 1, 2, 3, 4, 6, 7]
        ]
        found = retained_of(store)
        store.snapshot()
        store.apply([LESSONS[8].update([0])])
        with Store.open(disk, retain=True) as again:  # by the heads of old records
            assert all(chunks <= retained_of(again)[n] for n, chunks in found.items())
            assert 5 not in retained_of(again)
            part = again.recall(JOB, 6, [1])
            assert [update.shards.tolist() for update in part] == [[1]]


def test_old_records_are_found_if_the_doubling_itself_is_damaged(disk: FakeDisk) -> None:
    """The first update behind it says how many shards there are."""
    store = filled(opened(disk), range(3))
    store.snapshot()
    store.double(8)
    store.snapshot()
    store.apply([LESSONS[4].update(range(8))])
    store.drop([2])
    store.snapshot()
    store.close()
    data = bytearray(disk.read("log-00000002"))
    data[-1] ^= 1  # of the mark behind the doubling
    data[56] ^= 1
    disk.damage("log-00000002", bytes(data))
    with Store.open(disk, retain=True) as again:
        assert {*again.retained_for(7).of(JOB)} == {0, 1, 2, 4}
        assert {*again.retained_for(6).of(JOB)} == {0, 1, 2, 4}
        assert 2 not in again.shards


def test_what_was_let_go_after_a_doubling_stays_kept_for_other_parts(disk: FakeDisk) -> None:
    """The file with the doubling may be gone, as nothing in it is kept."""
    store = filled(opened(disk), [0])
    for _ in range(2):
        store.snapshot()
    store.double(8)
    for _ in range(2):
        store.snapshot()
    store.release(JOB, [0], [1])
    store.drop([2])
    store.apply([LESSONS[1].update([n for n in range(8) if n != 2])])
    store.snapshot()
    before = retained_of(store)
    kept = {n: {*store.retained_for(n).of(JOB)} for n in (1, 5)}
    assert kept == {1: {1}, 5: {0, 1}}
    store.close()
    with Store.open(disk, retain=True) as again:
        assert all(chunks <= retained_of(again)[n] for n, chunks in before.items())
        assert 2 not in again.shards


def test_a_store_may_begin_with_shards_that_were_divided_before(disk: FakeDisk) -> None:
    store = filled(Store.open(disk, SMALL, LAYOUT.with_shards(8)), range(5))
    store.snapshot()
    store.close()
    with Store.open(disk) as again:
        assert state_of(again) == state_of(from_the_beginning(8, range(5)))


@pytest.mark.parametrize("seed", range(8))
def test_a_crash_leaves_a_cold_copy_or_its_parts(seed: int) -> None:
    """Also where the log is not synced by itself: the doubling is durable before any part is."""
    disk = FakeDisk()
    store = filled(Store.open(disk, SMALL, LAYOUT, sync=NEVER), range(5))
    store.cool(1, SINCE)
    store.drop([1])
    store.sync()
    store.double(8)
    for part in (1, 5):
        store.thaw(part)
        store.cool(part, SINCE)
    with Store.open(disk.crash(random.Random(seed)), SMALL, LAYOUT) as again:
        assert {*again.cold.copies} == {1, 5}


@pytest.mark.parametrize("number", [8, 32])
def test_a_snapshot_says_how_many_shards_there_were(disk: FakeDisk, number: int) -> None:
    store = filled(opened(disk), range(5))
    store.snapshot()
    store.double(number)
    store.apply([LESSONS[5].update(range(number))])
    expected = state_of(from_the_beginning(number, range(6)))
    assert state_of(Store.open(disk, readonly=True)) == expected  # a snapshot, and the log
    store.snapshot()
    assert state_of(Store.open(disk, readonly=True)) == expected  # another one, by itself
    store.compact()
    store.double(2 * number)
    store.close()
    with Store.open(disk, SMALL, LAYOUT) as again:
        assert state_of(again) == state_of(from_the_beginning(2 * number, range(6)))


def test_one_part_is_sent_and_united_by_itself() -> None:
    store = Store.in_memory(SMALL, LAYOUT, retain=True)
    filled(store, range(10))
    store.double(8)
    other = from_the_beginning(8, range(5, 12))
    export = Export(other.content(6))
    taken = Import(export.manifest, store.limits)
    for number in taken.missing:
        taken.take(number, export.part(number))
    store.adopt(taken.content())
    wanted = from_the_beginning(8, range(12))
    assert dict(store.digests())[6] == dict(wanted.digests())[6]
    assert dict(store.digests())[2] == dict(from_the_beginning(8, range(10)).digests())[2]
    with pytest.raises(UsageError, match="rows of other shards"):
        store.adopt(from_the_beginning(4).content(2))


class TestCold:
    def cooled(self, disk: FakeDisk) -> Store:
        store = filled(opened(disk), range(5))
        for shard in range(4):
            store.cool(shard, SINCE)
        store.drop(range(4))
        store.double(8)
        return store

    def test_a_copy_is_that_of_each_part(self, disk: FakeDisk) -> None:
        store = self.cooled(disk)
        before = sum(disk.size(name_of(n)) for n in range(4))
        assert before <= store.cold.nbytes <= before + 8
        assert sorted(store.cold.copies) == [*range(8)]
        store.close()
        with Store.open(disk) as again:
            assert sorted(again.cold.copies) == [*range(8)]
            again.hold([2, 6, 7])
            for shard in (2, 6, 7):
                assert again.cold.copies[shard].shard == shard
                again.thaw(shard)
            wanted = dict(from_the_beginning(8, range(5)).digests())
            assert dict(again.digests()) == {n: wanted[n] for n in (2, 6, 7)}

    def test_a_file_stays_until_no_part_needs_it(self, disk: FakeDisk) -> None:
        store = self.cooled(disk)
        store.cold.forget([2, 3])
        assert name_of(2) in disk.names()
        assert sorted(store.cold.copies) == [0, 1, 4, 5, 6, 7]
        store.cold.forget([6])
        assert name_of(2) not in disk.names()
        store.hold([3, 7])
        store.thaw(7)
        store.cool(7, SINCE + 1)
        assert name_of(3) not in disk.names()
        assert store.cold.copies[7].file == name_of(7, 1) == "cold-00007-1"
        assert store.cold.copies[7].nbytes == disk.size(name_of(7, 1))
        store.close()
        with Store.open(disk) as again:
            assert sorted(again.cold.copies) == [0, 1, 4, 5, 7]
            assert again.cold.copies[7].since == SINCE + 1
            wanted = dict(from_the_beginning(8, range(5)).digests())[7]
            assert again.cold.content(7).digest == wanted
            again.double(16)
            assert sorted(again.cold.copies) == [0, 1, 4, 5, 7, 8, 9, 12, 13, 15]
            assert fsck(disk).problems == []

    def test_a_newer_copy_of_one_part_wins(self, disk: FakeDisk) -> None:
        store = self.cooled(disk)
        store.hold([6])
        store.thaw(6)
        store.apply([LESSONS[9].update([6])])
        store.cool(6, SINCE + 1)
        assert name_of(2) in disk.names()
        store.close()
        with Store.open(disk) as again:
            assert len(again.cold.copies[6].chunks) == 6
            assert len(again.cold.copies[2].chunks) == 5

    def test_a_damaged_copy_of_a_part_is_reported(self, disk: FakeDisk) -> None:
        store = self.cooled(disk)
        store.hold([6])
        store.thaw(6)
        store.cool(6, SINCE)
        store.close()
        for name in (name_of(1), name_of(6, 1)):
            data = bytearray(disk.read(name))
            data[-60] ^= 1
            disk.damage(name, bytes(data))
            assert any(problem.startswith(name) for problem in fsck(disk).problems)
            data[-60] ^= 1
            disk.damage(name, bytes(data))
        disk.damage(name_of(6, 1), disk.read(name_of(2)))
        with Store.open(disk) as again:
            assert again.cold.damaged == [name_of(6, 1)]
            assert again.cold.copies[6].file == name_of(2)

    def test_a_copy_of_a_doubling_that_was_lost_is_left_alone(self, disk: FakeDisk) -> None:
        store = filled(opened(disk), range(5))
        kept = {name: disk.read(name) for name in disk.names()}
        store.double(8)
        store.cool(6, SINCE)
        store.close()
        for name, data in kept.items():
            disk.damage(name, data)
        with Store.open(disk) as again:
            assert not again.cold.copies
            assert not again.cold.damaged
            again.double(8)
        with Store.open(disk) as again:
            assert sorted(again.cold.copies) == [6]


SWARM = Layout(shards=4, blocks=8)
SEALED = Lessons(SWARM)


def sealed(chunk: int) -> Update:
    everything = np.arange(4, dtype=np.uint16)
    seal = SEALED.tree(chunk).seal(b"words", everything.tolist())
    return Update(JOB, chunk, everything, SEALED.delta(chunk), b"", seal)


def verified(update: Update, layout: Layout) -> None:
    root = told(update.delta, update.shards, layout, update.seal).root
    assert root == SEALED.tree(update.chunk & ~WITHDRAWN).root


@disks
def test_deltas_from_before_are_verified_kept_and_passed_on_by_holders_of_one_part(
    disk: FakeDisk | None,
) -> None:
    spec = Store.in_memory(SMALL, SWARM).spec
    first = Store.in_memory(spec, SWARM, retain=True)
    first.hold(range(4))
    first.apply([sealed(chunk) for chunk in range(3)])
    first.double(8)
    whole = Store.in_memory(spec, SWARM.with_shards(8))
    whole.hold(range(8))
    everything = np.arange(8, dtype=np.uint16)
    whole.apply([sealed(chunk)._replace(shards=everything) for chunk in range(3)])
    wanted = dict(whole.digests())

    source, doubled = first, 8
    for mine in ([1, 6], [6]):
        holder = Store.in_memory(spec, SWARM, retain=True)
        if disk is not None:
            disk = FakeDisk()
            holder = Store.open(disk, spec, SWARM, retain=True)
        holder.double(doubled)
        holder.hold(mine)
        for chunk in range(3):
            for found in source.parcels(JOB, chunk, mine):
                layout = holder.layout
                came = Packed(
                    JOB,
                    chunk,
                    found.shards,
                    found.data,
                    holder.limits,
                    layout,
                    found.shards,
                    found.seal,
                    lambda update, layout=layout: verified(update, layout),
                )
                update = came.unpacked()
                verified(update, layout)
                holder.apply([update])
        assert dict(holder.digests()) == {n: wanted[n] for n in mine}
        assert {*holder.retained_for(6).of(JOB)} == {0, 1, 2}
        if disk is not None:
            holder.close()
            holder = Store.open(disk, spec, SWARM, retain=True)
        source = holder
    source.double(16)
    (last,) = source.parcels(JOB, 2, [14])
    verified(
        Update.received(JOB, 2, last.shards, last.data, source.limits, last.seal), source.layout
    )
    back = sealed(2)._replace(chunk=2 | WITHDRAWN, shards=np.array([6, 14], np.uint16))
    source.apply([back])
    wanted_now = from_sealed(16, range(2))
    assert dict(source.digests()) == {n: wanted_now[n] for n in (6, 14)}


def from_sealed(shards: int, chunks: Iterable[int]) -> dict[int, int]:
    store = Store.in_memory(Store.in_memory(SMALL, SWARM).spec, SWARM.with_shards(shards))
    store.hold(range(shards))
    everything = np.arange(shards, dtype=np.uint16)
    store.apply([sealed(chunk)._replace(shards=everything) for chunk in chunks])
    return dict(store.digests())


def test_a_divided_store_that_fails_in_the_middle_gives_no_wrong_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = filled(opened(None))
    divide, left = Columns._divide, [2]

    def failing(self: Columns, number: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise MemoryError
        divide(self, number)

    monkeypatch.setattr(Columns, "_divide", failing)
    with pytest.raises(MemoryError):
        store.double(8)
    monkeypatch.undo()
    with pytest.raises(UsageError, match="memory lags behind the log"):
        store.note("k", b"")
    expected = plain_store(Layout(shards=8))
    expected.hold(range(8))
    for one in LESSONS[:20]:
        expected.apply(one.chunk, range(8), one.rows)
    assert_rows(store, expected, sorted({n for one in LESSONS[:20] for n in one.rows}))
    wanted = dict(from_the_beginning(8).digests())
    state = store._state
    assert {n: state.content(state.capture([n])).digest for n in range(8)} == wanted


def test_nothing_is_divided_if_merging_runs_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(opened(None))
    before = store.digest()

    def failing(_: Columns) -> None:
        raise MemoryError

    monkeypatch.setattr(Columns, "merge_all", failing)
    with pytest.raises(MemoryError):
        store.double(8)
    monkeypatch.undo()
    assert (store.layout, store.shards.tolist()) == (LAYOUT, [0, 1, 2, 3])
    assert store.digest() == before


def test_no_other_row_is_counted_while_a_shard_is_divided() -> None:
    """Until it is published, a part's row has the index that another row of the whole has."""
    store = filled(Store.in_memory(SMALL, Layout(shards=1)))
    store.compact()
    found = store._state.columns
    first, second = found._shards[0].neuron[:2].tolist()
    ids = found.neurons.ids(np.array([first]))
    assert store.connections_of(*ids) > 0
    found._row[first] = found._row[second]
    assert store.connections_of(*ids) == 0


def test_readers_see_each_row_whole_while_shards_are_divided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows are read one by one and all at once, while they are added to, divided and merged."""
    monkeypatch.setattr(columns, "_LEAST_PENDING", 1 << 12)
    wrong: list[object] = []
    store = Store.in_memory(SMALL, Layout(shards=1))
    store.hold([0])
    store.apply([one.update([0]) for one in MANY])
    neurons = sorted({neuron for one in MANY for neuron in one.rows})
    counts = dict.fromkeys(neurons, 0)
    for one in MANY:
        for neuron, row in one.rows.items():
            counts[neuron] += row.count
    most = {
        neuron: count + MANY[0].rows[neuron].count * 20 if neuron in MANY[0].rows else count
        for neuron, count in counts.items()
    }
    done, once_more = threading.Event(), threading.Semaphore(0)
    concept, feature = (np.array(ids, np.uint64) for ids in zip(*neurons, strict=True))

    def read(at_once: bool) -> None:
        last = counts
        while not done.is_set():
            if at_once:
                sheaf = store._state.columns.rows(concept, feature)
                named = (sheaf.words[part[sheaf.row]] for part in (sheaf.concept, sheaf.feature))
                at = zip(*(words.tolist() for words in named), strict=True)
                found = dict(zip(at, sheaf.counts.tolist(), strict=True))
            else:
                rows = store.read(Question(neurons))
                found = {tuple(row.neuron): row.count for row in rows if row}
            for neuron in neurons:
                count = found.get(neuron, 0)
                if not last[neuron] <= count <= most[neuron]:
                    wrong.append((neuron, last[neuron], count))
            last = found
            once_more.release()

    readers = [threading.Thread(target=read, args=(n % 2 == 0,)) for n in range(3)]
    for reader in readers:
        reader.start()
    try:
        for times in range(10):
            store.double(2 << times)
            shards = range(store.layout.shards)
            store.apply([MANY[0].update(shards)._replace(chunk=1000 + times)])
            store.content(*shards)
            store.apply([MANY[0].update(shards)._replace(chunk=2000 + times)])
            for _ in readers:
                once_more.acquire()
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert wrong == []
