"""What is on its way, against a list of what was sent and when."""

import random

import pytest

from tests.benchmarks.swarm.line import END, LOST, Line


def test_a_piece_arrives_a_while_after_it_was_sent() -> None:
    line = Line(10)
    states = [(line.next, line.size)]
    line.send(b"one", 1)
    line.send(END, 2)
    line.send(LOST, 2)
    states.append((line.next, line.size))
    assert line.arrived(10.9) == []
    assert line.arrived(11) == [b"one"]
    states.append((line.next, line.size))
    assert line.arrived(20) == [END, LOST]
    assert line.arrived(20) == []
    states.append((line.next, line.size))
    assert states == [(None, 0), (11, 3), (12, 0), (None, 0)]


def test_it_says_what_is_on_its_way() -> None:
    line = Line(1)
    line.send(bytes(1500), 0)
    assert repr(line) == "<Line: 1,500 bytes on their way>"


@pytest.mark.parametrize("seed", range(20))
def test_everything_arrives_once_in_order_and_in_time(seed: int) -> None:
    chance = random.Random(seed)
    delay = chance.choice([0, 1, 7])
    line, sent, came = Line(delay), list[tuple[float, bytes]](), list[bytes | None]()
    now = 0
    for number in range(200):
        now += chance.randrange(3)
        if chance.random() < 0.6:
            piece = number.to_bytes(2, "big") * chance.randrange(1, 4)
            line.send(piece, now)
            sent.append((now + delay, piece))
        if chance.random() < 0.4:
            came += line.arrived(now)
            assert came == [piece for due, piece in sent if due <= now]
        on_its_way = sent[len(came) :]
        assert line.size == sum(len(piece) for _, piece in on_its_way)
        assert line.next == (on_its_way[0][0] if on_its_way else None)
