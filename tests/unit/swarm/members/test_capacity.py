"""How full storage peers are, and where nothing more can be learned."""

import numpy as np
import pytest

from giaann_p2p.swarm.members.capacity import Filling, Room, closed, filling, full, level
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.record import Announcement, Load, Role
from tests.unit.swarm.members.test_peers_view import NOW, ONE, SWARM, THREE, TWO

MIB = 1 << 20


def said(peer: Peer, used: int, growth: int = 0, role: Role = "storage") -> Announcement:
    return Announcement(
        swarm_id=SWARM,
        peer=peer,
        role=role,
        incarnation=1,
        sequence=1,
        issued=NOW,
        capacity=100 if role == "storage" else 0,
        used=used,
        load=Load(growth=growth),
    )


@pytest.mark.parametrize(
    ("used", "word"), [(0, ""), (84, ""), (85, "nearly full"), (99, "nearly full"), (100, "full")]
)
def test_from_85_percent_on_a_peer_is_nearly_full(used: int, word: str) -> None:
    assert level(used, 100) == word
    assert level(used, 0) == ""


def test_who_has_room_for_nothing_that_comes_says_that_all_is_used() -> None:
    room = Room(64 * MIB)
    assert (room.used, room.growth, room.level) == (0, 0, "")
    room.look(47 * MIB, 0.0)
    assert room.level == ""
    room.refused(18 * MIB)
    assert (room.used, room.level) == (64 * MIB, "full")
    room.look(46 * MIB, 1.0)  # a shard went elsewhere
    assert (room.used, room.level) == (46 * MIB, "")


def test_growth_is_that_of_the_last_minute() -> None:
    room = Room(64 * MIB)
    for second in range(100):
        room.look(MIB * second // 10, second)
        assert room.growth == 0 or second >= 5
    assert room.growth == pytest.approx(MIB / 10, rel=0.02)
    for second in range(100, 200):
        room.look(5 * MIB, second)
    assert room.growth == 0  # nothing more, or less than before


def test_who_soon_has_no_room_says_how_soon() -> None:
    live = [
        said(ONE.peer, 100),
        said(TWO.peer, 90, growth=2),
        said(THREE.peer, 86),
        said(Peer(b"c" * 32), 0, role="compute"),
        said(Peer(b"d" * 32), 40),
    ]
    assert full(live) == [ONE.peer]
    assert filling(live) == [Filling(TWO.peer, 0.9, 5.0), Filling(THREE.peer, 0.86, None)]


@pytest.mark.parametrize(
    ("peers", "full", "quorum", "count"),
    [
        (3, 0, 2, 0),
        (3, 1, 2, 0),
        (3, 2, 2, 16),
        (3, 2, 1, 0),
        (3, 3, 1, 16),
        (1, 1, 2, 0),  # what it lacks is peers
        (1, 1, 1, 16),
    ],
)
def test_a_shard_is_closed_when_less_than_a_quorum_has_room(
    peers: int, full: int, quorum: int, count: int
) -> None:
    names = [Peer(bytes([number]) * 32) for number in range(1, peers + 1)]
    placement = Placement.of(dict.fromkeys(names, 1 << 30), 16, 3)
    assert closed(placement, names[:full], quorum, {}) == count


def test_only_shards_of_full_peers_are_closed() -> None:
    names = [Peer(bytes([number]) * 32) for number in range(1, 7)]
    placement = Placement.of(dict.fromkeys(names, 1 << 30), 64, 3)
    chosen = set(names[:3])
    stuck = sum(len(chosen & set(placement.owners(shard))) >= 2 for shard in range(64))
    assert 0 < stuck < 64
    assert closed(placement, names[:3], 2, {}) == stuck


@pytest.mark.parametrize(
    ("full", "count"),
    [((), 0), ((4,), 1), ((5,), 1), ((4, 5), 3)],  # 4 holds shard 0, 5 shard 3, both hold shard 2
)
def test_a_shard_is_closed_when_nobody_beside_its_owners_has_room(
    full: tuple[int, ...], count: int
) -> None:
    names = {number: Peer(bytes([number]) * 32) for number in range(1, 6)}
    placement = Placement.of(dict.fromkeys([names[n] for n in (1, 2, 3)], 1 << 30), 4, 3)
    beside = {
        names[4]: np.array([True, False, True, False]),
        names[5]: np.array([False, False, True, True]),
    }
    assert closed(placement, [names[number] for number in full], 2, beside) == count
