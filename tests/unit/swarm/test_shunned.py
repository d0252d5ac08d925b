"""Whom to read from no longer: longer each time, and never for ever."""

import pytest

from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.shunned import MOST_SHUN, Shunned, shun_for
from tests.helpers_swarm import NOW, A, B


@pytest.mark.parametrize(
    ("lies", "seconds"), [(1, 60.0), (2, 120.0), (6, 1920.0), (7, MOST_SHUN), (5000, MOST_SHUN)]
)
def test_each_time_costs_twice_as_much(lies: int, seconds: float) -> None:
    assert shun_for(lies) == seconds


def test_who_lied_is_shunned_until_its_time_is_over() -> None:
    shunned = Shunned()
    assert not shunned.holds(A, NOW)
    assert shunned.lied(A, NOW) == 60.0
    assert shunned.holds(A, NOW + 59.9)
    assert not shunned.holds(A, NOW + 60)
    assert not shunned.holds(B, NOW)
    assert shunned.lied(A, NOW + 100) == 120.0  # it is not forgotten
    assert shunned.holds(A, NOW + 219)
    assert not shunned.holds(A, NOW + 220)
    assert len(shunned) == 1


def test_of_too_many_the_first_is_forgotten() -> None:
    shunned = Shunned()
    for number in range(4096):
        shunned.lied(Peer(number.to_bytes(32, "big")), NOW)
    shunned.lied(Peer(bytes(32)), NOW)  # again
    shunned.lied(A, NOW)
    assert len(shunned) == 4096
    assert shunned.holds(A, NOW)
    assert shunned.holds(Peer(bytes(32)), NOW)
    assert not shunned.holds(Peer((1).to_bytes(32, "big")), NOW)
