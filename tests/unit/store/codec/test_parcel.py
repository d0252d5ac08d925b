"""Deltas as parcels: what comes back, how small it is, and each rule that a parcel can break."""

import dataclasses
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from giaann_p2p.errors import DamagedError
from giaann_p2p.model.delta import EMPTY, Delta, total
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store.codec.parcel import Limits, decode, encode, sizes_of
from giaann_p2p.store.codec.vocabulary import SIZE, VOCABULARY
from tests.helpers import assert_same
from tests.helpers_parcel import (
    ARRAY_COUNT,
    LIMITS,
    SIZES,
    arrays_of,
    assert_rules,
    delta_of,
    sealed,
    with_arrays,
)

WORDS = "antling", "beelike", "waspish"  # not in the vocabulary
ANT, BEE, WASP = sorted(map(word_id, WORDS))
TEXT = {word_id(word): word for word in WORDS}

KNOWN, IDS, LENGTHS, TEXTS, CONCEPTS, FEATURES = range(6)
COUNTS, LINKS, SKIPS, STEPS, TABLE, NUMBERS, REST = range(6, ARRAY_COUNT)
HALF, THIRD = 327680, 218453

SMALL = delta_of(
    {(ANT, PRIME): 2, (ANT, WASP): 1, (BEE, PRIME): 0, (BEE, ANT): 3},
    {
        (0, 1, 0, 1): HALF,
        (0, 1, 0, 2): HALF,
        (0, 1, 1, 0): THIRD,
        (0, 3, 0, 2): HALF,
        (1, 1, 0, 0): THIRD,
        (3, 0, 1, 2): HALF,
        (3, 2, 0, 2): HALF,
    },
    {number: TEXT[number] for number in (ANT, WASP)},
)
"""Two branches, three segments: 6 places. The row of neuron 2 is empty, word BEE has no text."""

PARCEL = encode(SMALL)


def changed(array: int, at: int | None, value: object) -> bytes:
    """Return PARCEL with a value set, or with another array."""
    arrays = arrays_of(PARCEL)
    if at is None:
        arrays[array] = np.array(value, arrays[array].dtype)
    else:
        arrays[array][at] = value
    return with_arrays(PARCEL, arrays)


def refused(parcel: bytes, match: str, limits: Limits = LIMITS) -> None:
    with pytest.raises(DamagedError, match=match):
        decode(parcel, limits)


def test_a_delta_comes_back() -> None:
    assert_same(decode(PARCEL, LIMITS), SMALL)
    assert_same(decode(memoryview(PARCEL), LIMITS), SMALL)
    assert encode(decode(PARCEL, LIMITS)) == PARCEL


def test_what_the_small_parcel_holds() -> None:
    arrays = [array.tolist() for array in arrays_of(PARCEL)]
    assert arrays[KNOWN] == []
    assert arrays[IDS] == [ANT, BEE - ANT, WASP - BEE]
    assert arrays[LENGTHS] == [len(SMALL.names.get(number, "")) for number in (ANT, BEE, WASP)]
    assert bytes(arrays[TEXTS]).decode() == TEXT[ANT] + TEXT[WASP]
    assert arrays[CONCEPTS] == [1, 0, 1, 0]
    assert arrays[FEATURES] == [0, 3, 0, 1]
    assert arrays[COUNTS] == [2, 1, 0, 3]
    assert arrays[LINKS] == [2, 1, 0, 2]
    assert arrays[SKIPS] == [1, 1, 1, 0, 1]
    assert arrays[STEPS] == [1, 6 + 2, 12 + 3, 2, 0, 5, 2]
    assert arrays[TABLE] == [THIRD, HALF - THIRD]
    assert arrays[NUMBERS] == [0, 1, 1, 1, 0, 1]  # at places 0, 1, 2, 2, 3, 5
    assert arrays[REST] == []


MIXED = delta_of(
    {(word_id(word), PRIME): 1 for word in ("bee", "beelike", "cow")} | {(word_id("elk"), BEE): 1},
    {},
    {word_id(word): word for word in ("bee", "beelike", "elk")},
)
"""Three words of the vocabulary, one of them without text, and two others."""


def test_words_of_the_vocabulary_are_numbers_there() -> None:
    parcel = encode(MIXED)
    arrays = arrays_of(parcel)
    ids = sorted(map(word_id, ("bee", "cow", "elk")))
    assert VOCABULARY.ids[np.cumsum(arrays[KNOWN])].tolist() == ids
    assert np.cumsum(arrays[IDS]).tolist() == sorted([word_id("beelike"), BEE])
    assert sorted(arrays[LENGTHS].tolist()) == [0, 0, 1, 1, len("beelike")]
    assert bytes(arrays[TEXTS]) == b"beelike"
    assert_same(decode(parcel, LIMITS), MIXED)


