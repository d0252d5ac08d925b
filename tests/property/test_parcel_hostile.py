"""Whatever its bytes are, a parcel is a delta that keeps all rules, or damaged."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.errors import DamagedError
from giaann_p2p.model.delta import Delta
from giaann_p2p.store.codec.arrays import TYPES
from giaann_p2p.store.codec.parcel import decode, encode
from tests.helpers import assert_same
from tests.helpers_parcel import (
    ARRAY_COUNT,
    LIMITS,
    SEAL,
    SIZES,
    arrays_of,
    assert_rules,
    deltas,
    read_or_refused,
    sealed,
    with_arrays,
)
from tests.unit.store.codec.test_parcel import CONCEPTS, NUMBERS, PARCEL, SKIPS, STEPS


@given(deltas)
def test_deltas_come_back(delta: Delta) -> None:
    assert_rules(delta)
    parcel = encode(delta)
    assert_same(decode(parcel, LIMITS), delta)
    assert encode(decode(parcel, LIMITS)) == parcel


def flipped(parcel: bytes, at: int, mask: int) -> bytes:
    return parcel[:at] + bytes([parcel[at] ^ mask]) + parcel[at + 1 :]


@given(deltas, st.integers(1, 255))
def test_a_flipped_byte_is_damage(delta: Delta, mask: int) -> None:
    parcel = encode(delta)
    for at in range(len(parcel)):
        with pytest.raises(DamagedError):
            decode(flipped(parcel, at, mask), LIMITS)


@pytest.mark.slow
def test_any_flip_under_a_fitting_checksum_is_a_delta_or_damage() -> None:
    found = [
        read_or_refused(sealed(flipped(PARCEL, at, mask)))
        for at in range(SEAL, len(PARCEL))
        for mask in range(1, 256)
    ]
    read = [delta for delta in found if delta is not None]
    assert 0 < len(read) < len(found) // 4


@given(deltas)
def test_a_part_of_a_parcel_is_damage(delta: Delta) -> None:
    parcel = encode(delta)
    for size in range(len(parcel)):
        assert read_or_refused(parcel[:size]) is None
        if size >= SEAL:
            assert read_or_refused(sealed(parcel[:size])) is None
    assert read_or_refused(sealed(parcel + b"\0")) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_delta_or_damage(data: bytes) -> None:
    read_or_refused(data)
    read_or_refused(sealed(PARCEL[:SEAL] + data))
    read_or_refused(sealed(PARCEL[:SIZES] + data))


@st.composite
def edits(draw: st.DrawFn) -> bytes:
    """Draw a parcel in which some bytes were set, added or left out."""
    parcel = bytearray(encode(draw(deltas)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(SEAL, len(parcel)))
        end = min(len(parcel), at + draw(st.integers(0, 3)))
        parcel[at:end] = draw(st.binary(max_size=3))
    return sealed(bytes(parcel))


@given(edits())
def test_edited_bytes_are_a_delta_or_damage(parcel: bytes) -> None:
    read_or_refused(parcel)


def values(dtype: np.dtype[Any]) -> st.SearchStrategy[int]:
    bounds = np.iinfo(dtype)
    ends = st.sampled_from([bounds.min, bounds.max, bounds.max // 2 + 1, 0, 1])
    near = st.integers(max(bounds.min, -3), min(bounds.max, 70))
    return near | ends | st.integers(bounds.min, bounds.max)


@st.composite
def forgeries(draw: st.DrawFn) -> bytes:
    """Draw a parcel whose arrays have other values, lengths or types."""
    parcel = encode(draw(deltas))
    arrays = arrays_of(parcel)
    for number in draw(st.lists(st.integers(0, ARRAY_COUNT - 1), min_size=1, max_size=3)):
        array = arrays[number]
        kind = draw(st.integers(0, 9))
        if kind == 0:
            array = array.astype(draw(st.sampled_from(TYPES)))
        elif kind == 1:
            size = draw(st.integers(0, len(array) + 2))
            array = np.resize(array, size).astype(array.dtype)
        elif len(array):
            for _ in range(draw(st.integers(1, 3))):
                array[draw(st.integers(0, len(array) - 1))] = draw(values(array.dtype))
        arrays[number] = array
    return with_arrays(parcel, arrays)


@given(forgeries())
def test_forged_arrays_are_a_delta_or_damage(parcel: bytes) -> None:
    read_or_refused(parcel)


@st.composite
def inventions(draw: st.DrawFn) -> bytes:
    """Draw a parcel whose connections are made up, but fit one another in number."""
    arrays = arrays_of(PARCEL)
    for number in range(CONCEPTS, NUMBERS):
        size, dtype = len(arrays[number]), arrays[number].dtype
        near = st.lists(st.integers(0, 17 if number == STEPS else 3), min_size=size, max_size=size)
        if draw(st.booleans()):
            arrays[number] = np.array(draw(near), dtype)
    steps = arrays[STEPS]
    arrays[SKIPS] = np.resize(arrays[SKIPS], int((steps < 6).sum()))
    stated = int(((steps < 6) | (steps >= 12)).sum())
    arrays[NUMBERS] = np.resize(arrays[NUMBERS], stated)
    return with_arrays(PARCEL, arrays)


@given(inventions())
def test_made_up_connections_are_a_delta_or_damage(parcel: bytes) -> None:
    read_or_refused(parcel)
