"""Fingerprints: sums that any change changes, and every salt."""

from dataclasses import replace

import numpy as np
import pytest

from giaann_p2p.model import fingerprint as module
from giaann_p2p.model.delta import EMPTY, Delta, total
from giaann_p2p.model.fingerprint import fingerprint, fingerprints, none
from tests.helpers_swarm import LESSONS
from tests.plain import fingerprint as plain

SALT = b"salt of a test.."


def test_it_is_the_plain_version() -> None:
    for chunk in range(5):
        delta = LESSONS.delta(chunk)
        assert fingerprint(delta, SALT).tolist() == plain.fingerprint(delta, SALT)


def test_nothing_has_none() -> None:
    assert fingerprint(EMPTY, SALT).tolist() == none().tolist() == [0, 0]


def test_fingerprints_add_up_as_deltas_do(monkeypatch: pytest.MonkeyPatch) -> None:
    deltas = [LESSONS.delta(chunk) for chunk in range(6)]
    whole = fingerprint(total(deltas), SALT)
    parts = sum((fingerprint(delta, SALT) for delta in deltas), none())
    assert np.array_equal(whole, parts)
    less = whole - fingerprint(deltas[2], SALT)
    assert np.array_equal(less, fingerprint(total(deltas[:2] + deltas[3:]), SALT))
    monkeypatch.setattr(module, "_AT_ONCE", 7)
    assert np.array_equal(whole, fingerprint(total(deltas), SALT))


def test_parts_have_the_fingerprints_that_they_have_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    delta = total([LESSONS.delta(chunk) for chunk in range(6)])
    part = np.arange(delta.neurons) * 7 % 5
    wanted = {n: fingerprint(one, SALT).tolist() for n, one in delta.cut(part).items()}
    for most in (7, 1 << 18):
        monkeypatch.setattr(module, "_AT_ONCE", most)
        found = fingerprints(delta, SALT, part, 6)
        assert [one.tolist() for one in found] == [*(wanted[n] for n in range(5)), [0, 0]]


def test_each_salt_has_its_own() -> None:
    delta = LESSONS.delta(1)
    found = {tuple(fingerprint(delta, bytes([n]) * 16).tolist()) for n in range(20)}
    assert len(found) == 20
    assert len({word for pair in found for word in pair}) == 40


def test_any_change_changes_it() -> None:
    delta = LESSONS.delta(1)
    before = fingerprint(delta, SALT)
    for name in ("concept", "feature", "count", "target", "branch", "segment", "strength"):
        array = getattr(delta, name).copy()
        array[3] += 1
        changed = fingerprint(replace(delta, **{name: array}), SALT)
        assert np.all(changed != before), name


def test_a_connection_back_is_another_one() -> None:
    one = Delta(
        np.array([1, 2], np.uint64),
        np.zeros(2, np.uint64),
        np.zeros(2, np.int64),
        np.array([0, 1, 1]),
        np.array([1], np.int32),
        np.array([0], np.uint8),
        np.array([0], np.uint8),
        np.array([5]),
    )
    back = replace(one, row_starts=np.array([0, 0, 1]), target=np.array([0], np.int32))
    assert np.all(fingerprint(one, SALT) != fingerprint(back, SALT))