@pytest.mark.parametrize(
    ("array", "values", "match"),
    [
        (KNOWN, [0, 1, SIZE], "a word of the vocabulary does not exist"),
        (KNOWN, [5, 0, 1], "ids do not ascend"),
        (LENGTHS, [2] * 5, "a word of the vocabulary has a text of its own"),
    ],
)
def test_what_no_words_of_the_vocabulary_are_is_refused(
    array: int, values: list[int], match: str
) -> None:
    arrays = arrays_of(encode(MIXED))
    arrays[array] = np.array(values, arrays[array].dtype)
    refused(with_arrays(encode(MIXED), arrays), match)


def test_a_word_is_listed_once() -> None:
    arrays = arrays_of(encode(MIXED))
    known = np.cumsum(arrays[KNOWN])
    arrays[KNOWN] = arrays[KNOWN][:2]
    ids = [*np.cumsum(arrays[IDS]).tolist(), int(VOCABULARY.ids[known[0]])]
    arrays[IDS] = np.diff(np.array(sorted(ids), np.uint64), prepend=np.uint64(0))
    refused(with_arrays(encode(MIXED), arrays), "ids do not ascend")


BEFORE = bytes.fromhex(
    "4749416401cb0bf646429d0edf1b4b3cf27da044d40400000000000000050000000d000000010001003b0500"
    "7e32be450a7bb51ad8a3ee090308930721f880eb45ea57297c2f7c402346499a264d069ba94b8a1522050007"
    "03000003200d006265656c696b65656c6b626565220400010102012204000003000005040102040002000000"
    "0000050000000000050000"
)
"""`MIXED` as a parcel of format 1."""


def test_a_parcel_of_the_format_before_is_read() -> None:
    assert_same(decode(BEFORE, LIMITS), MIXED)
    refused(BEFORE[:4] + encode(MIXED)[4:5] + BEFORE[5:], "array|data")


def test_a_parcel_tells_its_sizes() -> None:
    assert sizes_of(PARCEL) == (4, 7, 3, len(TEXT[ANT] + TEXT[WASP]), 2, 3)


def test_an_empty_delta_is_a_parcel() -> None:
    assert_same(decode(encode(EMPTY), Limits(1, 1, 0, 0, 0)), EMPTY)


def test_neurons_without_connections_come_back() -> None:
    many = delta_of({(word_id(str(i)), PRIME): 5 * i for i in range(999)}, {}, {})
    assert_same(decode(encode(many), LIMITS), many)


