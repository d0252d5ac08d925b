"""The time that large pushes have."""

import pytest

from giaann_p2p.swarm.training.uplink import LARGE, Sending, Uplink
from giaann_p2p.swarm.wire.identity import Peer
from tests.helpers_swarm import NOW, A, B, C, D

MEGABYTE = 1 << 20
THIN = 8 * MEGABYTE / 0.5e6
"""Seconds that a megabyte takes over a thin line."""


def took(
    line: Uplink, seconds: float, size: int = MEGABYTE, taken: bool = True, peer: Peer = A
) -> None:
    """Push something; it ends after so many seconds."""
    line.end(begin(line, peer, size), NOW + seconds, taken)


def begin(line: Uplink, peer: Peer = A, size: int = MEGABYTE, now: float = NOW) -> Sending:
    return line.begin(peer, size, 4.0, now, is_suspected=False)


def test_a_small_push_has_the_same_time_whatever_the_line() -> None:
    line = Uplink()
    for seconds in (0.1, 30.0):
        assert begin(line, size=LARGE).within == 4.0
        assert line.more(LARGE, A) == line.more_from(LARGE, A, B) == 0.0
        took(line, seconds)


def test_small_pushes_show_nothing_about_the_line() -> None:
    line = Uplink()
    before = line.more(MEGABYTE, A)
    took(line, 0.01, LARGE)
    took(line, 4.0, LARGE, taken=False)
    assert line.more(MEGABYTE, A) == before


def test_at_first_a_large_one_has_what_half_a_megabit_a_second_needs() -> None:
    line = Uplink()
    assert line.more(MEGABYTE, A) == pytest.approx(8 * MEGABYTE / 0.5e6)
    assert begin(line).within == pytest.approx(20.8, abs=0.1)
    assert line.more(LARGE + 1, A) == pytest.approx(2.1, abs=0.01)


@pytest.mark.parametrize("seconds", [0.5, 1.0, 8.0])
def test_then_four_times_what_the_last_one_took_per_byte(seconds: float) -> None:
    line = Uplink()
    took(line, seconds)
    assert line.more(MEGABYTE, A) == pytest.approx(4 * seconds)
    assert line.more(2 * MEGABYTE, A) == pytest.approx(8 * seconds)


def test_a_holder_has_a_second_for_each_megabyte_however_fast_the_line_is() -> None:
    line = Uplink()
    took(line, 0.001)
    assert line.more(MEGABYTE, A) == pytest.approx(1.05, abs=0.01)


def test_one_that_was_late_gives_the_next_more_time() -> None:
    line = Uplink()
    took(line, 0.5)
    assert line.more(MEGABYTE, A) == pytest.approx(2.0)
    expected = [8 * MEGABYTE / rate for rate in (0.5e6, 0.25e6, 0.125e6, 0.125e6)]
    for seconds in expected:
        took(line, 4.0 + line.more(MEGABYTE, A), taken=False)
        assert line.more(MEGABYTE, A) == pytest.approx(seconds)
    took(line, 100.0)
    assert line.more(MEGABYTE, A) == pytest.approx(expected[-1])


def test_one_that_failed_early_shows_nothing() -> None:
    line = Uplink()
    took(line, 0.5)
    took(line, 5.0, taken=False)
    assert line.more(MEGABYTE, A) == pytest.approx(2.0)


def test_one_at_a_time_while_the_line_is_thin_or_unknown() -> None:
    line = Uplink()
    assert not line.is_taken(MEGABYTE, A, NOW)
    first = begin(line)
    assert line.is_taken(MEGABYTE, A, NOW)
    assert not line.is_taken(LARGE, A, NOW)
    line.end(first, NOW + 8.0, was_taken=True)  # 1 Mbit/s
    assert not line.is_taken(MEGABYTE, A, NOW)
    second = begin(line)
    assert line.is_taken(MEGABYTE, A, NOW)
    line.end(second, NOW + 1.0, was_taken=True)  # 8 Mbit/s
    begin(line)
    assert not line.is_taken(MEGABYTE, A, NOW)


def test_the_silence_of_a_suspected_peer_shows_nothing_and_holds_nobody_up() -> None:
    line = Uplink()
    took(line, 0.5)
    sending = line.begin(A, MEGABYTE, 4.0, NOW, is_suspected=True)
    assert not line.end(sending, NOW + sending.within, was_taken=False)
    assert line.more(MEGABYTE, A) == pytest.approx(2.0)
    line = Uplink()
    line.begin(A, MEGABYTE, 4.0, NOW, is_suspected=True)
    assert not line.is_taken(MEGABYTE, A, NOW)


