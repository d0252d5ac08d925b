"""Random deltas of every kind, the rules of deltas spelled out, and parcels to tamper with."""

from itertools import pairwise
from typing import Any

import numpy as np
import xxhash
from hypothesis import strategies as st

from giaann_p2p.errors import DamagedError
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.learn import learn
from giaann_p2p.store.codec.arrays import pack, unpack
from giaann_p2p.store.codec.parcel import Limits, decode
from tests.helpers import ARRAYS, DTYPES
from tests.helpers_plain import batch_of
from tests.helpers_random import sequences, specs

SEAL, SIZES = 21, 41
"""The offsets in a parcel at which the checksummed bytes start, and the arrays."""

LIMITS = Limits(256, 256, 1000, 10_000, 1000)
ARRAY_COUNT = 13

Neuron = tuple[int, int]
Connection = tuple[int, int, int, int]

_WORDS = ["ant", "bee", "anthill", "the", "ô", "木", ",", "of"]


def delta_of(
    counts: dict[Neuron, int], connections: dict[Connection, int], names: dict[int, str]
) -> Delta:
    """Return the delta of some neurons and the connections between their indices."""
    neurons, links = sorted(counts), sorted(connections)
    fields = zip(*links, strict=True) if links else [()] * 4
    source, target, branch, segment = fields
    return Delta(
        np.array([concept for concept, _ in neurons], np.uint64),
        np.array([feature for _, feature in neurons], np.uint64),
        np.array([counts[neuron] for neuron in neurons], np.int64),
        np.searchsorted(source, np.arange(len(neurons) + 1)).astype(np.int64),
        np.array(target, np.int32),
        np.array(branch, np.uint8),
        np.array(segment, np.uint8),
        np.array([connections[link] for link in links], np.int64),
        names,
    )


_strengths = st.sampled_from([327680, 218453, 163840, 1]) | st.integers(1, 1 << 40)


@st.composite
def drawn_deltas(draw: st.DrawFn) -> Delta:
    """Draw random neurons and connections."""
    words = st.sampled_from([word_id(word) for word in _WORDS])
    neurons = st.tuples(words, words | st.just(PRIME))
    counts = draw(st.dictionaries(neurons, st.integers(0, 1 << 40), max_size=8))
    if not counts:
        return delta_of({}, {}, {})
    slot, byte = st.integers(0, len(counts) - 1), st.integers(0, draw(st.sampled_from([2, 255])))
    links = st.dictionaries(st.tuples(slot, slot, byte, byte), _strengths, max_size=40)
    used = {word for neuron in counts for word in neuron}
    names = {word_id(word): word for word in draw(st.sets(st.sampled_from(_WORDS)))}
    kept = {number: word for number, word in names.items() if number in used}
    return delta_of(counts, draw(links), kept)


deltas = drawn_deltas() | st.builds(
    lambda corpus, spec: learn(batch_of(corpus, spec), spec), sequences, specs
)


def assert_rules(delta: Delta, limits: Limits = LIMITS) -> None:
    """Assert that a delta keeps every rule, one value at a time."""
    for name, dtype in zip(ARRAYS, DTYPES, strict=True):
        assert getattr(delta, name).dtype == np.dtype(dtype), name
    concept, feature, count, starts, target, branch, segment, strength = (
        getattr(delta, name).tolist() for name in ARRAYS
    )
    assert len(concept) == len(feature) == len(count) <= limits.neurons
    assert len(target) == len(branch) == len(segment) == len(strength) <= limits.connections
    assert all(one < two for one, two in pairwise(zip(concept, feature, strict=True)))
    assert all(number != PRIME for number in concept)
    assert all(number >= 0 for number in count)
    assert sum(count) < 1 << 63
    assert all(number > 0 for number in strength)
    assert sum(strength) < 1 << 63
    assert len(starts) == len(concept) + 1
    assert (starts[0], starts[-1]) == (0, len(target))
    assert all(one <= two for one, two in pairwise(starts))
    assert all(0 <= number < len(concept) for number in target)
    assert all(number < limits.branches for number in branch)
    assert all(number < limits.segments for number in segment)
    for start, end in pairwise(starts):
        row = zip(target[start:end], branch[start:end], segment[start:end], strict=True)
        assert all(one < two for one, two in pairwise(row))
    assert all(text and word_id(text) == number for number, text in delta.names.items())
    assert set(delta.names) <= {*concept, *feature}


def sealed(parcel: bytes) -> bytes:
    """Return the parcel with a checksum that matches its content."""
    return parcel[:5] + xxhash.xxh3_128_digest(parcel[SEAL:]) + parcel[SEAL:]


def arrays_of(parcel: bytes) -> list[np.ndarray[Any, Any]]:
    """Return a parcel's arrays."""
    return unpack(parcel, ARRAY_COUNT, 1 << 20, SIZES)


def with_arrays(parcel: bytes, arrays: list[np.ndarray[Any, Any]]) -> bytes:
    """Return the parcel with other arrays, and a checksum that matches them."""
    return sealed(parcel[:SIZES] + pack(arrays))


def read_or_refused(parcel: bytes, limits: Limits = LIMITS) -> Delta | None:
    """Decode a parcel, and assert the rules of its delta; None if it is refused as damaged."""
    try:
        delta = decode(parcel, limits)
    except DamagedError:
        return None
    assert_rules(delta, limits)
    return delta
