"""Sets of chunks."""

import hashlib
import random
from weakref import ref

import msgspec
import pytest
from pyroaring import BitMap

from giaann_p2p.errors import DamagedError, MessageError
from giaann_p2p.store.applied import (
    MOST_CHUNKS,
    MOST_JOBS,
    WITHDRAWN,
    Applied,
    differing,
    digest_of,
    memory_of,
)
from giaann_p2p.swarm.wire.messages import MOST_BYTES

ONE, TWO = b"one job of many.", b"and another one."


def applied(*chunks: tuple[bytes, int]) -> Applied:
    found = Applied()
    for job, number in chunks:
        found = found.plus(job, number)
    return found


def test_chunks_are_there_once_they_are_added() -> None:
    found = applied((ONE, 1), (ONE, 1), (ONE, 1 << 31), (TWO, 7))
    assert (ONE, 1) in found
    assert (ONE, 7) not in found
    assert (TWO, 1) not in found
    assert (b"a third one.....", 1) not in found
    assert len(found) == 3
    assert list(found) == [ONE, TWO]
    assert list(found.of(ONE)) == [1, 1 << 31]
    assert list(found.of(b"a third one.....")) == []
    assert repr(found) == "<Applied: 3 chunks of 2 jobs>"
    assert 100 < found.nbytes < 1000


def test_what_a_comparison_comes_to_is_found_once_for_all_shards() -> None:
    one, other = applied((ONE, 1), (TWO, 1)), applied((ONE, 1), (ONE, 2), (TWO, 3))
    assert (one - other) is (one - other)
    assert (one & other) is (one & other)
    assert (one - other) == applied((TWO, 1))
    assert (one & other) == applied((ONE, 1))
    assert not one <= other
    assert one & other <= other
    third = applied((TWO, 1))
    for _ in range(2):  # in turn, as the shards' other replicas are
        assert [one - third, one - other] == [applied((ONE, 1)), third]


def test_what_a_comparison_came_to_is_not_taken_for_that_with_a_later_set() -> None:
    one = applied((ONE, 1), (ONE, 2))
    for number in range(100):  # a set that is gone may lie where the next one does
        other = applied((ONE, 1 + number % 2))
        assert list((one - other).of(ONE)) == [2 - number % 2]
        assert list((one & other).of(ONE)) == [1 + number % 2]
        del other


def test_comparisons_keep_no_other_set_alive_and_are_bounded() -> None:
    one, other = applied((ONE, 1)), applied((ONE, 2))
    gone, found = ref(other), ref(one - other)
    assert found() == one
    assert not one <= other
    del other
    assert gone() is None
    assert one - applied((ONE, 1)) == Applied()
    assert found() is None  # the next comparison drops what came of those with sets that are gone
    others = [applied((ONE, number)) for number in range(2, 200)]
    assert all(one - other == one for other in others)
    assert len(one._compared) < 20


def test_sets_are_compared_and_joined() -> None:
    small, large, other = applied((ONE, 1)), applied((ONE, 1), (ONE, 2), (TWO, 1)), Applied()
    assert small <= large
    assert not large <= small
    assert other <= small
    assert not small <= applied((TWO, 1))
    assert small.meets(large)
    assert not small.meets(applied((TWO, 1), (ONE, 5)))
    assert not small.meets(other)
    assert small | applied((ONE, 2), (TWO, 1)) == large
    assert len(small) == 1
    assert small != large
    assert small != "small"
    assert large - small == applied((ONE, 2), (TWO, 1))
    assert small - large == other
    assert list(small - large) == []
    assert large - other == large
    for one in (small, large, other):  # itself, and its equal
        for same in (one, Applied.from_bytes(one.to_bytes())):
            assert one <= same
            assert one == same
            assert one - same == Applied()


def test_the_digest_follows_what_is_there() -> None:
    found = applied((ONE, 1), (TWO, 3))
    first = found.digest
    assert len(first) == 16
    assert applied((TWO, 3), (ONE, 1)).digest == found.digest == first
    assert Applied.from_bytes(found.to_bytes()).digest == first
    assert found.plus(ONE, 1).digest == first
    assert found.plus(ONE, 2).digest == applied((ONE, 2), (ONE, 1), (TWO, 3)).digest != first
    assert Applied().digest == hashlib.blake2b(bytes(4096), digest_size=16).digest()


