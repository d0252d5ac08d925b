"""A shard sent in parts."""

import random

import msgspec
import numpy as np
import pytest

from giaann_p2p.errors import DamagedError, MessageError, UsageError
from giaann_p2p.model.delta import EMPTY, Delta, total
from giaann_p2p.store import transfer
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.codec.parcel import Limits, encode, sizes_of
from giaann_p2p.store.content import Content
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.transfer import Export, Import, Manifest, cut
from tests.helpers import SMALL, assert_same
from tests.helpers_store import JOB, lessons, state_of

LAYOUT = Layout(shards=2)
LIMITS = Limits(SMALL.branches, SMALL.segments, 1000, 10_000, 1000)
LESSONS = lessons(30)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "PART", 50)


def taught(first: int, last: int) -> Store:
    store = Store.in_memory(SMALL, LAYOUT)
    store.hold(range(2))
    store.apply([one.update(range(2)) for one in LESSONS[first:last]])
    return store


def sent(export: Export, seed: int = 0) -> Content:
    taken = Import(export.manifest, LIMITS)
    numbers = taken.missing
    random.Random(seed).shuffle(numbers)
    for number in numbers:
        taken.take(number, export.part(number))
    return taken.content()


@pytest.mark.parametrize("seed", range(3))
def test_parts_come_in_any_order(seed: int) -> None:
    store = taught(0, 30)
    other = Store.in_memory(SMALL, LAYOUT)
    for shard in range(2):
        export = Export(store.content(shard))
        assert len(export.manifest.parts) > 2
        assert Manifest.from_bytes(export.manifest.to_bytes()) == export.manifest
        other.adopt(sent(export, seed))
    assert state_of(other) == state_of(store)


def test_what_is_still_missing_is_told_and_anyone_may_send_it() -> None:
    one, two = taught(0, 30), taught(0, 30)
    export, again = Export(one.content(0)), Export(two.content(0))
    assert export.manifest == again.manifest
    taken = Import(export.manifest, LIMITS)
    parts = len(export.manifest.parts)
    taken.take(1, export.part(1))
    taken.take(1, again.part(1))
    assert taken.missing == [0, *range(2, parts)]
    with pytest.raises(UsageError, match=f"{parts - 1} parts are still missing"):
        taken.content()
    for number in taken.missing:
        taken.take(number, again.part(number))
    assert taken.missing == []
    assert taken.content().digest == one.content(0).digest


def test_an_export_stays_as_it_was() -> None:
    store = taught(0, 10)
    before = store.content(0)
    export = Export(before)
    store.apply([one.update(range(2)) for one in LESSONS[10:]])
    store.drop([0])
    found = sent(export)
    assert_same(found.delta, before.delta)
    assert list(found.applied[0].of(JOB)) == list(range(10))


def test_parts_of_different_moments_are_not_taken_for_one() -> None:
    store = taught(0, 29)
    before = Export(store.content(0))
    store.apply([LESSONS[29].update(range(2))])
    behind = Export(store.content(0))
    taken = Import(behind.manifest, LIMITS)
    assert before.part(0) != behind.part(0)
    with pytest.raises(DamagedError, match="part 0 does not match the manifest"):
        taken.take(0, before.part(0))
    for number in taken.missing:
        taken.take(number, behind.part(number))
    assert taken.content().digest == store.content(0).digest


def test_parts_that_do_not_add_up_to_the_promise_are_refused() -> None:
    export = Export(taught(0, 29).content(0))
    liar = Import(msgspec.structs.replace(export.manifest, digest=bytes(32)), LIMITS)
    for number in liar.missing:
        liar.take(number, export.part(number))
    with pytest.raises(DamagedError, match="parts of shard 0"):
        liar.content()


def test_a_part_that_is_damaged_changes_nothing() -> None:
    export = Export(taught(0, 30).content(1))
    taken = Import(export.manifest, LIMITS)
    part = bytearray(export.part(0))
    part[len(part) // 2] ^= 1
    with pytest.raises(DamagedError):
        taken.take(0, bytes(part))
    with pytest.raises(DamagedError):
        taken.take(0, b"")
    assert 0 in taken.missing
    assert taken.size == 0


def test_a_part_beyond_the_limits_is_not_unpacked() -> None:
    export = Export(taught(0, 30).content(1))
    taken = Import(export.manifest, Limits(2, 5, 1000, 10, 1000))
    for number in taken.missing:
        taken.take(number, export.part(number))
    assert taken.size == export.size
    with pytest.raises(DamagedError, match="connections: 51 is above the limit"):
        taken.content()


def test_no_more_connections_come_than_were_promised() -> None:
    export = Export(taught(0, 30).content(1))
    sizes = [sizes_of(export.part(n)).connections for n in range(len(export.manifest.parts))]
    taken = Import(msgspec.structs.replace(export.manifest, connections=sum(sizes[:2])), LIMITS)
    for number in (0, 1, 1, 0):  # twice the same is once
        taken.take(number, export.part(number))
    with pytest.raises(DamagedError, match="more connections than the manifest"):
        taken.take(2, export.part(2))


def test_what_came_as_one_part_is_written_down_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "PART", 1 << 20)
    disk, whole = FakeDisk(), taught(0, 30)
    store = Store.open(disk, SMALL, LAYOUT)
    contents = [sent(Export(whole.content(shard))) for shard in range(2)]
    assert [content.parcel for content in contents] == [
        Export(whole.content(shard)).part(0) for shard in range(2)
    ]
    store.adopt(*contents)
    assert state_of(store) == state_of(Store.open(disk, SMALL, LAYOUT)) == state_of(whole)


