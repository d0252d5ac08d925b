"""How much is asked of a peer at once, by what it turned away."""

from giaann_p2p.swarm.replication.window import Windows
from tests.helpers_swarm import NOW, A, B

PAUSE = 1.0


def test_a_peer_is_asked_for_what_it_has_taken_on_and_for_one_more_each_time() -> None:
    windows = Windows(8, PAUSE)
    assert windows.of(A, NOW) == 8
    windows.turned_away(A, 3, NOW)
    assert (windows.of(A, NOW), windows.of(B, NOW)) == (3, 8)
    for many in (4, 5, 6, 7, 8, 8):
        windows.came(A, NOW)
        assert windows.of(A, NOW) == many
    assert repr(windows) == "<Windows: 0 peers accept fewer than 8 requests>"


def test_of_many_refusals_the_least_that_was_left_counts() -> None:
    windows = Windows(8, PAUSE)
    for left in (5, 4, 6):
        windows.turned_away(A, left, NOW)
    assert windows.of(A, NOW) == 4


def test_who_takes_on_nothing_is_asked_for_one_thing_after_a_pause() -> None:
    windows = Windows(8, PAUSE)
    for _ in range(3):
        windows.turned_away(A, 0, NOW)
        assert windows.of(A, NOW + PAUSE / 2) == 0
    assert windows.of(A, NOW + PAUSE) == 1
    windows.came(A, NOW + PAUSE)
    assert windows.of(A, NOW + PAUSE) == 2
