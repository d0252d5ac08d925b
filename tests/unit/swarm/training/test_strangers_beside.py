"""Peers without standing that hold up commits: how long each is waited for, and what is kept."""

import pytest

from giaann_p2p.swarm.training import strangers_beside
from giaann_p2p.swarm.training.strangers_beside import StrangersBeside
from tests.helpers_swarm import NOW, A, B, C


def test_each_is_waited_for_a_minute_from_its_first_delay() -> None:
    some = StrangersBeside()
    assert some.is_waited_for(A, NOW)
    assert some.is_waited_for(B, NOW + 30)
    assert [some.is_waited_for(one, NOW + 59.9) for one in (A, B)] == [True, True]
    assert [some.is_waited_for(one, NOW + 60) for one in (A, B)] == [False, True]
    assert [some.is_waited_for(one, NOW + 1e6) for one in (A, B)] == [False, False]


def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers_beside, "_MOST", 2)
    some = StrangersBeside()
    for one in (A, B, C):
        assert some.is_waited_for(one, NOW)
    assert [some.is_waited_for(one, NOW + 60) for one in (C, B)] == [False, False]
    assert some.is_waited_for(A, NOW + 60)  # it was forgotten
    assert len(some._since) == 2
