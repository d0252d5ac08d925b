"""Parts of a delta: bounded, always the same, and their sum is the delta."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.model.delta import EMPTY, Delta, total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.spec import CHUNK
from giaann_p2p.sim.lessons import lessons_of
from giaann_p2p.store.codec.parcel import decode, encode
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.windows import count_of, windows
from giaann_p2p.swarm.wire.limits import of_chunk


def learned(profile: str, chunks: list[int]) -> Delta:
    lessons = lessons_of(Layout(shards=4), profile)
    return total([EMPTY, *map(lessons.delta, chunks)])


@given(
    st.sampled_from(["words", "subwords"]),
    st.lists(st.integers(0, 50), max_size=5),
    st.integers(1, 500),
)
def test_parts_are_bounded_and_add_up(profile: str, chunks: list[int], most: int) -> None:
    whole = learned(profile, chunks)
    parts = list(windows(whole, most))
    assert len(parts) == count_of(whole, most)
    assert digest(total([EMPTY, *parts])) == digest(whole)
    assert sum(part.connections for part in parts) == whole.connections
    assert sum(int(part.count.sum()) for part in parts) == int(whole.count.sum())
    for part in parts:
        assert part.connections <= most
        assert part.neurons <= most + 1


@pytest.mark.parametrize("profile", ["words", "subwords"])
def test_parts_of_the_largest_size_are_chunks(profile: str) -> None:
    spec = lessons_of(Layout(shards=4), profile).spec
    limits = of_chunk(spec, CHUNK)
    whole = learned(profile, list(range(600)))
    for part in windows(whole, min(limits.neurons - 1, limits.connections)):
        assert digest(decode(encode(part), limits)) == digest(part)
