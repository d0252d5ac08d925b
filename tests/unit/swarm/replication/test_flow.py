"""How much is asked of a peer at once, and how long it is waited for, by how it answered."""

import random

import pytest

from giaann_p2p.swarm.replication.flow import FIRST, LEAST, MOST, MOST_WAIT, Asked, Flow
from giaann_p2p.swarm.wire.identity import Peer
from tests.helpers_swarm import NOW, A, B

WAIT = 4.0


def after(flow: Flow, *took: float, size: int = FIRST) -> int:
    """Ask A for something again and again; return how wide the window is then."""
    now = NOW
    for seconds in took:
        asked = flow.ask(A, size, now)
        now += seconds
        flow.came(asked, size, now)
    return flow.window(A)


@pytest.mark.parametrize(
    ("took", "window"),
    [
        ((), FIRST),
        ((0.1,), 2 * FIRST),
        ((3.9,), 2 * FIRST),  # nobody knows of a quicker one yet
        ((0.1, 0.6), 3 * FIRST),
        ((0.1, 0.7), 2 * FIRST),
        ((0.1, 1.5), 2 * FIRST),
        ((0.1, 1.7), FIRST),
        ((0.1, 1.7, 1.7), FIRST // 2),
        ((0.1, 1.7, 0.1), FIRST + FIRST // 4),
        ((2.0, 2.5, 2.4), 4 * FIRST),  # whatever it is asked for, it takes that long
        ((0.1,) + 9 * (3.0,), LEAST),
    ],
)
def test_a_window_is_as_wide_as_what_comes_soon(took: tuple[float, ...], window: int) -> None:
    assert after(Flow(WAIT), *took) == window


def test_a_window_is_never_wider_than_the_widest() -> None:
    flow = Flow(WAIT)
    assert after(flow, *[0.1] * 10, size=MOST // 8) == MOST
    assert flow.window(B) == FIRST


def test_what_is_under_way_fits_into_the_window_or_is_one_question() -> None:
    flow = Flow(WAIT)
    assert flow.fits(A, 100 * MOST)
    one = flow.ask(A, FIRST - 10, NOW)
    assert flow.fits(A, 10)
    assert not flow.fits(A, 11)
    assert flow.fits(B, FIRST + 1)
    two = flow.ask(A, 10, NOW)
    assert repr(flow) == f"<Flow: {FIRST:,} bytes in flight from 1 peers>"
    flow.came(one, 0, NOW)
    flow.failed(two, NOW)
    assert flow.fits(A, 100 * MOST)
    assert flow.window(A) == FIRST


def test_what_is_late_together_narrows_the_window_once() -> None:
    flow = Flow(WAIT)
    flow.came(flow.ask(A, 1, NOW), 1, NOW + 0.1)
    four = [flow.ask(A, 100, NOW + 1) for _ in range(4)]
    for asked in four[:3]:
        flow.came(asked, 100, NOW + 4)
    flow.failed(four[3], NOW + 6)
    assert flow.window(A) == (FIRST + 1) // 2
    flow.failed(flow.ask(A, 100, NOW + 6), NOW + 11)
    assert flow.window(A) == (FIRST + 1) // 4


@pytest.mark.parametrize(
    ("size", "wait"),
    [(1, WAIT), (FIRST, WAIT), (2 * FIRST, 2 * WAIT), (5 * FIRST, 5 * WAIT), (MOST, MOST_WAIT)],
)
def test_what_does_not_fit_into_the_window_may_take_longer(size: int, wait: float) -> None:
    assert Flow(WAIT).ask(A, size, NOW).wait == wait


def test_what_waits_for_others_may_take_longer() -> None:
    flow = Flow(WAIT)
    assert [flow.ask(A, FIRST, NOW).wait for _ in range(3)] == [WAIT, 2 * WAIT, 3 * WAIT]


def test_after_each_silence_it_is_waited_twice_as_long_until_something_comes() -> None:
    flow, now, waits = Flow(WAIT), NOW, list[float]()
    for _ in range(8):
        asked = flow.ask(A, 1, now)
        waits.append(asked.wait)
        now += asked.wait
        flow.failed(asked, now)
    assert waits == [4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0]
    assert flow.window(A) == LEAST
    flow.came(flow.ask(A, 1, now), 1, now + 1)
    assert flow.ask(A, 1, now).wait == WAIT + 1


def test_who_is_no_longer_there_has_no_thin_line() -> None:
    flow = Flow(WAIT)
    flow.failed(flow.ask(A, 1, NOW), NOW + 1)
    assert (flow.window(A), flow.ask(A, 1, NOW).wait) == (FIRST, WAIT)


def test_a_wait_longer_than_the_longest_is_left_as_it_is() -> None:
    assert Flow(100.0).ask(A, MOST, NOW).wait == 100.0


def test_peers_that_come_and_go_are_forgotten_but_not_those_that_are_asked() -> None:
    flow = Flow(WAIT)
    asked = flow.ask(A, FIRST, NOW)
    for number in range(1000):
        stranger = Peer(number.to_bytes(32, "little"))
        flow.came(flow.ask(stranger, 1, NOW), 1, NOW)
    assert len(flow._lines) == 256
    assert not flow.fits(A, 1)
    flow.came(asked, 1, NOW)
    assert flow.fits(A, MOST)


@pytest.mark.parametrize("rate", [1 << 14, 1 << 15, 1 << 17, 1 << 20, 1 << 24])
@pytest.mark.parametrize("busy", [0.0, 1.5])
def test_over_any_line_nearly_all_that_is_sent_comes_in_time(rate: int, busy: float) -> None:
    """A line that carries so many bytes a second, one after the other, to a peer that is busy."""
    flow, chance, now = Flow(WAIT), random.Random(rate), NOW
    free = NOW  # when the line is
    came = sent = 0
    open_now: list[tuple[float, int, Asked]] = []
    while came < 40 * rate and now < NOW + 400:
        size = chance.randrange(1, flow.window(A))
        while flow.fits(A, size):
            asked = flow.ask(A, size, now)
            free = max(free, now + busy) + size / rate
            sent += size
            open_now.append((min(free, now + asked.wait), size, asked))
            size = chance.randrange(1, flow.window(A))
        open_now.sort(key=lambda one: one[0])
        now, size, asked = open_now.pop(0)
        if now < asked.when + asked.wait:
            came += size
            flow.came(asked, size, now)
        else:
            flow.failed(asked, now)
    under_way = sum(size for _, size, _ in open_now)
    assert came >= 40 * min(rate, MOST // 4)
    assert sent - under_way <= 1.2 * came
