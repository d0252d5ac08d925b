"""How much a store takes: full in memory, and what dropped shards give back."""

import re
import threading

import pytest

from giaann_p2p.errors import StoreFull
from giaann_p2p.model.learn import learn
from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.store.budget import Budget
from giaann_p2p.store.content import Content
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.helpers import SMALL, built
from tests.helpers_store import JOB, Lesson, lessons, on_disk
from tests.unit.store.helpers import ALL, LAYOUT, in_memory, same, taught


def test_a_store_full_in_memory_is_read_and_takes_more_once_shards_are_dropped(
    disk: FakeDisk,
) -> None:
    on_disk(disk, LAYOUT).close()
    store = Store.open(disk, budget=Budget(200_000))
    before = disk.operations
    told = lessons(1000)
    taken = filled(store, told)
    assert 20 < taken < 1000
    assert disk.operations > before
    assert same(store, taught(*told[:taken]))
    assert [len(new) for new in store.apply([told[0].update(ALL)])] == [0]  # it needs no room
    with pytest.raises(StoreFull):
        store.adopt(big_content())
    store.drop([1, 2, 3])
    store.compact()
    store.apply([told[taken].update([0])])
    store.drop(ALL)
    store.hold(ALL)
    store.apply([one.update(ALL) for one in told[:10]])
    assert same(store, taught(*told[:10]))
    assert same(Store.open(disk, budget=Budget(60_000)), taught(*told[:10]))


def filled(store: Store, told: list[Lesson]) -> int:
    """Return how many chunks there was room for."""
    for taken, one in enumerate(told):
        try:
            store.apply([one.update(ALL)])
        except StoreFull as error:
            told_so = re.match(r"the store is full: [\d,]+ bytes are in use, .* limit", str(error))
            return taken if told_so else -1
    return len(told)


def big_content() -> Content:
    other = Store.in_memory(SMALL, LAYOUT)
    other.hold(ALL)
    updates = [one.update(ALL) for one in lessons(500, seed=9)]
    other.apply([update._replace(job=b"a job of its own") for update in updates])
    return other.content(0)


def test_compacting_lets_go_of_what_dropped_shards_had() -> None:
    store = in_memory()
    delta = learn(built(*(f"noun{i}/N sees/ noun{i + 1}/N" for i in range(300))), SMALL)
    store.apply([Update(JOB, 0, store.shards, delta)])
    store.compact()
    count = len(store._state.columns.neurons)
    full, kept = store.nbytes, store.content(0)
    neurons = [
        Neuron(*ids)
        for ids, count in zip(
            zip(kept.delta.concept.tolist(), kept.delta.feature.tolist(), strict=True),
            kept.delta.count.tolist(),
            strict=True,
        )
        if count
    ]
    missing: list[None] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            missing.extend(row for row in store.read(Question(neurons)) if row is None)

    reader = threading.Thread(target=read)
    reader.start()
    store.drop([1, 2, 3])
    for _ in range(5):
        store.compact()
    done.set()
    reader.join()
    assert missing == []
    assert store.nbytes < full
    assert len(store._state.columns.neurons) == kept.delta.neurons < count / 2
    assert store.digest() == kept.digest
    assert store.content(0).applied == kept.applied
