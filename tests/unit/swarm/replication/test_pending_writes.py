"""What the store takes in, by shard, until it has told."""

import random
from collections import Counter

from giaann_p2p.errors import GiaannError, StoreFull
from giaann_p2p.swarm.replication.pending_writes import PendingWrites
from giaann_p2p.swarm.wire.actions import Action, Leave


def test_a_shard_is_awaited_until_all_is_told_whatever_came_of_it() -> None:
    chance, deeds = random.Random(1), PendingWrites()
    told: list[tuple[int, GiaannError | None, float]] = []
    under_way: dict[int, set[int]] = {}
    for step in range(500):
        if chance.random() < 0.5:
            shards, name = set(chance.sample(range(8), chance.randrange(4))), step

            def then(error: GiaannError | None, now: float, name: int = name) -> list[Action]:
                told.append((name, error, now))
                return [Leave()]

            under_way[deeds.taking(shards, then)] = shards
        elif under_way:
            number = chance.choice(list(under_way))
            del under_way[number]
            error = chance.choice([None, StoreFull("full")])
            assert deeds.done(number, error, step) == [Leave()]
            assert told[-1][1:] == (error, step)
            assert deeds.done(number, None, step) == []  # it was told
        counted = Counter(shard for shards in under_way.values() for shard in shards)
        assert [deeds.awaited_by(shard) for shard in range(8)] == [
            counted[shard] > 0 for shard in range(8)
        ]
        assert len(deeds) == len(under_way)
