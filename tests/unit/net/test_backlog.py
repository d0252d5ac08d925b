"""How long a request would wait to be sent, by how long those before it did."""

import pytest

from giaann_p2p.net.backlog import ANYWAY, Backlog
from giaann_p2p.net.frames import CHUNK


def filled(nbytes: int, seconds_for_a_chunk: float) -> Backlog:
    """Return what is there when a line has taken so long for each of eight, and others wait."""
    backlog = Backlog()
    for number in range(8):
        backlog.add(number, CHUNK, 0.0)
    for number in range(8):
        backlog.took_turn(number, number * seconds_for_a_chunk)
    for number in range(nbytes // CHUNK):
        backlog.add(100 + number, CHUNK, 1.0)
    return backlog


def test_nothing_is_known_before_the_first() -> None:
    backlog = Backlog()
    for number in range(100):
        backlog.add(number, CHUNK, 0.0)
    assert backlog.wait == 0.0
    assert repr(backlog) == f"<Backlog: 100 requests, {100 * CHUNK:,} bytes>"


def test_what_waits_takes_as_long_as_what_waited() -> None:
    assert filled(2 * ANYWAY, 0.25).wait == pytest.approx(0.25 * 2 * ANYWAY / CHUNK)
    assert filled(2 * ANYWAY, 0.01).wait == pytest.approx(0.01 * 2 * ANYWAY / CHUNK)


def test_little_may_wait_however_long_it_takes() -> None:
    assert filled(ANYWAY - CHUNK, 5.0).wait == 0.0
    assert filled(ANYWAY, 5.0).wait == pytest.approx(5.0 * ANYWAY / CHUNK)


def test_what_had_little_before_it_tells_nothing_of_the_pace() -> None:
    backlog = filled(2 * ANYWAY, 0.25)
    wait = backlog.wait
    alone = Backlog()
    alone.add(1, 100, 0.0)
    alone.add(2, 100, 0.0)
    alone.took_turn(1, 50.0)
    alone.took_turn(2, 100.0)
    for number in range(10, 30):
        alone.add(number, CHUNK, 100.0)
    assert alone.wait == 0.0
    assert backlog.wait == wait


def test_a_long_body_counts_as_its_first_chunk() -> None:
    backlog = filled(0, 0.25)
    backlog.add(200, 100 * CHUNK, 9.0)
    assert repr(backlog) == f"<Backlog: 1 requests, {CHUNK:,} bytes>"
    backlog.took_turn(200, 10.0)
    backlog.took_turn(200, 11.0)  # its second turn
    assert repr(backlog) == "<Backlog: 0 requests, 0 bytes>"


def test_what_is_given_up_tells_nothing_and_waits_no_longer() -> None:
    backlog = filled(2 * ANYWAY, 0.25)
    wait = backlog.wait
    backlog.add(200, CHUNK, 1.0)
    backlog.drop(200)
    backlog.drop(200)
    assert backlog.wait == wait
