"""A compute peer tells when shards were last served, once nobody serves any."""

from collections.abc import Callable

import pytest

from giaann_p2p.swarm.members.last_served import LastServed
from giaann_p2p.swarm.wire.record import Missing
from tests.unit.swarm.members.test_peers_view import NOW, ONE, TWO, Seeing, record

NOTHING = Missing()


def _looking() -> tuple[Seeing, LastServed, Callable[[float], bool]]:
    around = Seeing()
    served = LastServed(around.directory)
    return around, served, served.look


def test_while_nobody_has_ever_served_a_shard_nothing_is_told() -> None:
    around, served, look = _looking()
    assert not look(NOW)
    around.tell(record(ONE, syncing=(0, 1)), record(TWO))
    assert not look(NOW + 1)
    assert not look(NOW + 100)
    assert served.missing == NOTHING


@pytest.mark.parametrize("leaves", [False, True])
def test_when_the_last_one_is_gone_the_time_is_told_until_shards_are_served_again(
    leaves: bool,
) -> None:
    around, served, look = _looking()
    around.tell(record(ONE, ready=(0,)))
    assert not look(NOW)
    assert not look(NOW + 20)
    if leaves:
        around.tell(record(ONE, 2, ready=(0,), state="left"), now=NOW + 21)
    assert look(NOW + 35)
    assert served.missing == Missing(seen=NOW + 20)
    assert not look(NOW + 400)
    assert served.missing == Missing(seen=NOW + 20)
    around.tell(record(TWO, syncing=(0,)), now=NOW + 400)
    assert not look(NOW + 401)
    around.tell(record(TWO, 2, ready=(0,)), now=NOW + 401)
    assert look(NOW + 402)
    assert served.missing == NOTHING
    assert repr(served) == "<LastServed: now>"
