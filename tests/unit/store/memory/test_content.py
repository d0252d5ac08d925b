"""What shards hold, as deltas: the same bytes for the same knowledge."""

import numpy as np

from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.digest import digest
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.memory.columns import Columns
from giaann_p2p.store.memory.content import content
from giaann_p2p.store.memory.places import Places
from tests.helpers import SMALL, assert_same
from tests.helpers_store import grown, lessons

ALL = np.arange(4, dtype=np.uint16)
DELTAS = [one.delta for one in lessons(6)]


def columns(deltas: list[Delta]) -> Columns:
    made = Columns(Layout(shards=4), Places(SMALL.branches, SMALL.segments))
    for number in ALL.tolist():
        made.hold(number)
    for delta in deltas:
        made.add(delta, ALL)
    return made


def content_of(made: Columns, *numbers: int) -> Delta:
    shards = [shard for number in numbers if (shard := made.merge(number))]
    return content(shards, made.neurons, made.places, made.names)


def test_nothing_is_the_empty_delta() -> None:
    assert content_of(columns([]), 0, 1, 2, 3).neurons == 0
    assert content_of(columns(DELTAS)).neurons == 0


def test_it_is_the_same_to_the_last_byte_whatever_the_order() -> None:
    wide = [*DELTAS, grown(DELTAS[0], 1 << 30)]
    expected = total(wide)
    assert_same(content_of(columns(wide), 0, 1, 2, 3), expected)
    assert_same(content_of(columns(wide[::-1]), 3, 1, 0, 2), expected)


def test_a_shard_is_a_cut_of_the_whole() -> None:
    whole, made = total(DELTAS), columns(DELTAS)
    parts = whole.cut(made.layout.shards_of(whole.concept, whole.feature).astype(np.int64))
    for number, part in parts.items():
        found = content_of(made, number)
        assert digest(found) == digest(part)
        named = {*part.concept[part.count > 0].tolist(), *part.feature[part.count > 0].tolist()}
        assert found.names == {word: whole.names[word] for word in named - {0}}
