"""Digests: sums of rows' digests that any change changes."""

from dataclasses import replace

import numpy as np
import pytest

from giaann_p2p.model import digest as module
from giaann_p2p.model.delta import EMPTY, Delta, total
from giaann_p2p.model.digest import added, digest, readable, row_digests
from giaann_p2p.store.layout import Layout
from tests.helpers_parcel import delta_of
from tests.helpers_store import lessons

DELTA = total([one.delta for one in lessons(5)])


def changed(name: str, at: int, by: int) -> Delta:
    array = getattr(DELTA, name).copy()
    array[at] += array.dtype.type(by)
    return replace(DELTA, **{name: array})


def test_nothing_has_none() -> None:
    assert digest(EMPTY) == 0
    assert readable(0) == "0" * 64
    assert int(readable(digest(DELTA)), 16) == digest(DELTA)


@pytest.mark.parametrize("shards", [1, 2, 8])
def test_the_parts_digests_add_up(shards: int) -> None:
    number = Layout(shards=shards).shards_of(DELTA.concept, DELTA.feature).astype(np.int64)
    parts = DELTA.cut(number).values()
    assert len(parts) > shards // 3
    assert added(map(digest, parts)) == digest(DELTA)


def test_however_many_rows_are_digested_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = list(row_digests(DELTA))
    for at_once in (1, 7, 1000):
        monkeypatch.setattr(module, "_AT_ONCE", at_once)
        assert list(row_digests(DELTA)) == expected
    assert len(set(expected)) == len(expected) == np.count_nonzero(DELTA.count)


def test_what_is_only_a_target_has_no_row() -> None:
    neurons = {(1, 0): 1, (2, 0): 0}
    delta = delta_of(neurons, {(0, 1, 0, 0): 5}, {1: "one", 2: "two"})
    assert len(list(row_digests(delta))) == 1
    assert digest(delta) == digest(replace(delta, names={1: "one"}))


@pytest.mark.parametrize("name", ["count", "strength", "branch", "segment", "target"])
def test_any_change_of_a_value_changes_it(name: str) -> None:
    found = {digest(DELTA)}
    for at in range(len(getattr(DELTA, name))):
        by = -1 if name == "target" and DELTA.target[at] else 1
        found.add(digest(changed(name, at, by)))
    assert len(found) == len(getattr(DELTA, name)) + 1


@pytest.mark.parametrize("name", ["concept", "feature"])
def test_another_neuron_changes_it(name: str) -> None:
    names = DELTA.names | {number + 1: text for number, text in DELTA.names.items()}
    names[1] = "one"
    whole = replace(DELTA, names=names)
    for at in range(DELTA.neurons):
        assert digest(replace(changed(name, at, 1), names=names)) != digest(whole)


def test_any_change_of_a_text_changes_it() -> None:
    for number, text in DELTA.names.items():
        for other in (text + "s", text[:-1], ""):
            names = DELTA.names | {number: other}
            assert digest(replace(DELTA, names=names)) != digest(DELTA)


def test_texts_cannot_be_cut_otherwise() -> None:
    found = set()
    for concept, feature in (("ab", "c"), ("a", "bc"), ("", "abc")):
        found.add(digest(delta_of({(1, 2): 1}, {}, {1: concept, 2: feature})))
    assert len(found) == 3
