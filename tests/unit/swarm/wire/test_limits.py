"""How much a message may come to: enough for whoever is honest, and no more."""

import pytest

from giaann_p2p.errors import DamagedError
from giaann_p2p.model.columns import Word
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.learn import learn
from giaann_p2p.model.sequence import SequenceBuilder
from giaann_p2p.model.spec import CHUNK, ModelSpec
from giaann_p2p.store.codec.parcel import decode, encode
from giaann_p2p.store.cut_columns import cut_columns
from giaann_p2p.store.cuts import Cut
from giaann_p2p.swarm.wire.limits import (
    MOST_CONNECTIONS,
    of_answer,
    of_chunk,
    of_part,
    of_push,
    of_shard,
)
from giaann_p2p.swarm.wire.messages import MOST_BYTES

SPEC = ModelSpec(seed_tokens=4, max_tokens=9)


def largest() -> Delta:
    """Return what a chunk adds of which no two words are the same."""
    builder = SequenceBuilder(SPEC.branches)
    numbers = iter(range(10**6))
    for _ in range(CHUNK):
        words = [f"word{next(numbers)}" for _ in range(SPEC.max_tokens)]
        builder.add([Word(text, text, True, 0, len(text)) for text in words])
    return learn(builder.build(), SPEC)


def test_the_largest_chunk_passes_and_a_larger_one_does_not() -> None:
    whole, limits = largest(), of_chunk(SPEC, CHUNK)
    assert limits.neurons == whole.neurons
    assert whole.connections <= limits.connections < 2 * whole.connections
    assert decode(encode(whole), limits).connections == whole.connections
    smaller = of_chunk(ModelSpec(seed_tokens=4, max_tokens=6), CHUNK)
    with pytest.raises(DamagedError, match="neurons: 576 is above the limit of 384"):
        decode(encode(whole), smaller)


def test_the_largest_chunk_passes_however_its_columns_are_cut() -> None:
    whole = largest()
    for parts in (2, 64):
        cuts = tuple(Cut(word, parts) for word in sorted(whole.names.values()))
        delta = cut_columns(cuts).cut(whole)
        assert delta.neurons > whole.neurons
        limits = of_chunk(SPEC, CHUNK, parts)
        assert decode(encode(delta), limits).neurons == delta.neurons
        assert limits.neurons <= whole.neurons + min(limits.connections, parts * whole.neurons)
        pushed = of_push(ModelSpec(), 1 << 14, parts)
        assert pushed.neurons <= (1 << 14) * 80 + MOST_CONNECTIONS
        with pytest.raises(DamagedError, match=r"neurons: .* is above the limit of"):
            decode(encode(delta), of_chunk(SPEC, CHUNK))


def test_a_chunk_of_the_usual_model_is_bounded_by_its_sentences() -> None:
    limits = of_chunk(ModelSpec(), CHUNK)
    assert (limits.neurons, limits.connections) == (64 * 80, 64 * 80 * 79)
    assert (limits.branches, limits.segments) == (ModelSpec().branches, ModelSpec().segments)


def test_a_large_chunk_is_bounded_by_its_sentences_and_a_message_by_its_bytes() -> None:
    whole, pushed = of_chunk(ModelSpec(), 1 << 14), of_push(ModelSpec(), 1 << 14)
    assert whole.connections == (1 << 14) * 80 * 79
    assert (pushed.neurons, pushed.connections) == (whole.neurons, MOST_CONNECTIONS)
    assert of_push(ModelSpec(), CHUNK) == of_chunk(ModelSpec(), CHUNK)


def test_a_part_has_what_was_promised_and_goes_into_a_message() -> None:
    whole, limits = largest(), of_chunk(SPEC, CHUNK)
    part = of_part(limits, whole.connections)
    assert decode(encode(whole), part).connections == whole.connections
    with pytest.raises(DamagedError, match=r"connections: .* is above"):
        decode(encode(whole), of_part(limits, whole.connections - 1))
    assert of_part(limits, 1000).neurons > 2000  # of which each may be one end of a connection
    assert of_part(limits, 1 << 31).connections == MOST_CONNECTIONS
    assert of_part(limits, 1 << 31).segments == limits.segments


def test_a_shard_goes_into_memory() -> None:
    assert of_shard(9_000) == 1_000


def test_a_few_bytes_of_an_answer_stand_for_no_more_than_they_can_mean() -> None:
    limits = of_chunk(SPEC, CHUNK)
    short, long = of_answer(limits, 100), of_answer(limits, MOST_BYTES)
    assert short.connections < short.neurons < 80_000
    assert short.text < 80_000
    assert long.connections == MOST_CONNECTIONS
    assert long.neurons < MOST_CONNECTIONS + 10_000
    assert (long.branches, long.segments) == (limits.branches, limits.segments)
