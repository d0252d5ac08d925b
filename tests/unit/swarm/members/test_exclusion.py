"""Who is barred from a shard: whom a majority of its replicas name, and nobody else."""

import hashlib
import random

import numpy as np
import pytest

from giaann_p2p.swarm.members.exclusion import Named, excluded, placed, without
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.record import Naming
from tests.helpers_swarm import accused, shards

MANY = [Peer(hashlib.sha256(bytes([number])).digest()) for number in range(31)]
PEERS = MANY[:8]
MEMBERS = dict.fromkeys(PEERS, 1 << 30)
N = 64
BEFORE = Placement.of(MEMBERS, N, 3)


def naming(shard: int, by: list[Peer], whom: Peer) -> Named:
    return {peer: accused(whom, shards(shard), N) for peer in by}


def encoded(names: dict[Peer, dict[Peer, np.ndarray]], count: int) -> dict[Peer, list[Naming]]:
    return {
        by: [one for whom, some in told.items() for one in accused(whom, some, count)]
        for by, told in names.items()
    }


def test_whom_two_owners_of_three_name_another_takes_the_place_of() -> None:
    one, other, wrong = BEFORE.owners(5)
    after = placed(MEMBERS, N, 3, naming(5, [one, other], wrong))
    assert after.excluded(5) == {wrong}
    assert after.owners(5)[:2] == (one, other)
    assert after.owners(5)[2] not in BEFORE.owners(5)
    assert all(after.owners(n) == BEFORE.owners(n) for n in range(N) if n != 5)
    assert not any(after.excluded(n) for n in range(N) if n != 5)


def test_the_best_of_a_shards_owners_can_be_barred_as_well() -> None:
    wrong, one, other = BEFORE.owners(5)
    after = placed(MEMBERS, N, 3, naming(5, [one, other], wrong))
    assert after.owners(5)[:2] == (one, other)
    assert wrong not in after.owners(5)


def test_one_name_bars_nobody_nor_do_those_of_others_nor_does_ones_own() -> None:
    one, other, wrong = BEFORE.owners(5)
    strangers = [peer for peer in PEERS if peer not in BEFORE.owners(5)]
    assert not excluded(BEFORE, naming(5, [one], wrong))
    assert not excluded(BEFORE, naming(5, [one, *strangers, Peer(b"?" * 32)], wrong))
    assert not excluded(BEFORE, naming(5, [one, wrong], wrong))
    assert not excluded(BEFORE, naming(5, [one, other], strangers[0]))
    apart: Named = {one: accused(wrong, shards(5), N), other: accused(wrong, shards(6), N)}
    assert not excluded(BEFORE, apart)


@pytest.mark.parametrize(("replicas", "needed"), [(1, None), (2, None), (3, 2), (4, 3), (5, 3)])
def test_a_majority_is_one_of_all_replicas_that_there_should_be(
    replicas: int, needed: int | None
) -> None:
    before = Placement.of(MEMBERS, N, replicas)
    *others, wrong = before.owners(5)
    for count in range(len(others) + 1):
        found = excluded(before, naming(5, others[:count], wrong))
        assert bool(found) == (needed is not None and count >= needed)


def test_where_all_own_a_shard_nobody_can_take_it_over() -> None:
    few = dict.fromkeys(PEERS[:3], 1 << 30)
    one, other, wrong = Placement.of(few, N, 3).owners(5)
    after = placed(few, N, 3, naming(5, [one, other], wrong))
    assert after.owners(5) == (one, other, wrong)
    assert after.excluded(5) == {wrong}


@pytest.mark.parametrize("seed", range(20))
def test_whoever_is_barred_all_shards_have_owners_enough_and_few_have_more_than_others(
    seed: int,
) -> None:
    rng = random.Random(seed)
    names: dict[Peer, dict[Peer, np.ndarray]] = {}
    for shard in range(N):
        if rng.random() < 0.5:
            *others, wrong = rng.sample(BEFORE.owners(shard), 3)
            for peer in others:
                known = names.setdefault(peer, {}).get(wrong, shards())
                names[peer][wrong] = np.append(known, np.uint16(shard))
    named = encoded(names, N)
    after = placed(MEMBERS, N, 3, named)
    again = placed(dict(reversed(MEMBERS.items())), N, 3, dict(reversed(named.items())))
    assert np.array_equal(after.owner_matrix, again.owner_matrix)
    assert any(after.excluded(shard) for shard in range(N))
    for shard in range(N):
        assert len({*after.owners(shard)}) == 3
        assert after.excluded(shard).isdisjoint(after.owners(shard))
    assert max(len(after.shards_of(peer)) for peer in PEERS) <= 3 * N / len(PEERS) + 8


def test_where_many_are_barred_in_a_large_swarm_it_is_soon_known_who_takes_their_places() -> None:
    large = {Peer(hashlib.sha256(bytes(2) + n.to_bytes(2, "big")).digest()): 1 for n in range(2000)}
    before = Placement.of(large, 4096, 3)
    out = {shard: frozenset({before.owners(shard)[0]}) for shard in range(0, 4096, 4)}
    after = without(before, out)
    assert all(after.excluded(shard).isdisjoint(after.owners(shard)) for shard in range(4096))
    assert max(len(after.shards_of(peer)) for peer in after.peers) <= 9


def test_who_loses_a_shard_has_room_for_what_others_lose() -> None:
    first, *_ = BEFORE.owners(0)
    own = BEFORE.shards_of(first).tolist()
    out = {shard: frozenset({first}) for shard in own}
    for shard in (n for n in range(N) if n not in own):
        out[shard] = frozenset({BEFORE.owners(shard)[0]})
    after = without(BEFORE, out)
    assert len(after.shards_of(first)) > 10


def test_a_join_moves_hardly_any_of_what_was_given_to_others() -> None:
    names: dict[Peer, dict[Peer, np.ndarray]] = {}
    many = dict.fromkeys(MANY[:30], 1 << 30)
    before = Placement.of(many, 256, 3)
    for shard in range(0, 256, 2):
        one, other, wrong = before.owners(shard)
        for peer in (one, other):
            known = names.setdefault(peer, {}).get(wrong, shards())
            names[peer][wrong] = np.append(known, np.uint16(shard))
    more, named = many | {MANY[30]: 1 << 30}, encoded(names, 256)
    least = gained(before, Placement.of(more, 256, 3))
    assert gained(placed(many, 256, 3, named), placed(more, 256, 3, named)) < 3 * least


def gained(before: Placement, after: Placement) -> int:
    return sum(len(part.gains) for part in before.moves(after).values())
