"""Which shards a peer holds beside newcomers: as many of standing as a shard lacks replicas."""

import hashlib

import pytest

from giaann_p2p.swarm.members.beside import held_beside
from giaann_p2p.swarm.members.exclusion import Named, placed
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.wire.identity import Peer
from tests.helpers_swarm import accused, shards

PEERS = [Peer(hashlib.sha256(bytes([number])).digest()) for number in range(10)]
OLD, NEW = PEERS[:6], PEERS[6:]
N = 64
SMALL, LARGE = 1 << 30, 1 << 47
MEMBERS = dict.fromkeys(OLD, SMALL) | dict.fromkeys(NEW, LARGE)


class Holders:
    """The holders of each shard, when all peers agree on which peers have standing."""

    def __init__(
        self,
        members: dict[Peer, int],
        standing: list[Peer],
        named: Named | None = None,
        founded: int = 3,
    ) -> None:
        self.placement = placed(members, N, 3, named or {}, founded)
        self._standing = {*standing}
        known = self.placement, members, frozenset(standing), named or {}
        self._beside = {peer: held_beside(peer, *known) for peer in members}

    def owners(self, shard: int) -> set[Peer]:
        return {*self.placement.owners(shard)}

    def beside(self, shard: int) -> set[Peer]:
        return {peer for peer, some in self._beside.items() if shard in some}

    def of_standing(self, shard: int) -> set[Peer]:
        return (self.owners(shard) | self.beside(shard)) & self._standing


def test_when_all_have_standing_nobody_holds_anything_beside() -> None:
    found = Holders(MEMBERS, PEERS)
    assert not any(found.beside(n) for n in range(N))


def test_as_many_hold_a_shard_beside_newcomers_of_those_that_would_own_it_without_them() -> None:
    found, before = Holders(MEMBERS, OLD), Placement.of(dict.fromkeys(OLD, SMALL), N, 3)
    for n in range(N):
        assert found.beside(n) <= {*before.owners(n)}
        assert len(found.of_standing(n)) == 3
        assert len(found.beside(n)) == len(found.owners(n) & {*NEW}) > 0


def test_a_swarm_with_more_replicas_than_at_first_places_those_of_standing_in_the_same_way() -> (
    None
):
    found = Holders(MEMBERS, OLD, founded=1)
    before = Placement.of(dict.fromkeys(OLD, SMALL), N, 3, 1)
    assert any(found.beside(n) for n in range(N))
    assert all(found.beside(n) <= {*before.owners(n)} for n in range(N))


def test_a_small_newcomer_makes_few_replicas_more() -> None:
    found = Holders(dict.fromkeys([*OLD, NEW[0]], SMALL), OLD)
    of_newcomer = len(found.placement.shards_of(NEW[0]))
    assert sum(len(found.beside(n)) for n in range(N)) == of_newcomer
    assert all(len(found.of_standing(n)) == 3 for n in range(N))


def test_when_one_of_standing_goes_another_takes_its_place_not_a_newcomer() -> None:
    found = Holders({peer: MEMBERS[peer] for peer in PEERS[1:]}, OLD[1:])
    assert all(len(found.of_standing(n)) == 3 for n in range(N))


@pytest.mark.parametrize("standing", [0, 1, 2])
def test_there_are_as_many_of_standing_as_can_be(standing: int) -> None:
    found = Holders(MEMBERS, OLD[:standing])
    assert all(len(found.of_standing(n)) == standing for n in range(N))


def test_newcomers_exclude_nobody_who_has_standing_and_who_has_standing_excludes() -> None:
    """Two newcomers own two of three replicas of each shard, and are a majority of its owners."""
    members = {peer: MEMBERS[peer] for peer in PEERS[:8]}
    before, apart = Holders(members, OLD), Placement.of(dict.fromkeys(OLD, SMALL), N, 3)
    n = next(n for n in range(N) if before.owners(n) & {*apart.owners(n)})
    (wrong,) = before.owners(n) & {*OLD}
    accusation = accused(wrong, shards(n), N)
    found = Holders(members, OLD, dict.fromkeys(NEW[:2], accusation))
    assert wrong in found.placement.excluded(n)
    assert len(found.of_standing(n)) == 3
    fellows = [peer for peer in apart.owners(n) if peer != wrong]
    found = Holders(members, OLD, dict.fromkeys(fellows, accusation))
    assert wrong in found.owners(n)
    assert len(found.of_standing(n) - {wrong}) == 3
