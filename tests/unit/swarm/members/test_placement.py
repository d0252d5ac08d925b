"""Who owns which shard: against a plain version, in balance, and with few moves."""

import hashlib
import random

import numpy as np
import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members.placement import (
    BOUND,
    MOST_CAPACITY,
    MOST_MEANS,
    Moved,
    Placement,
    _Asking,
)
from tests.plain import placement as plain

GIB = 1 << 30
PEERS = [hashlib.sha256(bytes([n])).digest() for n in range(100)]


def drawn(rng: random.Random, peers: int, most: float = 8.0) -> dict[bytes, int]:
    """Draw peers whose capacities spread over 1 to `most`."""
    return {rng.randbytes(32): int(rng.uniform(1, most) * GIB) for _ in range(peers)}


def without(members: dict[bytes, int], peer: bytes) -> dict[bytes, int]:
    return {other: capacity for other, capacity in members.items() if other != peer}


def moved(before: Placement, after: Placement) -> int:
    return sum(len(part.gains) for part in before.moves(after).values())


def owned(placement: Placement) -> dict[bytes, int]:
    return {peer: len(placement.shards_of(peer)) for peer in placement.peers}


@pytest.mark.parametrize("seed", range(60))
def test_it_is_the_plain_version(seed: int) -> None:
    rng = random.Random(seed)
    members = drawn(rng, rng.randrange(1, 14), most=rng.choice([1, 8, 100]))
    shards, replicas = 1 << rng.randrange(8), rng.randrange(1, 5)
    placement = Placement.of(members, shards, replicas)
    wanted = plain.place(members, shards, replicas, rng)
    assert [list(placement.owners(shard)) for shard in range(shards)] == wanted
    shares = plain.shares(members, shards, replicas)
    assert dict(zip(placement.peers, placement.shares.tolist(), strict=True)) == shares


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_plain_version_where_some_claim_too_much(seed: int) -> None:
    rng = random.Random(seed)
    replicas = rng.randrange(1, 3)
    members = drawn(rng, 16 * replicas + rng.randrange(1, 20), most=rng.choice([1, 4]))
    for peer in rng.sample(sorted(members), rng.randrange(1, 5)):
        members[peer] = MOST_CAPACITY
    placement = Placement.of(members, 32, replicas)
    wanted = plain.place(members, 32, replicas, rng)
    assert [list(placement.owners(shard)) for shard in range(32)] == wanted
    shares = plain.shares(members, 32, replicas)
    assert dict(zip(placement.peers, placement.shares.tolist(), strict=True)) == shares


@pytest.mark.parametrize("peers", [1, 2, 3, 10, 47, 48, 49, 100, 300])
def test_who_claims_boundless_room_gets_no_more_than_sixteen_mean_shares(peers: int) -> None:
    rng = random.Random(peers)
    members = drawn(rng, peers - 1) | {PEERS[0]: MOST_CAPACITY}
    placement = Placement.of(members, 256, 3)
    most = min(256.0, MOST_MEANS * min(3, peers) * 256 / peers)
    assert placement.shares[placement.peers.index(PEERS[0])] == most
    assert len(placement.shards_of(PEERS[0])) <= min(256, np.ceil(BOUND * most))
    assert placement.shares.sum() == pytest.approx(min(3, peers) * 256)