def test_each_peer_has_a_pace_of_its_own() -> None:
    line = Uplink()
    took(line, 0.5, peer=A)
    took(line, 8.0, peer=B)
    assert line.more(MEGABYTE, A) == pytest.approx(2.0)
    assert line.more(MEGABYTE, B) == pytest.approx(32.0)
    assert line.more(MEGABYTE, C) == pytest.approx(THIN)
    assert [line.is_fast(peer) for peer in (A, B, C)] == [True, False, False]


def test_a_late_push_gives_more_time_to_unknown_peers_until_one_is_taken() -> None:
    line = Uplink()
    for _ in range(2):
        took(line, 200.0, taken=False, peer=A)
    assert line.more(MEGABYTE, A) == pytest.approx(4 * THIN)
    assert line.more(MEGABYTE, B) == pytest.approx(2 * THIN)  # A alone raises it once
    took(line, 8 * MEGABYTE / 0.3e6, peer=C)
    assert line.more(MEGABYTE, B) == pytest.approx(2 * THIN)
    took(line, 0.5, peer=D)
    assert line.more(MEGABYTE, B) == pytest.approx(THIN)
    assert line.more(MEGABYTE, A) == pytest.approx(4 * THIN)


def test_who_has_a_fast_line_neither_waits_nor_is_waited_for() -> None:
    line = Uplink()
    took(line, 0.5, peer=A)
    begin(line, A)
    assert not line.is_taken(MEGABYTE, B, NOW)
    begin(line, B)
    assert line.is_taken(MEGABYTE, C, NOW)
    assert not line.is_taken(MEGABYTE, A, NOW)


def test_others_wait_for_a_push_for_20_seconds_and_longer_if_more_share_the_line() -> None:
    line, now, size = Uplink(), NOW, 7 * MEGABYTE
    for wait in (20.0, 40.0, 60.0):
        begin(line, B, size, now)
        assert line.is_taken(size, C, now + wait - 0.1)
        assert not line.is_taken(size, C, now + wait)
        now += wait


@pytest.mark.parametrize(("times", "wait"), [(0.6, 20.0), (2, 40.0), (9, 80.0)])
def test_others_wait_longer_where_the_line_is_known_to_be_thin(times: float, wait: float) -> None:
    line = Uplink()
    took(line, times * THIN / 4, peer=B)
    begin(line, B)
    assert line.is_taken(MEGABYTE, C, NOW + wait - 0.1)
    assert not line.is_taken(MEGABYTE, C, NOW + wait + 0.1)


def test_the_end_of_a_push_says_whether_others_waited_for_it() -> None:
    line = Uplink()
    sending = begin(line)
    assert line.end(sending, NOW + 0.5, was_taken=True)
    assert not line.end(begin(line), NOW + 0.5, was_taken=True)
    assert not line.end(begin(line, B, LARGE), NOW + 0.5, was_taken=True)


def test_rows_are_fetched_over_a_line_that_counts_as_thin() -> None:
    assert Uplink().more_from(MEGABYTE, A, B) == pytest.approx(THIN)


def test_they_have_no_more_time_than_sending_them_takes_as_far_as_that_is_known() -> None:
    line, size = Uplink(), 7 * MEGABYTE
    assert line.more_from(size, A, B) == pytest.approx(7 * THIN)
    took(line, 0.5, peer=B)
    assert line.more_from(size, A, B) == 20.0
    took(line, 8.0, peer=B)
    assert line.more_from(size, A, B) == pytest.approx(7 * THIN)
    took(line, 0.5, peer=A)
    assert line.more_from(size, A, B) == pytest.approx(14.0)
    took(line, 8.0, peer=A)
    assert line.more_from(size, A, B) == pytest.approx(7 * THIN)


def test_the_oldest_of_many_paces_is_forgotten() -> None:
    line = Uplink()
    took(line, 0.5, peer=A)
    took(line, 0.5, peer=B)
    took(line, 0.5, peer=A)
    for number in range(4095):
        took(line, 0.5, peer=Peer(number.to_bytes(32)))
    assert line.is_fast(A)
    assert not line.is_fast(B)


def test_a_line_says_what_it_knows() -> None:
    line = Uplink()
    took(line, 0.5)
    begin(line, B)
    assert repr(line) == "<Uplink: 1 under way, 1 paces, 16 s a megabyte to others>"
