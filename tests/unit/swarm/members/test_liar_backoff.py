"""Whom to read from no longer: longer each time, and never for ever."""

from giaann_p2p.swarm.members.liar_backoff import LONGEST_BACKOFF, LiarBackoff
from giaann_p2p.swarm.wire.identity import Peer
from tests.helpers_swarm import NOW, A, B


def test_each_time_costs_twice_as_much() -> None:
    liar_backoff = LiarBackoff()
    seconds = [liar_backoff.lied(A, NOW) for _ in range(5000)]
    assert seconds[:7] == [60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, LONGEST_BACKOFF]
    assert seconds[-1] == LONGEST_BACKOFF


def test_who_lied_is_shunned_until_its_time_is_over() -> None:
    liar_backoff = LiarBackoff()
    assert not liar_backoff.holds(A, NOW)
    assert liar_backoff.lied(A, NOW) == 60.0
    assert liar_backoff.holds(A, NOW + 59.9)
    assert not liar_backoff.holds(A, NOW + 60)
    assert not liar_backoff.holds(B, NOW)
    assert liar_backoff.lied(A, NOW + 100) == 120.0  # it is not forgotten
    assert liar_backoff.holds(A, NOW + 219)
    assert not liar_backoff.holds(A, NOW + 220)
    assert len(liar_backoff) == 1


def test_of_too_many_the_first_is_forgotten() -> None:
    liar_backoff = LiarBackoff()
    for number in range(4096):
        liar_backoff.lied(Peer(number.to_bytes(32, "big")), NOW)
    liar_backoff.lied(Peer(bytes(32)), NOW)  # again
    liar_backoff.lied(A, NOW)
    assert len(liar_backoff) == 4096
    assert liar_backoff.holds(A, NOW)
    assert liar_backoff.holds(Peer(bytes(32)), NOW)
    assert not liar_backoff.holds(Peer((1).to_bytes(32, "big")), NOW)
