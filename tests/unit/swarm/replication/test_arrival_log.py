"""When chunks came, by what an owner sees of its own sets."""

from giaann_p2p.swarm.replication.arrival_log import DAY, EVERY, ArrivalLog
from tests.helpers_swarm import NOW, applied


def test_what_was_here_at_the_beginning_is_old() -> None:
    arrival_log = ArrivalLog()
    arrival_log.look([applied(1, 2)], NOW)
    assert not arrival_log.since(0)


def test_what_is_new_came_when_it_is_seen_first() -> None:
    arrival_log = ArrivalLog()
    held = applied(1)
    for step, chunk in enumerate((1, 2, 3)):
        held |= applied(chunk)
        arrival_log.look([held, held], NOW + step)
    assert arrival_log.since(NOW) == applied(2, 3)
    assert arrival_log.since(NOW + 2) == applied(3)
    assert not arrival_log.since(NOW + 3)


def test_what_one_shard_has_is_here() -> None:
    arrival_log = ArrivalLog()
    arrival_log.look([applied(1), applied(1)], NOW)
    arrival_log.look([applied(1), applied(1, 2)], NOW + 1)
    arrival_log.look([applied(1, 2), applied(1, 2)], NOW + 2)
    assert arrival_log.since(NOW) == applied(2)
    assert not arrival_log.since(NOW + 2)


def test_a_day_is_remembered() -> None:
    arrival_log = ArrivalLog()
    arrival_log.look([], NOW)
    arrival_log.look([applied(1)], NOW + 1)
    arrival_log.look([applied(1, 2)], NOW + DAY + 2)
    assert arrival_log.since(0) == applied(2)
    assert repr(arrival_log) == "<ArrivalLog: 1 chunks>"


def test_it_looks_every_few_seconds() -> None:
    arrival_log = ArrivalLog()
    assert arrival_log.is_due(NOW)
    arrival_log.look([], NOW)
    assert not arrival_log.is_due(NOW + EVERY - 1)
    assert arrival_log.is_due(NOW + EVERY)
