"""Any history of a store: after each step it holds what a dictionary does."""

import random
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from giaann_p2p.errors import UsageError
from giaann_p2p.model.delta import EMPTY, Delta, total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.store import transfer
from giaann_p2p.store.codec import words
from giaann_p2p.store.content import Content
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.sync import ALWAYS, NEVER, Sync
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.memory import columns
from giaann_p2p.store.store import Store
from giaann_p2p.store.transfer import Export, Import, Manifest
from giaann_p2p.store.update import Update
from tests.helpers import SMALL
from tests.helpers_parcel import LIMITS, delta_of
from tests.helpers_store import (
    JOB,
    JOBS,
    Lesson,
    assert_recalled,
    assert_rows,
    drawn_deltas,
    lesson,
    plain_state,
    plain_store,
    retained_of,
    state_of,
)
from tests.plain import store as plain

CHUNKS = 4
"""Of each job: few, so that many come twice."""
SOME = settings().max_examples * 2 // 5
"""Of histories, each of which takes many steps."""

layouts = st.builds(Layout, shards=st.sampled_from([1, 2, 4, 8]), blocks=st.sampled_from([1, 2, 4]))
seeds = st.integers(0, 1 << 32)
MOST_DOUBLED = 32
"""The most shards that stores are doubled to."""
numbers = st.integers(0, MOST_DOUBLED - 1)
subsets = st.sets(st.integers(0, 7)) | st.sets(numbers)
which = st.sampled_from([0, 1])


