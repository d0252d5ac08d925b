"""What a chunk comes to, and how it is cut for its owners."""

import re
from functools import cache

import numpy as np
import pytest

from giaann_p2p.model.delta import EMPTY, Delta, total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.learn import learn
from giaann_p2p.model.parse import Parser
from giaann_p2p.model.spec import CHUNK, ModelSpec
from giaann_p2p.model.text import Sentence
from giaann_p2p.node.training.learn_workers import ForkedWorker
from giaann_p2p.node.training.learner import Cutting, Learner, Made, Task, skips_of, teach
from giaann_p2p.store.codec.parcel import decode, encode
from giaann_p2p.store.cut_columns import whole
from giaann_p2p.store.cuts import MARK, Cut
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.seal import leaves_of, to_bytes
from giaann_p2p.swarm.wire.limits import of_chunk
from giaann_p2p.swarm.wire.training_messages import Skip

SPEC = ModelSpec(seed_tokens=4)
LAYOUT = Layout(shards=8)
TEXT = ["Go.", "The golden bee makes honey from the flower in summer.", "All that is said is said."]
EVERY = np.arange(8, dtype=np.uint16)


@cache
def school() -> Learner:
    return Learner(SPEC, "cpu")


def wanted(shards: Shards) -> Delta:
    """Return what some shards learn, worked out one by one."""
    sentences = [Sentence(text, 1) for text in TEXT]
    (parsed,) = Parser(SPEC).parse([sentences])
    delta = learn(parsed.sequences, SPEC)
    parts = delta.cut(LAYOUT.shards_of(delta.concept, delta.feature).astype(np.int64))
    return total([EMPTY, *(parts[shard] for shard in shards.tolist() if shard in parts)])


def made(*owned: Shards) -> Made:
    return school().learn(Task(TEXT, [shards.tobytes() for shards in owned], LAYOUT))


def test_on_a_processor_numpy_tags() -> None:
    """Here and in a forked worker; the device's name changes nothing else."""
    chunk, factory = Task(TEXT, [EVERY.tobytes()], LAYOUT), teach(SPEC, "cpu:0")
    other, forked = factory(), ForkedWorker()
    assert "on cpu:0" in repr(other._profile)
    for learner in (other, school()):
        parser = repr(learner._profile.parser)
        assert re.match("<Parser: <Tagger: <TaggerLayers on numpy>", parser)
    assert other.learn(chunk) == made(EVERY)
    try:
        forked.teach(factory)
        assert forked.learn(chunk) == made(EVERY)
    finally:
        forked.end()


def test_what_is_skipped_is_told_by_its_number() -> None:
    found = made(EVERY)
    assert found.sequences == 1
    assert skips_of(found) == [Skip("too short", 1, 0), Skip("no noun", 1, 2)]


def test_a_sentence_that_would_be_slow_is_told_in_words() -> None:
    found = school().learn(Task([TEXT[1], ":)" * 499, "'" * 999], [EVERY.tobytes()], LAYOUT))
    assert found.sequences == 1
    assert skips_of(found) == [Skip("too much punctuation", 2, 1)]


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("numbers", [range(8), (), (3,), (0, 5, 6), (1, 2, 3, 4, 7)])
def test_owners_get_their_rows_and_no_others_whenever_they_came(
    numbers: tuple[int, ...], early: bool
) -> None:
    shards = np.array(numbers, np.uint16)
    found = made(EVERY[::2], shards) if early else made()
    cut = Cutting(found, SPEC, LAYOUT)
    parcel = cut(shards)
    assert parcel == cut(shards.copy())
    assert parcel == encode(wanted(shards))
    assert digest(decode(parcel, of_chunk(SPEC, CHUNK))) == digest(wanted(shards))


def test_the_whole_is_made_once() -> None:
    found = made(EVERY, EVERY[:3])
    assert found.parcels[EVERY.tobytes()] is found.whole
    assert len(found.parcels) == 2


def test_a_chunk_without_anything_to_learn_is_an_empty_parcel() -> None:
    found = school().learn(Task(["Go."], [EVERY.tobytes()], LAYOUT))
    assert decode(found.whole, of_chunk(SPEC, CHUNK)).neurons == 0
    assert found.sequences == 0


def test_reprs_tell_what_there_is() -> None:
    assert repr(school()) == "<Learner: <WordsProfile on cpu: S=4>>"
    assert (
        repr(Cutting(Made({}, bytes(1234), b"", 0, []), SPEC, LAYOUT)) == "<Cutting of 1,234 bytes>"
    )


def test_a_chunk_is_cut_as_its_layout_says() -> None:
    layout = Layout(shards=8, cuts=(Cut("bee", 4), Cut("summer", 2)))
    found = school().learn(Task(TEXT, [EVERY.tobytes()], layout))
    delta = decode(found.whole, of_chunk(SPEC, CHUNK, 4))
    assert any(MARK in name for name in delta.names.values())
    assert encode(delta) == encode(layout.columns.cut(wanted(EVERY)))
    assert encode(whole(delta)) == encode(wanted(EVERY))
    assert found.leaves == to_bytes(leaves_of(delta, EVERY, layout)) != made(EVERY).leaves
    one = Cutting(found, SPEC, layout)(EVERY[:3])
    homes = layout.shards_of(delta.concept, delta.feature)
    assert one == encode(delta.only(homes < EVERY[3]))
