"""Sets of shards as bytes: against plain sets, in one way only, and short."""

import random

import numpy as np
import pytest

from giaann_p2p.errors import MessageError, UsageError
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.swarm.wire.shardset import most_bytes, packed, recounted, unpacked


def shards(*numbers: int) -> Shards:
    return np.array(numbers, np.uint16)


def plainly_packed(members: set[int], count: int) -> bytes:
    """Return the shortest of the three forms, written number by number."""
    others = set(range(count)) - members
    gaps = [bytes([form]) + plain_gaps(some) for form, some in enumerate((members, others))]
    bits = sum(1 << number for number in members).to_bytes((count + 7) // 8, "little")
    return min(b"\2" + bits, *gaps, key=len)


def plain_gaps(numbers: set[int]) -> bytes:
    found, before = bytearray(), -1
    for number in sorted(numbers):
        gap, before = number - before - 1, number
        while gap > 127:
            found.append(gap & 127 | 128)
            gap >>= 7
        found.append(gap)
    return bytes(found)


@pytest.mark.parametrize("count", [1, 2, 4, 8, 16, 64, 256, 2048])
def test_sets_come_back_and_are_written_as_plainly(count: int) -> None:
    rng = random.Random(count)
    for _ in range(100):
        size = rng.choice([0, 1, count, count - 1, rng.randint(0, count), rng.randint(0, count)])
        members = set(rng.sample(range(count), size))
        data = packed(shards(*sorted(members)), count)
        assert data == plainly_packed(members, count)
        assert len(data) <= most_bytes(count)
        found = unpacked(data, count)
        assert found.dtype == np.uint16
        assert found.tolist() == sorted(members)


def test_bits_are_taken_where_gaps_are_as_long() -> None:
    members = {*range(254), 2047}
    data = packed(shards(*sorted(members)), 2048)
    assert data == plainly_packed(members, 2048)
    assert (data[0], len(data)) == (2, 257)


@pytest.mark.parametrize("seed", range(20))
def test_large_sets_come_back(seed: int) -> None:
    rng, count = np.random.default_rng(seed), 1 << 16
    members = np.flatnonzero(rng.random(count) < seed / 19).astype(np.uint16)
    data = packed(members, count)
    assert np.array_equal(unpacked(data, count), members)
    assert len(data) <= most_bytes(count) == 8193
    assert data == plainly_packed(set(members.tolist()), count)


def test_all_sets_of_few_shards_have_one_encoding_each() -> None:
    for count in (1, 2, 4, 8):
        found: dict[bytes, bytes] = {}
        for data in [n.to_bytes(size, "big") for size in (1, 2) for n in range(1 << 8 * size)]:
            try:
                read = unpacked(data, count).tobytes()
            except MessageError:
                continue
            assert found.setdefault(read, data) == data
        assert len(found) == 1 << count


@pytest.mark.parametrize(
    ("data", "count", "why"),
    [
        (b"", 256, "has 1 to 33 bytes, not 0"),
        (b"\2" + bytes(33), 256, "has 1 to 33 bytes, not 34"),
        (b"\2" + b"\x55" * 31, 256, "a bitmap of 31 bytes, not 32"),
        (b"\3", 256, "the unknown form 3"),
        (b"\xff", 256, "the unknown form 255"),
        (b"\0\x80", 256, "cut off or too long"),
        (b"\0\x80\x80\x80\0", 256, "cut off or too long"),
        (b"\0\xff\xff\x7f", 256, "shard 2097151, but there are 256"),
        (b"\0\x80\2", 256, "shard 256, but there are 256"),
        (b"\0\x80\0", 256, "not in its canonical encoding"),
        (b"\2" + bytes(32), 256, "not in its canonical encoding"),
        (b"\0" + bytes(32), 256, "not in its canonical encoding"),
        (b"\2\xf5", 4, "not in its canonical encoding"),
    ],
)
def test_what_is_no_set_is_refused(data: bytes, count: int, why: str) -> None:
    with pytest.raises(MessageError, match=why):
        unpacked(data, count)


@pytest.mark.parametrize("wrong", [(3, 2), (3, 3), (256,)])
def test_only_ascending_shards_are_packed(wrong: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="ascending order, and below 256"):
        packed(shards(*wrong), 256)


COUNTS = (1, 2, 4, 16, 64)


@pytest.mark.parametrize("before", COUNTS)
@pytest.mark.parametrize("after", COUNTS)
@pytest.mark.parametrize("whole", [True, False])
def test_a_set_is_counted_anew_as_it_is_one_shard_at_a_time(
    before: int, after: int, whole: bool
) -> None:
    rng = random.Random(f"{before} {after}")
    for _ in range(50):
        members = set(rng.sample(range(before), rng.choice([0, before, rng.randint(0, before)])))
        found = recounted(shards(*sorted(members)), before, after, whole=whole)
        if after >= before:
            wanted = {shard for shard in range(after) if shard % before in members}
        else:
            children = [{*range(shard, before, after)} for shard in range(after)]
            wanted = {
                shard
                for shard, those in enumerate(children)
                if (those <= members if whole else those & members)
            }
        assert found.dtype == np.uint16
        assert found.tolist() == sorted(wanted)


@pytest.mark.parametrize("whole", [True, False])
def test_a_set_comes_back_from_more_shards(whole: bool) -> None:
    rng = np.random.default_rng(5)
    some = np.flatnonzero(rng.random(256) < 0.3).astype(np.uint16)
    for more in (512, 1 << 16):
        there = recounted(some, 256, more)
        assert recounted(there, more, 256, whole=whole).tolist() == some.tolist()


def test_a_row_stays_in_the_children_of_its_shard() -> None:
    concept, feature = np.random.default_rng(6).integers(0, 1 << 63, (2, 1000)).astype(np.uint64)
    before = Layout(shards=16, blocks=2).shards_of(concept, feature)
    after = Layout(shards=64, blocks=2).shards_of(concept, feature)
    for shard in range(16):
        children = recounted(shards(shard), 16, 64)
        assert np.isin(after, children).tolist() == (before == shard).tolist()
