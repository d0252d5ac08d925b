"""Checks of pushed deltas follow the number of sentences in a chunk, which may grow."""

from dataclasses import replace

import numpy as np
import pytest

from giaann_p2p.errors import MessageError
from giaann_p2p.store.update import Update, anything, most_in_all, most_units
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.wire.limits import of_push
from giaann_p2p.swarm.wire.manifest import Rules
from tests.helpers_swarm import JOB, LESSONS, SHARDS, SPEC, shards


class Swarm:
    """A swarm whose chunks may grow."""

    def __init__(self) -> None:
        self.chunk = 64
        self.checks = DeltaChecks(SPEC, lambda: Rules(SHARDS, sizes=(self.chunk,)), anything)


def strong(units: int) -> Update:
    """Return an update in which one connection gets so many units."""
    delta = LESSONS.delta(1)
    strength = delta.strength.astype(np.int64)
    strength[-1] = units
    return Update(JOB, 1, shards(*range(SHARDS)), replace(delta, strength=strength))


def test_no_chunk_adds_more_than_its_sentences_can() -> None:
    swarm, most = Swarm(), most_units(SPEC, 64)
    for check in (swarm.checks.check_pushed, swarm.checks.check_fetched):
        swarm.chunk = 64
        check(strong(most))
        with pytest.raises(MessageError, match="a chunk of 64 sentences cannot add so much"):
            check(strong(most + 1))
        swarm.chunk = 65
        check(strong(most + 1))


def test_nor_do_all_its_connections_together() -> None:
    swarm, delta = Swarm(), LESSONS.delta(1)
    many = most_in_all(SPEC, 64) // most_units(SPEC, 64)
    assert many < delta.connections
    for count, is_too_much in ((many - 1, False), (many + 1, True)):
        strength = np.ones(delta.connections, np.int64)
        strength[:count] = most_units(SPEC, 64)
        update = Update(JOB, 1, shards(*range(SHARDS)), replace(delta, strength=strength))
        if is_too_much:
            with pytest.raises(MessageError, match="cannot add so much"):
                swarm.checks.check_pushed(update)
        else:
            swarm.checks.check_pushed(update)


def test_the_size_of_a_push_is_bounded_by_its_sentences() -> None:
    swarm = Swarm()
    assert swarm.checks.limits == of_push(SPEC, 64)
    swarm.chunk = 1024
    assert swarm.checks.limits == of_push(SPEC, 1024) != of_push(SPEC, 64)
