"""What answers brought, and how much of it is kept."""

import random

from giaann_p2p.net.hive.finding import Finding
from giaann_p2p.net.hive.shelf import MOST_PLACE
from giaann_p2p.swarm.wire.pulse import apart, batch

KEYS = [bytes([number]) for number in range(3)]


def records(count: int, size: int = 500) -> list[bytes]:
    return [number.to_bytes(size, "big") for number in range(count)]


def test_what_nodes_bring_stands_by_them() -> None:
    found = Finding(KEYS)
    found.take("a", KEYS[0], [b"1"])
    found.take("a", KEYS[1], [b"2", b"3"])
    found.take("b", KEYS[0], [b"1"])
    found.take("a", KEYS[0], [b"4"])  # what it says last
    assert found.brought() == [[b"4", b"2", b"3"], [b"1"]]
    assert repr(found) == "<Finding: 2 nodes brought 512 bytes>"


def test_a_node_brings_of_a_place_what_an_honest_one_can_have() -> None:
    found = Finding(KEYS)
    whole = records(MOST_PLACE // 500)  # of others, and its own
    found.take("honest", KEYS[0], [b"o" * 20_000, *whole])
    found.take("liar", KEYS[0], records(5000))
    found.take("other", KEYS[0], [b""] * 100_000)
    honest, liar, other = map(len, found.brought())
    assert honest == len(whole) + 1
    assert liar < MOST_PLACE // 500 + 100
    assert other < 5000


def test_the_pulses_of_a_batch_count_one_by_one() -> None:
    found = Finding(KEYS)
    pulses = [number.to_bytes(30, "big") for number in range(100_000)]
    found.take("honest", KEYS[0], [batch(3, pulses[:1000]), *pulses[:1]])
    found.take("liar", KEYS[0], [batch(3, pulses)])
    honest, liar = found.brought()
    assert honest == [*apart(batch(3, pulses[:1000])), pulses[0]]
    assert 4000 < len(liar) < 5000


def test_when_all_bring_too_much_who_brought_most_loses() -> None:
    found = Finding(KEYS, most=1_000_000)
    for node in range(5):
        found.take(node, KEYS[0], records(40))
    for node in range(10, 30):
        for key in KEYS:
            found.take(node, key, records(900))
    brought = found.brought()
    assert all(some == records(40) for some in brought[:5])
    assert sum(len(one) for some in brought for one in some) <= 1_000_000
    assert all(brought)


def test_it_is_never_more_than_its_bound_whatever_comes() -> None:
    chance = random.Random(0)
    found = Finding(KEYS, most=20_000)
    for _ in range(500):
        some = records(chance.randrange(60), chance.choice([0, 100, 3000]) or 1)
        found.take(chance.randrange(8), chance.choice(KEYS), some[:250])
        assert sum(max(128, len(one)) for some in found.brought() for one in some) <= 20_000
