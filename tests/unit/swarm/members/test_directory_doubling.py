"""A directory follows the number of shards, whatever its records count in."""

import random

import numpy as np
import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.record import Naming
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.unit.swarm.members.helpers_directory import NOW, PEERS, SWARM, WHO, record

FIRST = 16


class Ruled:
    """A directory whose rules may change."""

    def __init__(self, shards: int = FIRST) -> None:
        self.rules = rules(shards)
        self.directory = Directory(SWARM, lambda: self.rules)


def rules(shards: int) -> Rules:
    return Rules(shards, 2, founding_shards=0 if shards == FIRST else FIRST, edition=shards // 32)


def random_record(rng: random.Random, at: int, now: float) -> bytes:
    """Return a record of a peer that knows some edition or other."""
    counted = rng.choice([16, 32, 64])
    states = np.array([rng.choice([0, 0, 1, 1, 1, 2, 3]) for _ in range(counted)])
    ready, syncing, cold = (
        packed(np.flatnonzero(states == n).astype(np.uint16), counted) for n in (1, 2, 3)
    )
    accused = PEERS[at - 1]
    return record(
        WHO[at],
        now,
        ready=ready,
        syncing=syncing,
        cold=cold,
        wrong=(Naming(accused, cold),) if rng.random() < 0.3 else (),
        edition=counted // 32,
        counted=0 if counted == FIRST else counted,
        lifetime=rng.choice([30, 300]),
    )


def all_of(found: Directory, now: float) -> object:
    return [
        found.members(now),
        found.named(now),
        [
            [set(asked(n, now)) for asked in (found.ready, found.syncing, found.cold)]
            for n in range(found.shards)
        ],
        [
            found.held_by(lambda peer, one=one: peer == one, live, now).tolist()  # type: ignore[misc]
            for one in PEERS
            for live in (True, False)
        ],
        found.sharing(np.arange(0, found.shards, 3, dtype=np.uint16), now),
    ]


@pytest.mark.parametrize("seed", range(10))
def test_it_is_as_if_it_had_known_the_number_from_the_start(seed: int) -> None:
    rng, found = random.Random(seed), Ruled()
    heard: list[tuple[bytes, float]] = []
    now = NOW
    for shards in (16, 32, 64):
        found.rules = rules(shards)
        for _ in range(12):
            now += rng.choice([1, 5, 40])
            data = random_record(rng, rng.randrange(len(WHO)), now)
            heard.append((data, now))
            assert found.directory.merge(data, now) is not None
        fresh = Ruled(shards)
        for data, at in heard:
            fresh.directory.merge(data, at)
        for at in (now, now + 20, now + 100):  # some expire
            assert all_of(found.directory, at) == all_of(fresh.directory, at)


@pytest.mark.parametrize("asked", ["a look", "a merge"])
def test_a_malformed_record_that_was_never_read_is_dropped(asked: str) -> None:
    """A record that counts very many shards is taken in unread, whoever sent it."""
    found, hollow = Ruled(), packed(np.array([3], np.uint16), FIRST)
    for said in ({"ready": b"\x09rubbish"}, {"wrong": (Naming(PEERS[1], b"\x09"),)}):
        assert found.directory.merge(record(WHO[0], counted=128, edition=4, **said), NOW)
        assert found.directory.merge(record(WHO[2], ready=hollow), NOW)
        found.rules = rules(32)
        if asked == "a merge":
            assert found.directory.merge(record(WHO[3], NOW + 1), NOW + 1)
        assert found.directory.ready(3 + FIRST, NOW + 1) == [PEERS[2]]
        assert PEERS[0] not in found.directory.members(NOW + 1)
        found = Ruled()


def test_the_version_changes_with_the_number_of_shards() -> None:
    found = Ruled()
    found.directory.merge(record(ready=packed(np.array([3], np.uint16), FIRST)), NOW)
    before = found.directory.version(NOW)
    assert found.directory.version(NOW) == before
    assert found.directory.ready(3, NOW) == [PEERS[0]]
    with pytest.raises(UsageError, match="no shard 19; the last is 15"):
        found.directory.ready(19, NOW)
    found.rules = rules(32)
    assert found.directory.version(NOW) > before
    assert found.directory.ready(19, NOW) == [PEERS[0]]
    found.directory.merge(record(now=NOW + 1, state="left"), NOW + 1)
    assert found.directory.ready(19, NOW + 1) == []


def test_an_accusation_is_told_of_the_shards_that_there_are_now() -> None:
    found = Ruled()
    wrong = (Naming(PEERS[1], packed(np.array([5], np.uint16), FIRST)),)
    found.directory.merge(record(wrong=wrong), NOW)
    found.rules = rules(32)
    (one,) = found.directory.named(NOW)[PEERS[0]]
    assert unpacked(one.shards, 32).tolist() == [5, 21]


def test_a_view_places_and_finds_the_shards_that_there_are_now() -> None:
    found, everything = Ruled(), packed(np.arange(FIRST, dtype=np.uint16), FIRST)
    view = PeersView(PEERS[0], SWARM, lambda: found.rules)
    for who in WHO[:3]:
        view.learn(record(who, ready=everything), NOW, lambda peer: None)
    before = view.placement(NOW)
    beside = {peer: some.tolist() for peer, some in view.beside(NOW).items()}
    assert len(before.owner_matrix) == len(view.kept(NOW)) == FIRST
    found.rules = rules(32)
    placement = view.placement(NOW)
    assert len(placement.owner_matrix) == len(view.kept(NOW)) == 32
    for shard in range(32):
        assert set(view.ready(shard, NOW)) == set(PEERS[:3])
        without = set(PEERS[:3]) - set(placement.owners(shard))
        assert {peer for peer, some in view.beside(NOW).items() if shard in some} == without
    assert sum(map(len, beside.values())) == FIRST
