"""The time that large pushes have."""

import pytest

from giaann_p2p.swarm.training.uplink import LARGE, Uplink, thin_line

MEGABYTE = 1 << 20
NOW = 1000.0


def took(line: Uplink, seconds: float, size: int = MEGABYTE, answered: bool = True) -> None:
    """Push something; it ends after so many seconds."""
    sending = line.begin(size, 4.0, NOW, is_suspected=False)
    line.end(sending, NOW + seconds, answered)


def test_a_small_push_has_the_same_time_whatever_the_line() -> None:
    line = Uplink()
    for seconds in (0.1, 30.0):
        assert line.begin(LARGE, 4.0, NOW, is_suspected=False).within == 4.0
        assert line.more(LARGE) == 0.0
        took(line, seconds)


def test_small_pushes_show_nothing_about_the_line() -> None:
    line = Uplink()
    before = line.more(MEGABYTE)
    took(line, 0.01, LARGE)
    took(line, 4.0, LARGE, answered=False)
    assert line.more(MEGABYTE) == before


def test_at_first_a_large_one_has_what_half_a_megabit_a_second_needs() -> None:
    line = Uplink()
    assert line.more(MEGABYTE) == pytest.approx(8 * MEGABYTE / 0.5e6)
    assert line.begin(MEGABYTE, 4.0, NOW, is_suspected=False).within == pytest.approx(20.8, abs=0.1)
    assert line.more(LARGE + 1) == pytest.approx(2.1, abs=0.01)


@pytest.mark.parametrize("seconds", [0.5, 1.0, 8.0])
def test_then_four_times_what_the_last_one_took_per_byte(seconds: float) -> None:
    line = Uplink()
    took(line, seconds)
    assert line.more(MEGABYTE) == pytest.approx(4 * seconds)
    assert line.more(2 * MEGABYTE) == pytest.approx(8 * seconds)


def test_a_holder_has_a_second_for_each_megabyte_however_fast_the_line_is() -> None:
    line = Uplink()
    took(line, 0.001)
    assert line.more(MEGABYTE) == pytest.approx(1.05, abs=0.01)


def test_one_that_was_late_gives_the_next_more_time() -> None:
    line = Uplink()
    took(line, 0.5)
    assert line.more(MEGABYTE) == pytest.approx(2.0)
    expected = [8 * MEGABYTE / rate for rate in (0.5e6, 0.25e6, 0.125e6, 0.125e6)]
    for seconds in expected:
        took(line, 4.0 + line.more(MEGABYTE), answered=False)
        assert line.more(MEGABYTE) == pytest.approx(seconds)
    took(line, 100.0)
    assert line.more(MEGABYTE) == pytest.approx(expected[-1])


def test_one_that_failed_early_shows_nothing() -> None:
    line = Uplink()
    took(line, 0.5)
    took(line, 5.0, answered=False)
    assert line.more(MEGABYTE) == pytest.approx(2.0)


def test_one_at_a_time_while_the_line_is_thin_or_unknown() -> None:
    line = Uplink()
    assert not line.is_taken(MEGABYTE)
    first = line.begin(MEGABYTE, 4.0, NOW, is_suspected=False)
    assert line.is_taken(MEGABYTE)
    assert not line.is_taken(LARGE)
    line.end(first, NOW + 8.0, was_answered=True)  # 1 Mbit/s
    assert not line.is_taken(MEGABYTE)
    second = line.begin(MEGABYTE, 4.0, NOW, is_suspected=False)
    assert line.is_taken(MEGABYTE)
    line.end(second, NOW + 1.0, was_answered=True)  # 8 Mbit/s
    line.begin(MEGABYTE, 4.0, NOW, is_suspected=False)
    assert not line.is_taken(MEGABYTE)


def test_the_silence_of_a_suspected_peer_shows_nothing_and_holds_nobody_up() -> None:
    line = Uplink()
    took(line, 0.5)
    sending = line.begin(MEGABYTE, 4.0, NOW, is_suspected=True)
    line.end(sending, NOW + sending.within, was_answered=False)
    assert line.more(MEGABYTE) == pytest.approx(2.0)
    line = Uplink()
    line.begin(MEGABYTE, 4.0, NOW, is_suspected=True)
    assert not line.is_taken(MEGABYTE)


def test_other_peers_lines_count_as_thin() -> None:
    assert thin_line(LARGE) == 0.0
    assert thin_line(MEGABYTE) == Uplink().more(MEGABYTE)


def test_a_line_says_what_it_knows() -> None:
    line = Uplink()
    line.begin(MEGABYTE, 4.0, NOW, is_suspected=False)
    assert repr(line) == "<Uplink: 1 under way, 16 s a megabyte>"