def test_what_honest_peers_claim_is_not_cut() -> None:
    """A tenth has a hundred times as much as the rest, as servers among laptops."""
    members = {peer: 400 * GIB if n % 10 == 0 else 4 * GIB for n, peer in enumerate(PEERS)}
    placement = Placement.of(members, 256, 3)
    for peer, share in zip(placement.peers, placement.shares.tolist(), strict=True):
        assert share == pytest.approx(3 * 256 * members[peer] / sum(members.values()), rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_few_shards_move_around_who_claims_too_much(seed: int) -> None:
    """Its part follows the mean share, which a small peer that comes or goes changes, too."""
    rng = random.Random(seed)
    members = drawn(rng, 65) | {rng.randbytes(32): MOST_CAPACITY}
    whole = Placement.of(members, 4096, 3)
    mean = 3 * 4096 / len(members)
    for peer in rng.sample(sorted(members), 6):
        less = Placement.of(without(members, peer), 4096, 3)
        share = whole.shares[whole.peers.index(peer)]
        assert moved(less, whole) <= 1.2 * max(share, mean)
        assert moved(whole, less) <= 1.2 * max(len(whole.shards_of(peer)), mean)


@pytest.mark.parametrize(
    ("peers", "shards", "replicas", "digest"),
    [
        (1, 1, 1, "96a296d224f285c6"),
        (5, 256, 3, "2dcd6e9881f0b257"),
        (12, 256, 3, "eee9591725f356b9"),
        (64, 4096, 3, "ade153c892102fa5"),
        (100, 65536, 4, "69a1f321bca2876f"),
    ],
)
def test_every_machine_finds_the_same(peers: int, shards: int, replicas: int, digest: str) -> None:
    members = [(peer, (n * n + 1) * GIB) for n, peer in enumerate(PEERS[:peers])]
    matrix = Placement.of(members, shards, replicas).owner_matrix
    assert hashlib.sha256(matrix.astype("<u2").tobytes()).hexdigest()[:16] == digest


@pytest.mark.parametrize("seed", range(20))
def test_shards_lie_in_proportion_and_few_move(seed: int) -> None:
    rng = random.Random(seed)
    members = drawn(rng, 65)
    whole = Placement.of(members, 4096, 3)
    total = sum(members.values())
    for peer, count in owned(whole).items():
        assert count / (3 * 4096) <= 1.10 * members[peer] / total
    for peer in rng.sample(sorted(members), 6):
        less = Placement.of(without(members, peer), 4096, 3)
        share = whole.shares[whole.peers.index(peer)]
        assert moved(less, whole) <= 1.2 * share  # it joins
        assert moved(whole, less) <= 1.2 * len(whole.shards_of(peer))  # it leaves


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("peers", "shards"), [(4, 256), (5, 64), (12, 256), (40, 256)])
def test_nobody_owns_more_than_the_bound(seed: int, peers: int, shards: int) -> None:
    placement = Placement.of(drawn(random.Random(seed), peers, most=20), shards, 3)
    for share, count in zip(placement.shares, owned(placement).values(), strict=True):
        assert count <= max(np.ceil(share), BOUND * share)
    assert placement.shares.sum() == pytest.approx(3 * shards)


def test_replicas_go_before_balance() -> None:
    found = 0
    for seed in range(300):
        placement = Placement.of(drawn(random.Random(seed), 4, most=3), 8, 3)
        assert placement.owner_matrix.shape == (8, 3)
        assert all(len(set(row)) == 3 for row in placement.owner_matrix.tolist())
        counts = np.array(list(owned(placement).values()))
        found += bool(np.any(counts > np.maximum(np.ceil(placement.shares), 0)))
    assert found


@pytest.mark.parametrize("first", [64, 32, 4, 1])
@pytest.mark.parametrize("time", [0.001, 0.1, 1.0, 3.0, 40.0])
def test_what_is_asked_for_up_to_a_time_is_all_of_it(time: float, first: int) -> None:
    rng = random.Random(3)
    shares = np.array([rng.uniform(0.5, 40) for _ in range(20)])
    seeds = np.frombuffer(rng.randbytes(20 * 36), "<u4").reshape(20, 9)
    asking = _Asking(shares, seeds, 64, first)
    (some, is_all), (every, _) = asking.until(time), asking.until(1e9)
    assert is_all == (len(some.peer) == 20 * 64)
    whole = sorted(zip(every.time.tolist(), every.peer.tolist(), every.shard.tolist(), strict=True))
    part = sorted(zip(some.time.tolist(), some.peer.tolist(), some.shard.tolist(), strict=True))
    assert part == whole[: len(part)]
    assert len({(peer, shard) for _, peer, shard in whole}) == 20 * 64


@pytest.mark.parametrize("seed", range(12))
def test_owners_by_a_lower_number_of_replicas_are_among_those_by_a_higher_one(seed: int) -> None:
    rng = random.Random(seed)
    members = drawn(rng, rng.choice([1, 2, 5, 9, 40]), most=rng.choice([1, 8]))
    founded = rng.randrange(1, 4)
    before = Placement.of(members, 256, founded)
    for replicas in range(founded + 1, founded + 5):
        after = Placement.of(members, 256, replicas, founded)
        for shard in range(256):
            owners = after.owners(shard)
            assert owners[: len(before.owners(shard))] == before.owners(shard)
            assert len({*owners}) == len(owners) == min(replicas, len(members))
        assert not any(len(part.loses) for part in before.moves(after).values())
        before = after


def test_placing_anew_by_the_higher_number_would_move_shards_away() -> None:
    members = drawn(random.Random(2), 20)
    few, many = (Placement.of(members, 256, replicas) for replicas in (2, 3))
    assert any(len(part.loses) for part in few.moves(many).values())


@pytest.mark.parametrize("seed", range(6))
def test_further_replicas_lie_in_proportion_and_few_move(seed: int) -> None:
    rng = random.Random(seed)
    members = drawn(rng, 20)
    placement = Placement.of(members, 2048, 5, 2)
    for share, count in zip(placement.shares.tolist(), owned(placement).values(), strict=True):
        assert count <= max(BOUND * share + 1, share * 1.1)
        assert count >= 0.8 * share
    new = rng.randbytes(32)
    after = Placement.of({**members, new: 4 * GIB}, 2048, 5, 2)
    assert moved(placement, after) <= 1.2 * len(after.shards_of(new))


