"""Which of some replicas are read from."""

from collections import Counter

import pytest

from giaann_p2p.swarm.reading.latency import Latencies
from giaann_p2p.swarm.reading.load import Loads
from giaann_p2p.swarm.wire.identity import Peer
from tests.helpers_swarm import NOW, A, B, C, D

ALL = [A, B, C]
E = Peer(b"E" * 32)


class Sharing:
    """Loads, and the latencies that they go by."""

    def __init__(self, reader: Peer = D, **usual: float) -> None:
        self.latencies = Latencies()
        self.loads = Loads(self.latencies, reader)
        for name, seconds in usual.items():
            self.latencies.took(Peer(name.encode() * 32), seconds, NOW)

    def chosen(self, now: float = NOW, count: int = 300) -> Counter[Peer]:
        """Return how often each peer is chosen, by so many questions without calls."""
        return Counter(self.loads.choice(ALL, question, now) for question in range(count))


def test_peers_that_are_about_as_quick_have_equal_shares() -> None:
    found = Sharing(A=0.010, B=0.020, C=0.025).chosen(count=3000)
    assert found.keys() == {A, B, C}
    assert max(found.values()) < 1.15 * 1000


@pytest.mark.parametrize("quick", [0.0001, 0.010])
def test_a_peer_that_is_slower_by_far_has_none(quick: float) -> None:
    slow = 2 * quick + 0.0051
    assert Sharing(A=quick, B=slow, C=slow).chosen().keys() == {A}


def test_one_without_samples_is_as_quick_as_the_quickest() -> None:
    assert Sharing(A=0.001, B=0.3).chosen().keys() == {A, C}
    assert Sharing(A=0.3, B=0.3).chosen().keys() == {C}
    assert Sharing(A=0.001, B=0.3, C=0.3).chosen(NOW + 61).keys() == {A, B, C}


def test_the_fewest_open_calls_come_first() -> None:
    one = Sharing(A=0.02, B=0.02, C=0.02)
    for _ in range(2):
        for peer in (A, B):
            one.loads.began(peer, NOW)
    assert one.chosen().keys() == {C}
    one.loads.began(C, NOW)
    one.loads.began(C, NOW + 0.001)
    assert one.chosen().keys() == {A, B, C}
    one.loads.ended(B, NOW, NOW + 0.001, busy=False)
    assert (one.loads.open(B), one.chosen().keys()) == (1, {B})


def test_a_slower_peer_gets_no_read_only_because_it_has_fewer_calls() -> None:
    one = Sharing(A=0.01, B=0.1, C=0.1)
    for _ in range(9):
        one.loads.began(A, NOW)
    assert one.chosen().keys() == {A}


def test_a_peer_that_hangs_comes_after_busier_ones() -> None:
    one = Sharing(A=0.02, B=0.02, C=0.02)
    one.loads.began(A, NOW)
    for peer in (B, C):
        for _ in range(3):
            one.loads.began(peer, NOW + 0.015)
    assert one.chosen(NOW + 0.019).keys() == {A}
    assert one.chosen(NOW + 0.021).keys() == {B, C}


def test_a_peer_hangs_by_its_oldest_open_call() -> None:
    one = Sharing(A=0.02, B=0.02, C=0.02)
    for later in (0.0, 0.03):
        one.loads.began(A, NOW + later)
    for peer in (B, C):
        for _ in range(3):
            one.loads.began(peer, NOW + 0.03)
    assert one.chosen(NOW + 0.031).keys() == {B, C}
    one.loads.ended(A, NOW, NOW + 0.035, busy=False)  # the other call is not late yet
    assert one.chosen(NOW + 0.036).keys() == {A}


def test_the_longer_a_peer_hangs_the_slower_it_counts() -> None:
    one = Sharing(A=0.01, B=0.1, C=0.1)
    one.loads.began(A, NOW)
    assert one.chosen(NOW + 0.04).keys() == {A}  # the others would take longer still
    assert one.chosen(NOW + 0.3).keys() == {B, C}


def test_a_busy_peer_is_slow_for_a_second() -> None:
    one = Sharing(A=0.01, B=0.2, C=0.2)
    one.loads.began(A, NOW)
    one.loads.ended(A, NOW, NOW + 0.001, busy=True)
    assert one.chosen(NOW + 1).keys() == {B, C}
    assert one.chosen(NOW + 1.001).keys() == {A}


def test_a_busy_peer_is_still_better_than_a_slower_one() -> None:
    one = Sharing(A=0.01, B=4.0, C=4.0)
    one.loads.began(A, NOW)
    one.loads.ended(A, NOW, NOW + 0.001, busy=True)
    assert one.chosen(NOW + 0.5).keys() == {A}


def test_a_quick_refusal_makes_no_peer_look_quick() -> None:
    one = Sharing(A=0.1, B=0.02, C=0.02)
    for _ in range(9):
        one.loads.began(A, NOW)
        one.loads.ended(A, NOW, NOW + 0.001, busy=True)
    assert one.latencies.usual(A, NOW) == 0.1
    one.loads.began(A, NOW)
    one.loads.ended(A, NOW, NOW + 0.001, busy=False)
    assert one.latencies.usual(A, NOW) < 0.01


def test_a_peer_that_was_busy_before_it_ever_answered_is_tried_again() -> None:
    one = Sharing(B=0.001, C=0.3)
    one.loads.began(A, NOW)
    one.loads.ended(A, NOW, NOW + 0.002, busy=True)
    assert one.chosen(NOW + 1.1).keys() == {A, B}
    one.loads.began(A, NOW)
    one.loads.ended(A, NOW, NOW + 1.9, busy=True)  # slow, even to refuse
    assert one.chosen(NOW + 4).keys() == {B}


def test_readers_that_begin_together_do_not_ask_the_same_peers() -> None:
    one, other = Sharing(reader=D), Sharing(reader=E)
    pairs = [(one.loads.choice(ALL, n, NOW), other.loads.choice(ALL, n, NOW)) for n in range(300)]
    assert 60 < sum(first == second for first, second in pairs) < 140
    again = Sharing(reader=D)
    assert all(again.loads.choice(ALL, n, NOW) == first for n, (first, _) in enumerate(pairs))


def test_nothing_is_kept_of_peers_without_calls() -> None:
    one = Sharing()
    for number in range(50):
        peer = Peer(bytes([number]) * 32)
        one.loads.began(peer, NOW + number)
        one.loads.ended(peer, NOW + number, NOW + number, busy=True)
    assert len(one.loads._busy) <= 2
    assert not one.loads._open
