"""A shard that overlaps with what is here: taken in with the deltas that it lacks."""

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.store import Store
from tests.helpers_store import JOB, state_of
from tests.unit.store.helpers_archive import ALL, begun, learned, numbers, told


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, disk: FakeDisk) -> Store:
    return begun(disk if request.param == "disk" else None)


def test_a_shard_that_overlaps_is_taken_in_with_the_deltas_that_it_lacks(store: Store) -> None:
    store.apply(told(0, 1, 2, 3))
    theirs = learned(1, 2, 4, 5)
    for n in ALL:
        store.adopt(theirs.content(n))
        assert store.applied(n, JOB) == numbers(*range(6))
    assert state_of(store) == state_of(learned(*range(6)))
    assert store.retained(JOB) == numbers(0, 1, 2, 3)
    if store._disk:
        again = Store.open(store._disk.files, retain=True)
        assert state_of(again) == state_of(store)


def test_it_is_refused_without_these_deltas(store: Store) -> None:
    store.apply(told(0, 1, 2, 3))
    store.release(JOB, [0])
    before = state_of(store)
    for theirs in (learned(1, 4), learned(3, 4)):
        with pytest.raises(UsageError, match=r"cannot be merged: .* in common, each has others"):
            store.adopt(theirs.content(2))
    assert state_of(store) == before
    store.adopt(learned(0, 2, 4).content(2))
    assert store.content(2).digest == learned(0, 1, 2, 3, 4).content(2).digest


def test_deltas_that_are_not_needed_are_not_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.apply(told(0, 1))
    monkeypatch.delattr(Store, "recall")
    for theirs in (learned(0), learned(0, 1), learned(3), learned(0, 1, 3, 4)):
        store.adopt(theirs.content(2))
    assert store.applied(2, JOB) == numbers(0, 1, 3, 4)