def test_who_is_at_its_bound_gets_no_further_replica() -> None:
    small = dict.fromkeys(PEERS[:30], GIB >> 9)
    members = {**small, **dict.fromkeys(PEERS[30:35], GIB)}
    assert max(owned(Placement.of(members, 512, 1))[peer] for peer in small) == 1
    counts = owned(Placement.of(members, 512, 4, 1))
    assert max(counts[peer] for peer in small) == 1


def test_every_machine_finds_the_same_further_replicas() -> None:
    placement = Placement.of({peer: (1 + n % 5) * GIB for n, peer in enumerate(PEERS)}, 512, 5, 3)
    digest = hashlib.sha256(placement.owner_matrix.astype("<u2").tobytes()).hexdigest()
    assert digest[:16] == "c0700b3ad89dbf28"


@pytest.mark.parametrize("seed", range(40))
def test_doubled_shards_are_placed_as_by_the_plain_version(seed: int) -> None:
    rng = random.Random(seed)
    members = drawn(rng, rng.randrange(1, 14), most=rng.choice([1, 8, 100]))
    first, replicas = 1 << rng.randrange(6), rng.randrange(1, 5)
    shards = first << rng.randrange(1, 4)
    placement = Placement.of(members, shards, replicas, 0, first)
    wanted = plain.place(members, shards, replicas, rng, first)
    assert [list(placement.owners(shard)) for shard in range(shards)] == wanted
    assert placement.first == first


@pytest.mark.parametrize(("peers", "most"), [(4, 0.01), (10, 0.01), (50, 0.04), (200, 0.12)])
@pytest.mark.parametrize("doublings", [1, 3])
def test_children_go_where_their_parent_was(peers: int, most: float, doublings: int) -> None:
    members, shards = drawn(random.Random(peers), peers), 256 << doublings
    before = Placement.of(members, 256, 3).owner_matrix[np.arange(shards) % 256]
    placement = Placement.of(members, shards, 3, 0, 256)
    after = placement.owner_matrix
    assert np.mean((after[:, :, None] != before[:, None, :]).all(axis=2)) < most
    counts = np.bincount(after.ravel(), minlength=peers)
    assert np.all(counts <= np.maximum(np.ceil(placement.shares), BOUND * placement.shares))
    anew = Placement.of(members, shards, 3).owner_matrix
    assert np.mean((anew[:, :, None] != before[:, None, :]).all(axis=2)) > 0.2


def test_a_doubling_after_another_moves_as_little_as_both_at_once() -> None:
    members = drawn(random.Random(8), 20)
    once, twice = (Placement.of(members, 256 << n, 3, 0, 256).owner_matrix for n in (1, 2))
    of_parent = once[np.arange(1024) % 512]
    assert np.mean((twice[:, :, None] != of_parent[:, None, :]).all(axis=2)) < 0.02


def test_every_machine_finds_the_same_owners_of_children() -> None:
    members = {peer: (1 + n % 5) * GIB for n, peer in enumerate(PEERS)}
    placement = Placement.of(members, 2048, 4, 3, 256)
    digest = hashlib.sha256(placement.owner_matrix.astype("<u2").tobytes()).hexdigest()
    assert digest[:16] == "80240e1daa64e4d1"
    assert np.array_equal(
        placement.owner_matrix[:, :3], Placement.of(members, 2048, 3, 0, 256).owner_matrix
    )


def test_order_and_kind_of_the_members_make_no_difference() -> None:
    members = drawn(random.Random(5), 20)
    pairs = list(members.items())
    random.Random(6).shuffle(pairs)
    ones = Placement.of(members, 256, 3), Placement.of(pairs, 256, 3)
    assert ones[0].peers == ones[1].peers == tuple(sorted(members))
    assert np.array_equal(ones[0].owner_matrix, ones[1].owner_matrix)


@pytest.mark.parametrize("peers", [0, 1, 2, 3])
def test_a_few_peers_own_all(peers: int) -> None:
    members = [(peer, 7**n) for n, peer in enumerate(PEERS[:peers])]
    placement = Placement.of(members, 16, 3)
    assert placement.owner_matrix.shape == (16, peers)
    for peer, _ in members:
        assert placement.shards_of(peer).tolist() == list(range(16))
    assert sorted(placement.owners(3)) == sorted(PEERS[:peers])