def test_the_digest_of_a_part_follows_the_jobs_of_one_first_byte() -> None:
    jobs = [bytes([part, *range(at, at + 15)]) for at, part in enumerate((0, 1, 1, 7, 255))]
    grown = Applied()
    for number, job in enumerate(jobs * 2):
        if number % 2:
            assert len(grown.parts) == 4096  # what is known before is used for what comes after
        before, grown = grown, grown.plus(job, number)
        fresh = Applied.from_bytes(grown.to_bytes())
        assert grown.parts == fresh.parts
        assert grown.digest == fresh.digest == digest_of(grown.parts)
        assert differing(before.parts, grown.parts) == [job[0]]
    assert grown.parts[16 * 2 : 16 * 7] == bytes(16 * 5)
    some = grown.of_parts([1, 9])
    assert sorted(some) == sorted(jobs[1:3])
    assert differing(some.parts, grown.parts) == [0, 7, 255]
    without = grown.with_parts([1, 9], Applied())
    assert differing(without.parts, grown.parts) == [1]
    assert without.with_parts([1], some) == grown
    assert all(without.of(job) is grown.of(job) for job in without)


def test_one_jobs_chunks_are_a_set() -> None:
    assert applied((ONE, 1), (TWO, 3)).of_job(ONE) == applied((ONE, 1))
    assert applied((ONE, 1)).of_job(TWO) == Applied()


def test_a_set_never_changes() -> None:
    found = applied((ONE, 1))
    before = found.fingerprint, found.to_bytes()
    other = found.plus(ONE, 2).plus(TWO, 2)
    joined = (found | Applied()).plus(ONE, 3)
    assert found == applied((ONE, 1))
    assert (found.fingerprint, found.to_bytes()) == before
    assert (len(found), len(other), len(joined)) == (1, 3, 2)
    assert other.fingerprint == applied((TWO, 2), (ONE, 2), (ONE, 1)).fingerprint
    assert found
    assert not Applied()


@pytest.mark.parametrize("order", range(3))
def test_equal_sets_are_equal_bytes(order: int) -> None:
    chunks = [(job, n) for job in (ONE, TWO) for n in [*range(300), 70_000, (1 << 32) - 1]]
    found = applied(*random.Random(order).sample(chunks, len(chunks)))
    data = applied(*chunks).to_bytes()
    assert found.to_bytes() == data
    assert Applied.from_bytes(data) == found
    assert len(data) < 200


@pytest.mark.parametrize("data", [b"", b"\xc1", msgspec.msgpack.encode([(ONE, b"\0" * 9)])])
def test_what_is_no_set_is_damage(data: bytes) -> None:
    with pytest.raises(DamagedError, match="invalid set of chunks"):
        Applied.from_bytes(data)


def test_any_bytes_are_a_set_or_damage() -> None:
    data, rng = applied(*((ONE, n) for n in [*range(0, 300, 3), *range(9000, 9500)])).to_bytes(), 0
    for seed in range(3000):
        rng = random.Random(seed)
        changed = bytearray(data)
        changed[rng.randrange(min(len(data), 80))] = rng.randrange(256)
        try:
            len(Applied.from_bytes(changed[: rng.choice([len(data), rng.randrange(len(data))])]))
        except DamagedError:
            continue


def test_what_others_send_is_read_up_to_so_many_jobs() -> None:
    jobs = {number.to_bytes(16, "big"): BitMap([number]) for number in range(MOST_JOBS)}
    data = Applied(jobs).to_bytes()
    assert len(data) < MOST_BYTES  # it goes into a message
    assert Applied.received(data) == Applied(jobs)
    more = b"\xdd" + (MOST_JOBS + 1).to_bytes(4, "big")
    with pytest.raises(MessageError, match=r"more than 131,072 jobs: .* of length <= 131072"):
        Applied.received(more)  # before any job of it is read
    jobs[bytes(range(16))] = BitMap([1])
    data = Applied(jobs).to_bytes()
    with pytest.raises(MessageError, match="more than 131,072 jobs"):
        Applied.received(data)
    assert Applied.from_bytes(data) == Applied(jobs)  # the own ones are never too many


