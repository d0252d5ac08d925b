"""Shards that are dropped while a snapshot is written, and perhaps held again by then."""

import random
from collections.abc import Callable, Iterable

import pytest

from giaann_p2p.store import snapshot
from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.sync import NEVER
from giaann_p2p.store.fsck import fsck
from giaann_p2p.store.snapshot import write
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from tests.helpers_store import copy_of, on_disk, state_of
from tests.unit.store.helpers import LAYOUT, LESSONS, in_memory


def delta_for_chunk_0(lesson: int, shards: range, *, withdrawn: bool = False) -> Update:
    """Return a lesson as chunk 0: a liar may have sent each owner another delta."""
    update = LESSONS[lesson].update(shards)
    return update._replace(chunk=0 | (WITHDRAWN if withdrawn else 0))


def snapshot_with(
    store: Store, between: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Take a snapshot, and call `between` after its log begins and before a shard is captured."""

    def late(
        files: Files, identity: bytes, number: int, records: Iterable[tuple[int, bytes]]
    ) -> int:
        between()
        return write(files, identity, number, records)

    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "write", late)
        store.snapshot()


@pytest.mark.parametrize("shard", range(4))
def test_a_shard_held_again_may_have_another_delta_of_a_withdrawn_chunk(
    disk: FakeDisk, store: Store, shard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = range(shard, shard + 1)
    store.apply([delta_for_chunk_0(0, only)])
    elsewhere = in_memory()
    elsewhere.apply([delta_for_chunk_0(5, only)])

    def between() -> None:
        store.apply([delta_for_chunk_0(0, only, withdrawn=True)])
        store.drop([shard])
        store.hold([shard])
        store.adopt(elsewhere.content(shard))

    snapshot_with(store, between, monkeypatch)
    assert fsck(copy_of(disk)).problems == []
    for seed in range(5):
        assert state_of(Store.open(disk.crash(random.Random(seed)))) == state_of(store)


def test_a_drop_is_durable_before_the_snapshot_that_lacks_the_shard(
    disk: FakeDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_disk(disk, LAYOUT).close()
    store = Store.open(disk, sync=NEVER)
    store.apply([LESSONS[0].update(range(4))])
    snapshot_with(store, lambda: store.drop([2]), monkeypatch)
    for seed in range(20):
        assert state_of(Store.open(disk.crash(random.Random(seed)))) == state_of(store)


def test_shards_without_a_drop_are_in_the_snapshot(
    disk: FakeDisk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drop before one snapshot does not keep the shard out of the next."""
    store.apply([LESSONS[0].update(range(4))])
    snapshot_with(store, lambda: store.drop([1]), monkeypatch)
    store.hold([1])
    store.apply([LESSONS[1].update(range(4))])
    store.snapshot()
    assert [n for n in disk.names() if n.startswith("log")] == ["log-00000003"]
    assert state_of(Store.open(disk, readonly=True)) == state_of(store)