def test_numbers_that_there_are_not() -> None:
    export = Export(taught(0, 30).content(1))
    taken = Import(export.manifest, LIMITS)
    for number in (-1, len(export.manifest.parts)):
        with pytest.raises(DamagedError, match=f"there is no part {number}"):
            taken.take(number, export.part(0))
        with pytest.raises(UsageError, match="only 0 to"):
            export.part(number)


def test_an_empty_shard_has_no_part() -> None:
    store = Store.in_memory(SMALL, LAYOUT)
    store.hold(range(2))
    export = Export(store.content(0))
    assert (export.manifest.parts, export.manifest.connections) == ([], 0)
    found = sent(export)
    assert found.delta is EMPTY
    other = Store.in_memory(SMALL, LAYOUT)
    other.adopt(found)
    assert other.shards.tolist() == [0]


def test_one_shard_is_sent_at_a_time() -> None:
    store = Store.in_memory(SMALL, LAYOUT)
    with pytest.raises(UsageError, match="one shard can be sent at a time, not 0"):
        Export(store.content(0))
    two = Content(np.arange(2, dtype=np.uint16), [Applied(), Applied()], EMPTY)
    with pytest.raises(UsageError, match="one shard can be sent at a time, not 2"):
        Export(two)


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ([0, b"", b"", []], "invalid manifest"),
        ([0, b"", b"", [], 0, 0], "invalid manifest"),
        (["0", b"", b"", [], 0], "invalid manifest"),
        ([-1, b"", b"", [], 0], "shard number is out of range: -1"),
        ([1 << 16, b"", b"", [], 0], "shard number is out of range: 65536"),
        ([0, b"", b"", [bytes(16)] * 9, 100], "a manifest has 9 parts"),
        ([0, b"", b"", [], 1 << 40], "connections are out of range: 1099511627776"),
    ],
)
def test_what_is_no_manifest_is_refused(manifest: list[object], told: str) -> None:
    with pytest.raises(DamagedError, match=told):
        Manifest.from_bytes(msgspec.msgpack.encode(manifest))


def test_what_is_no_set_of_chunks_is_refused() -> None:
    manifest = Export(taught(0, 1).content(0)).manifest
    bad = msgspec.structs.replace(manifest, applied=b"what?")
    with pytest.raises(MessageError, match="invalid set of chunks"):
        Import(bad, LIMITS)


def test_parts_add_up_and_each_is_of_a_size() -> None:
    whole = total([one.delta for one in LESSONS])
    parts = cut(whole)
    assert_same(total(parts), whole)
    longest = int(np.diff(whole.row_starts).max())
    assert max(part.connections for part in parts) <= 50 + longest
    assert len(parts) >= whole.connections // (50 + longest)
    assert cut(EMPTY) == []


def test_a_shard_is_united_with_what_is_here() -> None:
    whole = taught(0, 20)
    one, two = taught(0, 10), taught(10, 20)
    for shard in range(2):
        one.adopt(sent(Export(two.content(shard))))
    assert state_of(one) == state_of(whole)
    for other in (two, whole):  # less, and the same again
        for shard in range(2):
            one.adopt(sent(Export(other.content(shard))))
        assert state_of(one) == state_of(whole)
    before = state_of(one)
    with pytest.raises(UsageError, match="shard 0 cannot be merged"):
        one.adopt(sent(Export(taught(15, 25).content(0))))
    assert state_of(one) == before


def test_all_parts_together_have_few_neurons_without_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transfer, "ALONE", 30)
    words = np.arange(1, 21, dtype=np.uint64)
    names = {word: f"word{word}" for word in words.tolist()}
    nothing = np.array([], np.int32)
    alone = Delta(
        words,
        np.zeros(20, np.uint64),
        np.ones(20, np.int64),
        np.zeros(21, np.int64),
        nothing,
        nothing.astype(np.uint8),
        nothing.astype(np.uint8),
        nothing.astype(np.int64),
        names,
    )
    part = encode(alone)
    digests = [transfer._digest(part)] * 2
    taken = Import(Manifest(0, bytes(32), Applied().to_bytes(), digests, 1000), LIMITS)
    taken.take(0, part)
    taken.take(0, part)  # the same again counts once
    with pytest.raises(DamagedError, match="part 1 has too many neurons without connections"):
        taken.take(1, part)
    assert taken.missing == [1]