def test_what_others_send_is_read_up_to_so_many_chunks() -> None:
    half = MOST_CHUNKS // 2
    chunks = {ONE: BitMap(range(7, half + 7)), TWO: BitMap(range(half))}
    assert len(Applied.received(Applied(chunks).to_bytes())) == MOST_CHUNKS
    data = Applied(chunks).plus(TWO, half).to_bytes()
    assert len(data) < 20_000
    with pytest.raises(MessageError, match="67,108,865 chunks; the limit is 67,108,864"):
        Applied.received(data)


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", msgspec.msgpack.encode([(b"x", BitMap().serialize())])]
)
def test_what_others_send_and_is_no_set_is_their_fault(data: bytes) -> None:
    with pytest.raises(MessageError, match="invalid set of chunks"):
        Applied.received(data)


def test_what_is_the_same_is_in_memory_once() -> None:
    mine = Applied({b"a": BitMap([1]), b"b": BitMap([2]), b"c": BitMap([3])})
    theirs = Applied({b"a": BitMap([1]), b"b": BitMap([2, 4]), b"d": BitMap([3])})
    shared = theirs.sharing(mine)
    assert shared == theirs
    assert shared.of(b"a") is mine.of(b"a")
    assert list(shared.of(b"b")) == [2, 4]
    assert list(mine.of(b"b")) == [2]
    assert theirs.sharing(Applied()) == theirs
    assert not Applied().sharing(mine)


def test_what_a_set_of_another_peer_shares_takes_no_memory_of_its_own() -> None:
    mine = Applied({b"a": BitMap([1]), b"b": BitMap([2])})
    theirs = Applied({b"a": BitMap([1]), b"c": BitMap([3])}).sharing(mine)
    alone = Applied({b"c": BitMap([3])}).nbytes
    assert (mine.foreign, theirs.foreign, theirs.sharing(theirs).foreign) == (0, alone, 0)
    assert mine.with_parts({ord("c")}, theirs).foreign == alone
    assert memory_of([theirs, theirs], mine) == alone
    assert memory_of([theirs, mine], Applied()) == alone + mine.nbytes


def test_jobs_of_which_all_is_withdrawn_are_not_begun() -> None:
    one, other = bytes(16), b"other job......."
    some = Applied().plus(one, 1).plus(one, 2).plus(other, 1)
    assert (some.jobs, some.begun) == (2, 2)
    some = some.plus(one, 1 | WITHDRAWN)
    assert (some.jobs, some.begun) == (2, 2)  # one chunk is left
    some = some.plus(one, 2 | WITHDRAWN).plus(other, 7 | WITHDRAWN)
    assert (some.jobs, some.begun) == (2, 1)
    some = some.plus(other, 1 | WITHDRAWN)
    assert (some.jobs, some.begun) == (2, 0)
    assert Applied().plus(one, 5 | WITHDRAWN).begun == 0  # it never came


def test_the_union_of_parts_is_of_all_jobs_or_of_some_and_changes_no_part() -> None:
    parts = [{ONE: BitMap([1, 2]), TWO: BitMap([5])}, {ONE: BitMap([2, 3])}, {TWO: BitMap()}]
    whole = Applied.union(parts)
    assert whole == applied((ONE, 1), (ONE, 2), (ONE, 3), (TWO, 5))
    assert Applied.union(parts, [TWO, b"a third one....."]) == applied((TWO, 5))
    assert Applied.union(parts, []) == Applied.union([]) == Applied()
    whole.of(ONE).add(9)
    assert parts[0][ONE] == BitMap([1, 2])


def test_sets_that_share_chunks_are_compared_as_any_others() -> None:
    one = applied((ONE, 1), (TWO, 2))
    more, other = one.plus(ONE, 3), one.plus(TWO, 4)
    assert one <= more
    assert not more <= one
    assert not more <= other
    assert more - one == applied((ONE, 3))
    assert more - other == applied((ONE, 3))
    assert one - more == Applied()
    assert not Applied(one._sets).plus(ONE, 9) <= one