class StoreMachine(RuleBasedStateMachine):
    """Two stores of one swarm, and a dictionary beside each: one on a disk, one on none."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()

    @initialize(
        layout=layouts,
        deltas=st.lists(drawn_deltas, min_size=4, max_size=4),
        least=st.sampled_from([1, 30, 300, 1 << 19]),
        part=st.sampled_from([4, 64]),
        retain=st.booleans(),
    )
    def begin(
        self, layout: Layout, deltas: list[Delta], least: int, part: int, retain: bool
    ) -> None:
        self.patch.setattr(columns, "_LEAST_PENDING", least)
        self.patch.setattr(transfer, "PART", part)
        self.layouts, self.retain = [layout, layout], retain
        self.lessons = [
            lesson(number, deltas[(number + i) % len(deltas)], job)
            for i, job in enumerate(JOBS)
            for number in range(CHUNKS)
        ]
        self.disk = FakeDisk()
        self.stores = [
            Store.open(self.disk, SMALL, layout, retain=retain),
            Store.in_memory(SMALL, layout, retain=retain),
        ]
        self.plain = [plain_store(layout, retain), plain_store(layout, retain)]
        for store, expected in zip(self.stores, self.plain, strict=True):
            store.hold(range(layout.shards))
            expected.hold(range(layout.shards))

    def teardown(self) -> None:
        self.patch.undo()

    def fitting(self, which: int, shards: Iterable[int]) -> list[int]:
        return sorted({number % self.layouts[which].shards for number in shards})

    @rule(which=which, times=st.sampled_from([2, 2, 2, 4]))
    def double(self, which: int, times: int) -> None:
        shards = self.layouts[which].shards * times
        if shards <= MOST_DOUBLED:
            self.double_to(which, shards)

    def double_to(self, which: int, shards: int) -> None:
        self.layouts[which] = layout = self.layouts[which].with_shards(shards)
        self.stores[which].double(shards)
        self.plain[which].double(lambda neuron: layout.shard_of(*neuron), shards)
        assert self.stores[which].layout == layout

    def catch_up(self) -> None:
        """Double the number of shards of one store until it is that of the other."""
        most = max(layout.shards for layout in self.layouts)
        for which, layout in enumerate(self.layouts):
            if layout.shards < most:
                self.double_to(which, most)

    @rule(
        which=which,
        asked=st.lists(st.tuples(st.integers(0, 2 * CHUNKS - 1), subsets), max_size=4),
    )
    def apply(self, which: int, asked: list[tuple[int, set[int]]]) -> None:
        expected = self.plain[which]
        updates: list[tuple[Lesson, list[int]]] = [
            (self.lessons[at], [n for n in self.fitting(which, shards) if n in expected.shards])
            for at, shards in asked
        ]
        found = self.stores[which].apply([one.update(shards) for one, shards in updates])
        wanted = [expected.apply(one.chunk, shards, one.rows) for one, shards in updates]
        assert [new.tolist() for new in found] == wanted

    @rule(which=which, at=st.integers(0, 2 * CHUNKS - 1))
    def apply_to_all(self, which: int, at: int) -> None:
        self.apply(which, [(at, set(range(MOST_DOUBLED)))])

    @rule(which=which, at=st.integers(0, 2 * CHUNKS - 1))
    def apply_to_what_is_not_held(self, which: int, at: int) -> None:
        gone = set(range(self.layouts[which].shards)) - self.plain[which].shards.keys()
        updates = [self.lessons[0].update([]), self.lessons[at].update(gone)]
        if gone:
            with pytest.raises(UsageError, match="is not held here"):
                self.stores[which].apply(updates)

    @rule(which=which, key=st.sampled_from("ab"), value=st.binary(max_size=3))
    def write_note(self, which: int, key: str, value: bytes) -> None:
        self.stores[which].note(key, value)
        self.plain[which].notes[key] = value

    @rule(which=which, shards=subsets)
    def hold(self, which: int, shards: set[int]) -> None:
        self.stores[which].hold(self.fitting(which, shards))
        self.plain[which].hold(self.fitting(which, shards))

    @rule(which=which, shards=subsets)
    def drop(self, which: int, shards: set[int]) -> None:
        self.stores[which].drop(self.fitting(which, shards))
        self.plain[which].drop(self.fitting(which, shards))

    @rule(which=which, number=numbers, seed=seeds)
    def send(self, which: int, number: int, seed: int) -> None:
        self.catch_up()
        number %= self.layouts[which].shards
        theirs = self.plain[which].shards.get(number)
        if theirs is None:
            return
        held = transferred(self.stores[which], number, random.Random(seed))
        try:
            self.plain[1 - which].adopt(number, theirs)
        except plain.RefusedError:
            note("refused")
            with pytest.raises(UsageError, match="some chunks in common"):
                self.stores[1 - which].adopt(held)
        else:
            self.stores[1 - which].adopt(held)

    @rule(which=which)
    def take_all(self, which: int) -> None:
        """Adopt all shards of the other store at once."""
        self.catch_up()
        theirs = self.plain[1 - which].copy()
        expected = self.plain[which].copy()
        store = self.stores[1 - which]
        held = store._state.content(store._state.capture(sorted(theirs.shards)))
        try:
            for number, shard in theirs.shards.items():
                expected.adopt(number, shard)
        except plain.RefusedError:
            with pytest.raises(UsageError, match="some chunks in common"):
                self.stores[which].adopt(held)
        else:
            if theirs.shards:
                self.stores[which].adopt(held)
                self.plain[which] = expected

    @rule(which=which)
    def digest(self, which: int) -> None:
        assert state_of(self.stores[which]) == plain_state(self.plain[which])

    @rule()
    def snapshot(self) -> None:
        self.stores[0].snapshot()

    @rule(which=which)
    def compact(self, which: int) -> None:
        self.stores[which].compact()

    @rule(which=which, job=st.sampled_from(JOBS), chunks=st.sets(st.integers(0, CHUNKS - 1)))
    def release(self, which: int, job: bytes, chunks: set[int]) -> None:
        self.stores[which].release(job, chunks)
        self.plain[which].release(*(plain.Chunk(job, n) for n in chunks))

    @rule(which=which)
    def recall(self, which: int) -> None:
        assert_recalled(self.stores[which], self.plain[which])

    @rule(sync=st.sampled_from([ALWAYS, NEVER]))
    def restart(self, sync: Sync) -> None:
        self.stores[0].close()
        self.reopen(sync)

    def reopen(self, sync: Sync = ALWAYS) -> None:
        """Open it anew: what was released may be back."""
        self.stores[0] = Store.open(self.disk, sync=sync, retain=self.retain)
        retained, expected = retained_of(self.stores[0]), self.plain[0]
        assert retained.keys() == expected.retained.keys()
        for number, chunks in retained.items():
            assert expected.retained[number] <= chunks <= expected.shards[number].chunks
        expected.retained = retained

    @rule(seed=seeds)
    def lose_power(self, seed: int) -> None:
        self.stores[0].sync()
        self.disk = self.disk.crash(random.Random(seed))
        self.reopen()

    @rule(seed=seeds)
    def die(self, seed: int) -> None:
        """Leave the files as they are; nothing was closed."""
        self.reopen()

    @rule()
    def look_on(self) -> None:
        before = self.disk.operations
        seen = Store.open(self.disk, readonly=True)
        assert_rows(seen, self.plain[0])
        assert state_of(seen) == plain_state(self.plain[0])
        with pytest.raises(UsageError, match="for reading only"):
            seen.note("a", b"")
        assert self.disk.operations == before

    @precondition(lambda self: hasattr(self, "stores"))
    @invariant()
    def rows_are_the_same(self) -> None:
        for store, expected in zip(self.stores, self.plain, strict=True):
            assert_rows(store, expected)
            assert store.notes == expected.notes
            assert store.shards.tolist() == sorted(expected.shards)
            assert retained_of(store) == expected.retained
            for number, shard in expected.shards.items():
                found = {plain.Chunk(job, n) for job in JOBS for n in store.applied(number, job)}
                assert found == shard.chunks


def transferred(store: Store, shard: int, rng: random.Random) -> Content:
    """Send a shard part by part, in any order, some of them twice."""
    export = Export(store.content(shard))
    taken = Import(Manifest.from_bytes(export.manifest.to_bytes()), LIMITS)
    numbers = taken.missing + taken.missing[:2]
    rng.shuffle(numbers)
    for number in numbers:
        taken.take(number, export.part(number))
    return taken.content()


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=SOME, stateful_step_count=30)


@settings(max_examples=SOME)
@given(
    layout=layouts,
    deltas=st.lists(drawn_deltas, max_size=6),
    orders=st.lists(seeds, min_size=2, max_size=3),
    least=st.sampled_from([1, 30, 1 << 19]),
)
def test_the_same_chunks_in_any_order_and_cut_come_to_the_same(
    layout: Layout, deltas: list[Delta], orders: Sequence[int], least: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_LEAST_PENDING", least)
        found = [ordered(layout, deltas, random.Random(order)) for order in orders]
    whole = total(deltas) if deltas else EMPTY
    for store in found:
        assert store.digest() == digest(whole)
        assert list(store.digests()) == list(found[0].digests())


def ordered(layout: Layout, deltas: list[Delta], rng: random.Random) -> Store:
    """Take in each chunk shard by shard, each by itself, in a random order."""
    store = Store.in_memory(SMALL, layout)
    store.hold(range(layout.shards))
    deeds = [(at, shard) for at in range(len(deltas)) for shard in range(layout.shards)]
    for at, shard in rng.sample(deeds, len(deeds)):
        store.apply([Update(JOB, at, np.array([shard], np.uint16), deltas[at])])
    return store


def number_of(text: str) -> int:
    """Give words that begin alike one number."""
    return ord(text[0])


def told(text: str, other: str) -> Delta:
    """Let two words stand for two neurons, one behind the other."""
    one, two = number_of(text), number_of(other)
    names = {one: text, two: other}
    neurons = sorted({(one, PRIME), (one, two)})
    return delta_of(dict.fromkeys(neurons, 1), {(0, 1, 0, 0): 1 << 33}, names)


@settings(max_examples=SOME)
@given(
    texts=st.lists(
        st.tuples(st.sampled_from(["ant", "ape", "axe"]), st.sampled_from(["bee", "bat"])),
        min_size=1,
        max_size=6,
    ),
    orders=st.lists(seeds, min_size=2, max_size=3),
    layout=layouts,
)
def test_of_two_texts_of_one_number_the_smaller_wins_in_any_order(
    texts: list[tuple[str, str]], orders: list[int], layout: Layout
) -> None:
    deltas = [told(*pair) for pair in texts]
    concept, feature = (min(pair[i] for pair in texts) for i in (0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "_number", number_of)
        for order in orders:
            disk, rng = FakeDisk(), random.Random(order)
            store = Store.open(disk, SMALL, layout)
            store.hold(range(layout.shards))
            for at in rng.sample(range(len(deltas)), len(deltas)):
                shards = np.arange(layout.shards, dtype=np.uint16)
                store.apply([Update(JOB, at, shards, deltas[at])])
                if not rng.randrange(4):
                    store.snapshot()
            for one in (store, Store.open(disk)):
                assert one.digest() == digest(total(deltas))
                neuron = Neuron(number_of(concept), number_of(feature))
                (row,) = one.read(Question([neuron]))
                assert row is not None
                assert row.name == (concept, feature)