@pytest.mark.parametrize("places", [85, 86, 256, 65536 // 3, 65536 // 3 + 1, 65536])
def test_any_places_come_back(places: int) -> None:
    last = divmod(places - 1, 256) if places > 256 else (0, places - 1)
    links = {(0, 0, 0, 0): HALF, (0, 0, *last): HALF}
    if places > 256:
        links[0, 0, 0, 255] = THIRD  # so that there are 256 segments
    odd = delta_of({(ANT, PRIME): 1}, links, {})
    assert_same(decode(encode(odd), LIMITS), odd)


def test_strengths_of_any_size_come_back() -> None:
    values = [1 << shift for shift in range(61)] + list(range(1, 700, 2))
    links = {(0, 0, i % 256, i // 256): value for i, value in enumerate(values)}
    odd = delta_of({(ANT, PRIME): 1 << 62}, links, {})
    assert len(arrays_of(encode(odd))[REST]) > 0
    assert_same(decode(encode(odd), LIMITS), odd)


def test_arrays_of_a_delta_are_its_own() -> None:
    found = decode(PARCEL, LIMITS)
    fields = [getattr(found, field.name) for field in dataclasses.fields(found)][:-1]
    assert all(array.flags.writeable and array.flags.c_contiguous for array in fields)


def test_equal_short_parcels_are_decoded_once() -> None:
    found = decode(PARCEL, LIMITS)
    assert decode(memoryview(bytearray(PARCEL)), LIMITS) is found
    refused(PARCEL, "neurons: 4 is above", dataclasses.replace(LIMITS, neurons=3))  # other limits
    for at in range(0, len(PARCEL), 7):  # each of other bytes is looked at
        refused(PARCEL[:at] + bytes([PARCEL[at] ^ 1]) + PARCEL[at + 1 :], r"\w")
    assert decode(PARCEL, LIMITS) is found


def test_what_is_long_or_holds_much_is_not_remembered(wiki_delta: Delta) -> None:
    parcel = encode(wiki_delta)
    limits = Limits(64, 64, 1 << 20, 1 << 20)
    assert decode(parcel, limits) is not decode(parcel, limits)
    parcel, limits = many_in_few_bytes(10_000)
    assert len(parcel) < 120
    assert decode(parcel, limits) is not decode(parcel, limits)


def test_an_empty_delta_is_encoded_like_any_other() -> None:
    assert encode(EMPTY) == encode(dataclasses.replace(EMPTY))


def test_equal_deltas_make_equal_parcels(quick_delta: Delta) -> None:
    again = dataclasses.replace(
        quick_delta,
        names=dict(reversed(quick_delta.names.items())),
        target=np.repeat(quick_delta.target, 2)[::2],  # not contiguous
    )
    assert encode(again) == encode(quick_delta)
    stray = {**quick_delta.names, ANT: TEXT[ANT]}  # no neuron's
    assert encode(dataclasses.replace(quick_delta, names=stray)) == encode(quick_delta)


def test_real_text_takes_little_room(wiki_delta: Delta, quick_delta: Delta) -> None:
    for delta in (wiki_delta, total([wiki_delta, quick_delta])):
        parcel = encode(delta)
        spec = ModelSpec()
        limits = Limits(spec.branches, spec.segments, delta.neurons, delta.connections)
        assert_same(decode(parcel, limits), delta)
        assert len(parcel) < 1.5 * delta.connections


def test_pieces_of_a_delta_come_back(wiki_delta: Delta) -> None:
    pieces = wiki_delta.cut(np.arange(wiki_delta.neurons) % 3)
    limits = Limits(2, 11, wiki_delta.neurons, wiki_delta.connections)
    assert_same(total([decode(encode(p), limits) for p in pieces.values()]), wiki_delta)


def test_what_outgrows_63_bits_is_not_encoded() -> None:
    most = (1 << 63) - 1
    links = {(0, 0, 0, 0): most}
    assert_same(*2 * [decode(encode(delta_of({(ANT, PRIME): most}, links, {})), LIMITS)])
    more = {**links, (0, 0, 0, 1): 1}
    with pytest.raises(OverflowError, match="63 bits"):
        encode(delta_of({(ANT, PRIME): 1}, more, {}))
    with pytest.raises(OverflowError, match="63 bits"):
        encode(delta_of({(ANT, PRIME): most, (BEE, PRIME): 1}, {}, {}))


@pytest.mark.parametrize(
    ("array", "at", "value", "match"),
    [
        (IDS, 0, 0, "ids do not ascend"),
        (IDS, 1, 0, "ids do not ascend"),
        (IDS, 2, (1 << 64) - 1, "ids do not ascend"),
        (IDS, 0, 5, "word .* is not"),
        (IDS, None, [], "some word has no length"),
        (KNOWN, None, [1], "some word has no length"),
        (LENGTHS, 0, 1, "not have the stated length"),
        (LENGTHS, 0, 1 << 31, "not have the stated length"),
        (TEXTS, 0, ord("_"), "word id .* is not that of '_"),
        (TEXTS, 0, 0xFF, "is not UTF-8"),
        (CONCEPTS, 0, 0, "has no concept"),
        (CONCEPTS, 1, 3, "word of a concept does not exist"),
        (FEATURES, 0, 4, "feature does not exist"),
        (FEATURES, 0, 3, "neurons do not ascend"),
        (FEATURES, 2, 1, "neurons do not ascend"),
        (FEATURES, 1, 2, "a word belongs to no neuron"),
        (COUNTS, 2, -1, "count is below 0"),
        (COUNTS, 2, (1 << 63) - 1, "counts or strengths exceeds 63 bits"),
        (LINKS, 2, 1, "steps do not match"),
        (LINKS, 1, 0, "steps do not match"),
        (LINKS, 1, (1 << 32) - 1, "steps do not match"),
        (SKIPS, 0, 4, "target of a link does not exist"),
        (SKIPS, 4, 3, "target of a link does not exist"),
        (SKIPS, 4, (1 << 32) - 1, "target of a link does not exist"),
        (SKIPS, None, [1, 1, 1, 0], "steps do not match"),
        (SKIPS, None, [], "steps do not match"),
        (STEPS, 0, 18, "a step is out of range"),
        (STEPS, 0, 6, "a connection belongs to no link"),
        (STEPS, 1, 6 + 1, "places of a link"),
        (STEPS, 2, 12 + 1, "places of a link"),
        (STEPS, 1, 2, "steps do not match"),
        (STEPS, 1, 12 + 2, "one strength for each place"),
        (STEPS, None, [6 + 2] * 7, "a connection belongs to no link"),
        (TABLE, 0, 0, "strength is below 1"),
        (TABLE, 0, -HALF, "strength is below 1"),
        (TABLE, 1, 0, "too long or does not ascend"),
        (TABLE, 1, (1 << 63) - 1, "too long or does not ascend"),
        (TABLE, None, [1] * 256, "table of strengths"),
        (TABLE, None, [1 << 61, 1], "counts or strengths exceeds 63 bits"),
        (NUMBERS, 0, 3, "beyond the table"),
        (NUMBERS, 0, 2, "strengths outside the table"),
        (NUMBERS, None, [0] * 5, "one strength for each place"),
        (REST, None, [5], "strengths outside the table"),
        (REST, None, [0], "strength is below 1"),
    ],
)
def test_each_rule_that_a_parcel_breaks_is_named(
    array: int, at: int | None, value: object, match: str
) -> None:
    refused(changed(array, at, value), match)


@pytest.mark.parametrize("array", [LENGTHS, TEXTS, CONCEPTS, FEATURES, COUNTS, LINKS, STEPS])
def test_arrays_of_another_length_are_refused(array: int) -> None:
    values = arrays_of(PARCEL)[array]
    refused(changed(array, None, values[:-1]), r"\d, not \d")
    refused(changed(array, None, [*values, 1]), r"\d, not \d")


@pytest.mark.parametrize("array", range(ARRAY_COUNT))
def test_arrays_of_another_type_are_refused(array: int) -> None:
    arrays = arrays_of(PARCEL)
    arrays[array] = arrays[array].astype(np.uint16)
    refused(with_arrays(PARCEL, arrays), "has type uint16, not")


def resized(field: int, value: int) -> bytes:
    """Return PARCEL with another size in its head."""
    at, width = SIZES - 20 + [0, 4, 8, 12, 16, 18][field], 4 if field < 4 else 2
    return sealed(PARCEL[:at] + value.to_bytes(width, "little") + PARCEL[at + width :])


@pytest.mark.parametrize("name", ["neurons", "connections", "text", "branches", "segments"])
def test_limits_are_kept(name: str) -> None:
    exact = Limits(2, 3, 4, 7, len(TEXT[ANT] + TEXT[WASP]))
    assert_same(decode(PARCEL, exact), SMALL)
    less = dataclasses.replace(exact, **{name: getattr(exact, name) - 1})
    refused(PARCEL, f"{name}: .* is above the limit", less)


def test_heads_that_cannot_be_are_refused() -> None:
    for field in (4, 5):
        refused(resized(field, 0), "0 branches or segments")
        refused(resized(field, 257), "257 branches or segments", Limits(999, 999, 9, 9))
    refused(resized(2, 9), "more words than the neurons")
    refused(resized(0, 1 << 31), "too many for one delta", Limits(9, 9, 1 << 32, 9))
    for field in range(6):
        for value in range(9):
            if resized(field, value) != PARCEL:
                refused(resized(field, value), r"\w")
    refused(b"GIAx" + PARCEL[4:], "it starts with other bytes")
    refused(PARCEL[:4] + b"\3" + PARCEL[5:], "format 3; this version reads 1 and 2")
    refused(PARCEL[:60], "checksum of a parcel")
    refused(b"", "only 0 bytes")


def peak(action: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("field", range(4))
def test_sizes_beyond_the_limits_take_no_memory(field: int) -> None:
    huge = resized(field, (1 << 32) - 1)
    assert peak(lambda: refused(huge, "4294967295|words")) < 100_000


def test_sizes_that_the_arrays_do_not_have_take_no_memory() -> None:
    wide = Limits(2, 3, 1 << 30, 1 << 30, 1 << 30)
    for field in (0, 1, 3):
        huge = resized(field, 1 << 30)
        assert peak(lambda huge=huge: refused(huge, r"\d, not \d", wide)) < 100_000


def many_in_few_bytes(count: int) -> tuple[bytes, Limits]:
    """Return a parcel of so many neurons, and limits within which it is."""
    none = np.zeros(0, np.int64)
    arrays = [np.zeros(count, array.dtype) for array in arrays_of(PARCEL)]
    for array in (IDS, CONCEPTS, LINKS):
        arrays[array] += 1
    arrays[TEXTS], arrays[REST], arrays[KNOWN] = none.astype(np.uint8), none, none.astype(np.uint32)
    arrays[TABLE] = np.ones(1, np.int64)
    numbers = (count, count, count, 0)
    head = PARCEL[: SIZES - 20] + b"".join(number.to_bytes(4, "little") for number in numbers)
    return with_arrays(head + PARCEL[SIZES - 4 : SIZES], arrays), Limits(2, 3, count, count, 0)


def test_many_values_in_few_bytes_stay_within_the_limits() -> None:
    count = 100_000
    parcel, limits = many_in_few_bytes(count)
    assert len(parcel) < 120
    assert peak(lambda: decode(parcel, limits)) < 150 * count
    assert_rules(decode(parcel, limits), limits)