def test_a_giant_owns_about_one_replica_of_all() -> None:
    members = dict.fromkeys(PEERS[:30], GIB) | {PEERS[30]: 1 << 90, PEERS[31]: 1}
    placement = Placement.of(members, 1024, 3)
    assert len(placement.shards_of(PEERS[30])) >= 1000
    assert len(placement.shards_of(PEERS[31])) <= 1
    assert max(len(placement.shards_of(peer)) for peer in PEERS[:30]) <= np.ceil(BOUND * 2048 / 30)


def test_capacities_that_round_to_the_same_move_nothing() -> None:
    members = dict.fromkeys(PEERS[:10], GIB)
    other = members | {PEERS[3]: GIB + GIB // 80, PEERS[4]: GIB + 1}
    assert not Placement.of(members, 256, 3).moves(Placement.of(other, 256, 3))
    third = members | {PEERS[3]: GIB + GIB // 4}
    assert Placement.of(members, 256, 3).moves(Placement.of(third, 256, 3))
    most = {peer: MOST_CAPACITY << n for n, peer in enumerate(PEERS[:10])}
    alike = dict.fromkeys(PEERS[:10], MOST_CAPACITY)
    assert not Placement.of(most, 256, 3).moves(Placement.of(alike, 256, 3))


@pytest.mark.parametrize("seed", range(10))
def test_moves_are_differences_of_sets(seed: int) -> None:
    rng = random.Random(seed)
    members = drawn(rng, 9)
    some = [dict(rng.sample(sorted(members.items()), rng.randrange(10))) for _ in range(2)]
    before, after = (Placement.of(one, 64, 3) for one in some)
    moves = before.moves(after)
    for peer in [*members, bytes(32)]:
        had, has = ({s for s in range(64) if peer in p.owners(s)} for p in (before, after))
        assert before.shards_of(peer).tolist() == sorted(had)
        assert before.shards_of(peer).dtype == np.uint16
        assert (peer in moves) == (had != has)
        if peer in moves:
            assert moves[peer].gains.tolist() == sorted(has - had)
            assert moves[peer].loses.tolist() == sorted(had - has)


@pytest.mark.parametrize("seed", range(10))
def test_children_that_stay_where_their_parent_was_do_not_move(seed: int) -> None:
    members = drawn(random.Random(seed), 9)
    before, after = Placement.of(members, 64, 3), Placement.of(members, 256, 3, 3, 64)
    moves = before.moves(after)
    for peer in members:
        had, has = (
            {s for s in range(256) if peer in p.owners(s % n)}
            for p, n in ((before, 64), (after, 256))
        )
        gains, loses = moves.get(peer, Moved(np.empty(0, np.uint16), np.empty(0, np.uint16)))
        assert (gains.tolist(), loses.tolist()) == (sorted(has - had), sorted(had - has))


def test_owners_are_looked_up_by_the_thousand() -> None:
    rng = np.random.default_rng(1)
    placement = Placement.of(drawn(random.Random(1), 20), 256, 3)
    concepts = rng.integers(0, 1 << 63, 1000, np.uint64)
    shards = Layout(shards=256).shards_of(concepts, np.zeros_like(concepts))
    owners = placement.owner_matrix[shards]
    assert owners.shape == (1000, 3)
    for shard, row in zip(shards.tolist(), owners.tolist(), strict=True):
        assert tuple(placement.peers[at] for at in row) == placement.owners(shard)


def test_a_placement_says_what_it_is_and_cannot_be_changed() -> None:
    placement = Placement.of(drawn(random.Random(1), 20), 4096, 3)
    assert repr(placement) == "<Placement: 4,096 shards x 3 on 20 peers>"
    for array in (placement.owner_matrix, placement.shares, placement.shards_of(PEERS[0])):
        assert not len(array) or not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        placement.shards_of(placement.peers[0])[0] = 1


@pytest.mark.parametrize(
    ("members", "shards", "replicas", "message"),
    [
        ([(PEERS[0], 1)], 3, 1, "shards must be a power of two up to 65536, not 3"),
        ([(PEERS[0], 1)], 0, 1, "shards must be a power of two"),
        ([(PEERS[0], 1)], 1 << 17, 1, "shards must be a power of two"),
        ([(PEERS[0], 1)], 4, 0, "at least one replica, not 0"),
        ([(PEERS[0], 0)], 4, 1, "cannot own anything with a capacity of 0"),
        ([(b"short", 1)], 4, 1, "a peer's id has 32 bytes, not 5"),
        ([(PEERS[0], 1), (PEERS[0], 2)], 4, 1, "a peer is listed twice"),
        ([(bytes(32), 1)] * 65537, 4, 1, "on 65,536 peers, not on 65,537"),
    ],
)
def test_what_cannot_be_placed_is_said(
    members: list[tuple[bytes, int]], shards: int, replicas: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        Placement.of(members, shards, replicas)
