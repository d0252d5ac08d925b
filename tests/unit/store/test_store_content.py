"""Content of shards that comes from elsewhere: what of it a store takes, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest

from giaann_p2p.errors import StoreError, UsageError
from giaann_p2p.model.delta import EMPTY
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.store import Store
from tests.helpers import SMALL
from tests.unit.store.helpers import ALL, LAYOUT, LESSONS, in_memory, same, taught


def test_content_that_could_not_be_read_back_is_refused(disk: FakeDisk, store: Store) -> None:
    store.apply([LESSONS[0].update(ALL)])
    (shard,) = (n for n in ALL if n == LAYOUT.shard_of(*next(iter(LESSONS[0].rows))))
    held = store.content(shard)
    other = Store.in_memory(SMALL, LAYOUT)
    with pytest.raises(UsageError, match="lacks the text"):
        other.adopt(replace(held, delta=replace(held.delta, names={})))
    wide = replace(held.delta, segment=held.delta.segment + np.uint8(SMALL.segments))
    with pytest.raises(UsageError, match="the store's model has 2 and 5"):
        other.adopt(replace(held, delta=wide))
    other.adopt(held)
    assert other.digest() == held.digest


def test_the_same_chunks_cannot_have_come_to_something_else(store: Store) -> None:
    store.apply([LESSONS[0].update(ALL)])
    held = store.content(0, 1, 2, 3)
    liar = replace(held, delta=replace(held.delta, strength=held.delta.strength + 1))
    with pytest.raises(StoreError, match="one of them is wrong"):
        store.adopt(liar)
    assert same(store, taught(LESSONS[0]))


def test_content_of_more_chunks_never_takes_anything_away() -> None:
    """A stranger may say that it has one chunk more, and send a shard with nothing in it."""
    store, whole = in_memory(*LESSONS[:3]), in_memory(*LESSONS[:5]).content(*ALL)
    before = store.digest()
    less = replace(whole.delta, count=np.maximum(whole.delta.count - 1, 0))
    weaker = replace(whole.delta, strength=np.maximum(whole.delta.strength // 2, 1))
    for liar in (EMPTY, less, weaker, in_memory(*LESSONS[3:5]).content(*ALL).delta):
        with pytest.raises(StoreError, match="lacks some of their rows"):
            store.adopt(replace(whole, delta=liar))
    assert store.digest() == before
    store.adopt(whole)
    assert store.digest() == in_memory(*LESSONS[:5]).digest()


def test_content_of_other_chunks_takes_nothing_away_either() -> None:
    """It is said to lack one whose delta is kept here, and to have another one."""
    store = Store.in_memory(SMALL, LAYOUT, retain=True)
    store.hold(ALL)
    store.apply([one.update(ALL) for one in LESSONS[:3]])
    other = in_memory(*LESSONS[1:4]).content(*ALL)
    with pytest.raises(StoreError, match="lacks some of their rows"):
        store.adopt(replace(other, delta=EMPTY))
    store.adopt(other)
    assert store.digest() == in_memory(*LESSONS[:4]).digest()


def test_of_several_shards_that_come_each_is_compared_with_its_own() -> None:
    """Shard 0 is ahead here, shard 1 is behind."""
    store = Store.in_memory(SMALL, LAYOUT)
    store.hold(ALL)
    store.apply([one.update([0]) for one in LESSONS[:9]])
    store.adopt(in_memory(*LESSONS[:4]).content(0, 1))
    expected = dict(in_memory(*LESSONS[:9]).digests())
    expected[1] = dict(in_memory(*LESSONS[:4]).digests())[1]
    found = dict(store.digests())
    assert (found[0], found[1]) == (expected[0], expected[1])


def test_content_of_other_shards_or_twice_is_refused(store: Store) -> None:
    held = in_memory(*LESSONS[:9]).content(0, 1)
    shard = LAYOUT.shards_of(held.delta.concept, held.delta.feature)[held.delta.count > 0]
    assert set(shard.tolist()) == {0, 1}
    with pytest.raises(UsageError, match="rows of other shards"):
        store.adopt(replace(held, shards=held.shards[:1], applied=held.applied[:1]))
    twice = np.array([0, 1, 1], np.uint16)
    with pytest.raises(UsageError, match="given only once"):
        store.adopt(replace(held, shards=twice, applied=[*held.applied, held.applied[1]]))


def test_content_that_is_known_is_not_written_again(disk: FakeDisk, store: Store) -> None:
    store.apply([one.update(ALL) for one in LESSONS[:5]])
    held = store.content(0, 1, 2, 3)
    size = disk.size("log-00000001")
    for _ in range(3):
        store.adopt(held)
    assert disk.size("log-00000001") == size


def test_what_a_small_shard_holds_is_worked_out_once_until_it_changes() -> None:
    store = in_memory(*LESSONS[:3])
    for known in range(3, 6):
        for shard in ALL:
            held = store.content(shard).delta
            assert store.content(shard).delta is held
            fresh = in_memory(*LESSONS[:known]).content(shard).delta
            assert encode(held) == encode(fresh)
        store.apply([LESSONS[known].update(ALL)])


def test_the_smaller_of_two_texts_wins_also_where_nothing_else_changes() -> None:
    """As after a collision of two words: the shard's rows are the same, and their names are not."""
    store, fresh = in_memory(*LESSONS[:6]), in_memory(*LESSONS[:6])
    before = {shard: store.content(shard).delta for shard in ALL}
    (large,) = (n for n in ALL if before[n].neurons == max(d.neurons for d in before.values()))
    held = in_memory(*LESSONS[:6]).content(large)
    names = {word: "!" + text for word, text in held.delta.names.items()}
    for one in (store, fresh):
        one.drop([large])
        one.adopt(replace(held, delta=replace(held.delta, names=names)))
    after = {shard: store.content(shard).delta for shard in ALL}
    assert any(after[n].names != before[n].names for n in {*ALL} - {large})
    for shard in ALL:
        assert encode(after[shard]) == encode(fresh.content(shard).delta)


def test_what_is_let_go_of_and_rebuilt_is_worked_out_anew() -> None:
    store = in_memory(*LESSONS[:3])
    before = {shard: encode(store.content(shard).delta) for shard in ALL}
    store.drop([1, 2, 3])
    store.compact()
    assert encode(store.content(0).delta) == before[0]
    store.hold([1])
    assert encode(store.content(1).delta) == encode(EMPTY)
