"""Seals and records across doublings: the rows of the cover are verified, kept and passed on."""

import hashlib
import random

import msgspec
import numpy as np
import pytest

from giaann_p2p.errors import DamagedError
from giaann_p2p.model.delta import EMPTY, Delta
from giaann_p2p.sim.lessons import Lessons
from giaann_p2p.store.codec.parcel import decode, encode
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.seal import (
    UNSEALED,
    Seal,
    check_shape,
    from_bytes,
    leaves_of,
    made,
    narrowed,
    to_bytes,
    told,
)
from giaann_p2p.store.update import (
    Packed,
    Update,
    cut,
    doublings_of,
    parcel_of,
    update_head,
    update_of,
    update_record,
)
from giaann_p2p.swarm.wire.messages import Push
from tests.helpers_parcel import LIMITS
from tests.helpers_store import JOB

FOUNDED = Layout(shards=16, blocks=8)
DELTA = Lessons(FOUNDED).delta(1)
LAYOUTS = [FOUNDED.doubled(times) for times in range(4)]
WHOLE = [made(DELTA, layout) for layout in LAYOUTS]
PAIRS = [(made_in, here) for here in range(4) for made_in in range(here + 1)]
pairs = pytest.mark.parametrize(("made_in", "here"), PAIRS)
seeds = pytest.mark.parametrize("seed", range(6))


def some(*numbers: int) -> Shards:
    return np.array(sorted(numbers), np.uint16)


def rows_of(shards: Shards, layout: Layout) -> Delta:
    chosen = np.isin(layout.shards_of(DELTA.concept, DELTA.feature), shards)
    return DELTA.only(chosen) if chosen.any() else EMPTY


def drawn(rng: random.Random, layout: Layout) -> Shards:
    return some(*rng.sample(range(layout.shards), rng.choice((1, 2, 3, 10))))


def test_all_bytes_stay_what_they_were_until_a_first_doubling() -> None:
    layout = Layout(shards=64, blocks=8)
    delta = Lessons(layout).delta(1)
    tree = made(delta, layout)
    seal = tree.seal(b"words", [1, 2, 7])
    update = Update(JOB, 1, some(1, 2, 7), delta, b"", seal)
    record = update_record(update, some(1, 7), encode(delta), layout)
    message = msgspec.msgpack.encode(Push(JOB, 1, b"", encode(delta), seal))
    found = [hashlib.blake2b(x, digest_size=8).hexdigest() for x in (tree.root, *seal, record)]
    assert found == [
        "cb33838f634b97f4",
        "491de3aee158f600",
        "b0644d798ac4b6ea",
        "bb6e25d73596c6ac",
        "60c4aabd2a7beec9",
    ]
    assert hashlib.blake2b(message, digest_size=8).hexdigest() == "5e6ba55683721848"


@pairs
@seeds
def test_a_part_is_verified_and_cut_by_the_cover(made_in: int, here: int, seed: int) -> None:
    rng, layout, sealed = random.Random(seed), LAYOUTS[here], LAYOUTS[made_in]
    more = drawn(rng, layout)
    fewer = some(*rng.sample(more.tolist(), rng.randrange(1, len(more) + 1)))
    cover, less = layout.cover(more, sealed), layout.cover(fewer, sealed)
    seal = WHOLE[made_in].seal(b"words", cover.tolist())
    part = rows_of(cover, sealed)
    tree = told(part, more, layout, seal)
    assert (tree.root, tree.shape) == (WHOLE[made_in].root, WHOLE[made_in].shape)
    assert narrowed(seal, part, more, fewer, layout) == WHOLE[made_in].seal(b"words", less.tolist())


def test_the_rows_of_one_half_of_a_former_shard_prove_nothing() -> None:
    homes = LAYOUTS[1].shards_of(DELTA.concept, DELTA.feature)
    rows = (DELTA.count > 0) | (DELTA.lengths > 0)
    both = [n for n in range(16) if {n, n + 16} <= {*homes[rows].tolist()}]
    assert both
    for number in both:
        seal = WHOLE[0].seal(b"words", [number])
        with_half = rows_of(some(number), LAYOUTS[1])
        assert told(with_half, some(number), LAYOUTS[1], seal).root != WHOLE[0].root


def test_each_number_of_shards_is_another_root_and_named_in_the_seal() -> None:
    assert len({whole.root for whole in WHOLE}) == 4
    for times, (whole, layout) in enumerate(zip(WHOLE, LAYOUTS, strict=True)):
        seal = whole.seal(b"", [])
        assert seal.doublings == times
        assert seal.layout(layout) == seal.layout(LAYOUTS[3]) == layout
        check_shape(seal, layout)
        everything = np.arange(layout.shards, dtype=np.uint16)
        again = from_bytes(to_bytes(leaves_of(DELTA, everything, layout)), times)
        assert (again.root, again.shape) == (whole.root, whole.shape)
    assert UNSEALED.doublings == 0
    assert UNSEALED.layout(LAYOUTS[2]) is LAYOUTS[2]


