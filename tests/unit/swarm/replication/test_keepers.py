"""Who holds shards beside their owners, and for which shards a keeper is asked for."""

from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.members.standing import DAY, Standing
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.manifest import Rules
from tests.unit.swarm.helpers_records import ALL, LAYOUT, NOW, PEERS, SWARM, said

ME = Identity.from_seed(bytes(32))
GIANT = 1000 << 30


def _around(*records: bytes, old: tuple[Identity, ...] = ()) -> PeersView:
    book = Standing(ME.peer, seen={one.peer: 10 * DAY for one in (ME, *old)})
    made = PeersView(ME.peer, SWARM, lambda: Rules(LAYOUT.shards), standing=book)
    for record in records:
        made.learn(record, NOW, lambda peer: None)
    return made


def _beside(around: PeersView) -> dict[Peer, list[int]]:
    return {peer: some.tolist() for peer, some in around.beside(NOW).items()}


def test_owners_are_not_beside_themselves() -> None:
    assert _beside(_around(*map(said, PEERS[:3]))) == {}


def test_those_who_still_have_what_others_own_are_beside_them() -> None:
    giants = [said(one, (), capacity=GIANT) for one in PEERS[:3]]
    around = _around(*giants, said(PEERS[3]), old=(PEERS[3],))
    owned = around.placement(NOW).shards_of(PEERS[3].peer).tolist()
    assert _beside(around) == {PEERS[3].peer: [n for n in range(8) if n not in owned]}
    assert around.beside(NOW) is around.beside(NOW)


def test_of_many_who_claim_to_be_the_longest_known_count() -> None:
    around = _around(*map(said, PEERS), old=(PEERS[0],))
    for shard in range(8):
        owners = around.placement(NOW).owners(shard)
        there = [peer for peer, some in _beside(around).items() if shard in some]
        assert len(there) == 2  # of five, three own it
        assert PEERS[0].peer in {*owners, *there}


def test_a_keeper_is_asked_for_where_one_is_there() -> None:
    around = _around(said(PEERS[0], ALL[:4]), said(PEERS[1]), old=(PEERS[0],))
    assert around.kept(NOW).tolist() == [True] * 4 + [False] * 4
    assert around.keeps(PEERS[0].peer)
    assert not around.keeps(PEERS[1].peer)


def test_one_without_a_disk_is_no_keeper() -> None:
    around = _around(said(PEERS[0], durable=False), old=(PEERS[0],))
    assert not around.kept(NOW).any()


def test_one_that_went_away_is_waited_for_unless_another_of_standing_is_there() -> None:
    gone, later = said(PEERS[0]), NOW + 60
    young = _around(gone, old=(PEERS[0],))
    young.learn(said(PEERS[1]), later, lambda peer: None)
    assert young.kept(later).all()
    assert young.awaited(later) == [PEERS[0].peer]
    in_memory = _around(gone, old=(PEERS[0], PEERS[1]))
    in_memory.learn(said(PEERS[1], durable=False), later, lambda peer: None)
    assert not in_memory.kept(later).any()
    assert in_memory.awaited(later) == []


def test_only_those_are_waited_for_that_had_what_nobody_of_standing_has_now() -> None:
    later, old = NOW + 60, (PEERS[0], PEERS[1], PEERS[2])
    told = said(PEERS[0], ALL[:4]), said(PEERS[1], ALL[4:]), said(PEERS[3])
    around = _around(*told, old=old)
    assert around.awaited(NOW) == []
    around.learn(said(PEERS[2], ALL[:4]), later, lambda peer: None)
    assert around.awaited(later) == [PEERS[1].peer]


def test_all_are_equal_where_nobody_is_known_for_long() -> None:
    around = PeersView(ME.peer, SWARM, lambda: Rules(LAYOUT.shards))
    around.learn(said(PEERS[0]), NOW, lambda peer: None)
    assert around.keeps(PEERS[0].peer)
    assert around.kept(NOW).all()


def test_a_cold_copy_alone_holds_no_update_up() -> None:
    around = _around(said(PEERS[0], (), cold=ALL), old=(PEERS[0],))
    assert not around.kept(NOW).any()
    assert around.cold(3, NOW) == [PEERS[0].peer]


def test_whom_most_owners_call_wrong_is_no_keeper_while_they_do() -> None:
    first, second, liar = PEERS[:3]
    words = [said(first, wrong=liar), said(second, wrong=liar), said(liar)]
    around = _around(*words, old=(first, second, liar))
    assert [around.keeps(one.peer) for one in (first, second, liar)] == [True, True, False]
    assert around.kept(NOW).all()  # by the others
    alone = _around(said(first, wrong=liar), said(second), said(liar), old=(first, second, liar))
    assert alone.keeps(liar.peer)


def test_newcomers_take_no_keeper_away_by_calling_it_wrong() -> None:
    words = [said(one, wrong=PEERS[2]) for one in PEERS[:2]]
    around = _around(*words, said(PEERS[2]), old=(PEERS[2],))
    assert around.placement(NOW).excluded(0) == {PEERS[2].peer}
    assert around.keeps(PEERS[2].peer)
    assert around.kept(NOW).all()