def test_rows_that_fit_two_numbers_of_shards_are_sealed_for_one() -> None:
    """Without the number in the root, one seal could be written in two ways."""
    homes = LAYOUTS[1].shards_of(DELTA.concept, DELTA.feature)
    lower = DELTA.only(homes < FOUNDED.shards)
    seals = [made(lower, layout).seal(b"", range(16)) for layout in LAYOUTS[:2]]
    assert seals[0].shape == seals[1].shape[1:]
    roots = {told(lower, np.arange(16, dtype=np.uint16), LAYOUTS[1], seal).root for seal in seals}
    assert len(roots) == 2


@pytest.mark.parametrize("first", [0x80, 0x80 + 13, 0x80 + 17, 0xFF])
def test_a_number_of_shards_that_cannot_be_is_refused(first: int) -> None:
    seal = Seal(b"", bytes([first]) + WHOLE[0].shape)
    with pytest.raises(DamagedError, match=r"states no doublings|later layout"):
        check_shape(seal, FOUNDED)
    with pytest.raises(DamagedError, match=r"states no doublings|later layout"):
        told(DELTA, some(1), FOUNDED, seal)


def test_a_seal_of_a_layout_to_come_is_refused_until_it_has_come() -> None:
    """An owner on the previous edition would refuse it, and blame the peer that passed it on."""
    seal = WHOLE[1].seal(b"words", [3])
    part = rows_of(some(3), LAYOUTS[1])
    assert told(part, some(3), LAYOUTS[1], seal).root == WHOLE[1].root
    with pytest.raises(DamagedError, match="later layout"):
        told(part, some(3), FOUNDED, seal)
    with pytest.raises(DamagedError, match="later layout"):
        check_shape(seal, FOUNDED)


def test_a_seal_names_no_shard_beyond_those_of_its_own_layout() -> None:
    (top,) = (max(leaves_of(DELTA, np.arange(128, dtype=np.uint16), LAYOUTS[3])),)
    assert top >= 64
    check_shape(WHOLE[3].seal(b"", []), LAYOUTS[3])
    relabelled = bytes([0x80 | 1]) + WHOLE[3].shape[1:]
    with pytest.raises(DamagedError, match="a seal names shards beyond the last"):
        check_shape(Seal(b"", relabelled), LAYOUTS[3])


def record_of(at: int, made_in: int | None, shards: Shards) -> bytes:
    """Return the record of an update as it is written after so many doublings."""
    layout = LAYOUTS[at]
    sealed = layout if made_in is None else LAYOUTS[made_in]
    cover = layout.cover(shards, sealed)
    seal = UNSEALED if made_in is None else WHOLE[made_in].seal(b"words", cover.tolist())
    delta = rows_of(cover, sealed)
    return update_record(Update(JOB, 1, shards, delta, b"", seal), shards, encode(delta), layout)


@pytest.mark.parametrize(
    ("written", "made_in"), [(0, None), (0, 0), (1, None), (1, 0), (1, 1), (3, 1)]
)
@seeds
def test_a_record_is_passed_on_by_each_holder_of_a_part(
    made_in: int | None, written: int, seed: int
) -> None:
    """Three holders in a row, each of fewer shards, and after more doublings than the last."""
    rng = random.Random(seed)
    mine = drawn(rng, LAYOUTS[written])
    record = memoryview(record_of(written, made_in, mine))
    assert (update_head(record)[2].tolist(), doublings_of(record)) == (mine.tolist(), written)
    for here in range(written, 4):
        layout = LAYOUTS[here]
        mine = LAYOUTS[doublings_of(record)].cover(mine, layout)
        mine = some(*rng.sample(mine.tolist(), rng.randrange(1, len(mine) + 1)))
        found = parcel_of(record, mine, LIMITS, layout)
        checked: list[Update] = []
        came = Packed(
            JOB, 1, mine[:1], found.data, LIMITS, layout, mine, found.seal, checked.append
        )
        update = came.unpacked()
        exact = layout if made_in is None else LAYOUTS[made_in]
        for one in (update, *checked):
            cover = layout.cover(one.shards, exact)
            there = cut(one, cover, exact).delta
            assert encode(there) == encode(rows_of(cover, exact))
            if made_in is not None:
                tree = told(one.delta, one.shards, layout, one.seal)
                assert tree.root == WHOLE[made_in].root
        mine = mine[:1]
        record = memoryview(update_record(update, mine, found.data, layout))
        assert encode(update_of(record, LIMITS).delta) == encode(decode(found.data, LIMITS))


def test_the_parcel_of_a_whole_cover_is_not_unpacked() -> None:
    record = memoryview(record_of(0, 0, some(3, 5)))
    one = parcel_of(record, some(3, 19), LIMITS, LAYOUTS[1])
    assert one.unpacked > 0
    whole = parcel_of(record, some(3, 5), LIMITS, LAYOUTS[1])  # a half of each, so all of the cover
    assert whole.unpacked == 0
    unsealed = memoryview(record_of(0, None, some(3, 5)))
    assert parcel_of(unsealed, some(3, 5), LIMITS, LAYOUTS[1]).unpacked > 0
    assert parcel_of(unsealed, some(3, 5, 19, 21), LIMITS, LAYOUTS[1]).unpacked == 0


def test_a_record_of_more_doublings_than_there_can_be_is_damaged() -> None:
    record = bytearray(record_of(0, 0, some(3)))
    record[len(JOB) + 4 + 3] = 60
    with pytest.raises(DamagedError, match="cannot have been doubled 60 times"):
        parcel_of(memoryview(record), some(3), LIMITS, FOUNDED)
