"""When a cold copy is made, merged, offered and forgotten."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from giaann_p2p.errors import DamagedError, DiskError, GiaannError, StoreFull
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.replication.cold_copies import ColdCopies
from giaann_p2p.swarm.replication.pending_writes import PendingWrites
from giaann_p2p.swarm.replication.replicas import Replicas
from giaann_p2p.swarm.wire.actions import Action, Cool, Forget, Hold, Thaw
from giaann_p2p.swarm.wire.replica import ReplicaState
from tests.helpers_swarm import (
    LAYOUT,
    NOW,
    SETTINGS,
    SHARDS,
    A,
    Around,
    B,
    C,
    D,
    applied,
    shared_by,
    update,
)

DAY = 24 * 3600.0
ALL = [*range(SHARDS)]


@dataclass
class Peer:
    """A peer's cooling with a real store on a disk in memory."""

    around: Around
    store: Store
    deeds: PendingWrites
    replicas: Replicas
    cooling: ColdCopies

    def due(self, now: float) -> list[Action]:
        return self.cooling.due(leaving=False, now=now)

    def done(self, action: Cool | Thaw, error: GiaannError | None, now: float) -> None:
        assert self.deeds.done(action.number, error, now) == []


def _peer(settings: object = SETTINGS, wanted: bool = False) -> Peer:
    store = Store.open(FakeDisk(), SPEC, LAYOUT, retain=True)
    around = Around(B, C, D)
    if wanted:
        around.capacities = {A: 1 << 30}
    replicas = Replicas(A, SHARDS, [])
    replicas.place(Placement.of(around.capacities, SHARDS, 3), NOW)
    shared = shared_by(replicas, around, store, settings)
    return Peer(around, store, shared.writes, replicas, ColdCopies(shared))


def _keep(peer: Peer, *chunks: int, since: float = NOW) -> None:
    """Let the peer have cold copies of all shards."""
    peer.store.hold(ALL)
    peer.store.apply([update(chunk, *ALL) for chunk in chunks])
    for shard in ALL:
        peer.store.cool(shard, since)
    peer.store.drop(ALL)


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = _peer()
    yield made
    made.store.close()


def test_a_shard_leaves_memory_only_behind_a_copy_that_is_new_or_has_all_of_it(peer: Peer) -> None:
    assert not peer.cooling.may_drop(0, applied(1), NOW)
    (cool,) = peer.cooling.cool(0, NOW)
    assert cool == Cool(1, 0, NOW)
    _keep(peer, 1)
    assert peer.cooling.may_drop(0, applied(1), NOW + 3600)
    assert peer.cooling.may_drop(0, applied(1, 2), NOW + 1)  # made a moment ago
    assert not peer.cooling.may_drop(0, applied(1, 2), NOW + 3600)


def test_without_a_disk_no_copy_is_waited_for() -> None:
    peer = _peer()
    peer.store = Store.in_memory(SPEC, LAYOUT)
    cooling = ColdCopies(shared_by(peer.replicas, peer.around, peer.store))
    assert cooling.may_drop(0, applied(1), NOW)


def test_a_copy_is_ordered_once_and_again_some_time_after_a_failure(peer: Peer) -> None:
    (cool,) = peer.cooling.cool(0, NOW)
    assert peer.cooling.cool(0, NOW) == []
    assert isinstance(cool, Cool)
    peer.done(cool, DiskError("full"), NOW)
    assert peer.cooling.cool(0, NOW + 1) == []
    peer.store.hold(ALL)
    peer.due(NOW + 60)
    assert len(peer.cooling.cool(0, NOW + 60)) == 1


def test_so_many_are_ordered_ahead_and_no_more(peer: Peer) -> None:
    ordered = [bool(peer.cooling.cool(shard, NOW)) for shard in range(100)]
    assert ordered == [True] * 64 + [False] * 36


def test_nothing_is_done_while_enough_others_serve(peer: Peer) -> None:
    _keep(peer, 1)
    peer.around.ready_at = {shard: [B, C] for shard in ALL}
    for seconds in (0, 60, 3600):
        assert peer.due(NOW + seconds) == []


def test_what_few_others_serve_is_offered_after_a_moment(peer: Peer) -> None:
    _keep(peer, 1)
    peer.around.ready_at = {shard: [B, C] for shard in ALL}
    peer.around.ready_at[2] = [B]
    assert peer.due(NOW) == []
    (hold,) = peer.due(NOW + SETTINGS.offer)
    assert isinstance(hold, Hold)
    assert hold.shards.tolist() == [2]
    assert peer.replicas.state(2) is ReplicaState.SYNCING


def test_those_who_do_not_answer_do_not_count(peer: Peer) -> None:
    _keep(peer, 1)
    peer.around.ready_at = {shard: [B, C] for shard in ALL}
    peer.around.unreachable = {B, C}
    peer.due(NOW)
    (hold,) = peer.due(NOW + SETTINGS.offer)
    assert isinstance(hold, Hold)
    assert hold.shards.tolist() == ALL


def test_who_leaves_offers_nothing(peer: Peer) -> None:
    _keep(peer, 1)
    peer.cooling.due(leaving=True, now=NOW)
    assert peer.cooling.due(leaving=True, now=NOW + 60) == []


def test_a_copy_is_merged_into_what_is_held_and_then_awaited_no_longer(peer: Peer) -> None:
    _keep(peer, 1)
    peer.due(NOW)
    peer.due(NOW + SETTINGS.offer)
    peer.store.hold(ALL)
    assert peer.cooling.awaits(0, applied())
    (thaw, *_) = peer.due(NOW + 11)
    assert thaw == Thaw(1, 0)
    peer.store.thaw(0)
    assert not peer.cooling.awaits(0, applied(1))


@pytest.mark.parametrize(
    ("error", "awaits"), [(StoreFull("full"), True), (DamagedError("bad"), False)]
)
def test_what_cannot_be_merged_holds_nothing_up(
    peer: Peer, error: GiaannError, awaits: bool
) -> None:
    _keep(peer, 1)
    peer.due(NOW)
    peer.due(NOW + SETTINGS.offer)
    peer.store.hold(ALL)
    (thaw, *_) = peer.due(NOW + 11)
    assert isinstance(thaw, Thaw)
    peer.done(thaw, error, NOW + 11)
    assert peer.cooling.awaits(0, applied()) is awaits


def test_what_is_ready_here_needs_no_copy() -> None:
    peer = _peer(wanted=True)
    _keep(peer, 1)
    peer.store.hold(ALL)
    for shard in ALL:
        peer.store.thaw(shard)
        peer.replicas.caught_up(shard, NOW)
    (forget,) = peer.due(NOW)
    assert isinstance(forget, Forget)
    assert forget.shards.tolist() == ALL


def test_what_is_old_is_forgotten_when_peers_of_standing_have_it(peer: Peer) -> None:
    _keep(peer, 1)
    peer.around.ready_at = {shard: [B, C, D] for shard in ALL}
    later = NOW + SETTINGS.cold_days * DAY + 1
    peer.around.newcomers = {C, D}
    assert peer.due(later) == []
    peer.around.newcomers, peer.around.without_disk = {C}, {D}
    assert peer.due(later) == []
    peer.around.without_disk = set()
    (forget,) = peer.due(later)
    assert isinstance(forget, Forget)
    assert forget.shards.tolist() == ALL


def test_what_is_too_much_goes_oldest_first() -> None:
    peer = _peer()
    _keep(peer, 1)
    peer.store.hold([1])
    peer.store.thaw(1)
    peer.store.cool(1, NOW - 100)
    peer.store.drop([1])
    most = peer.store.cold.nbytes - 1
    settings = replace(SETTINGS, cold_bytes=most)
    cooling = ColdCopies(shared_by(peer.replicas, peer.around, peer.store, settings))
    peer.around.ready_at = {shard: [B, C, D] for shard in ALL}
    (forget,) = cooling.due(leaving=False, now=NOW)
    assert isinstance(forget, Forget)
    assert forget.shards.tolist() == [1]


def test_where_there_is_no_room_for_another_copy_none_is_made() -> None:
    peer = _peer()
    _keep(peer, 1)
    settings = replace(SETTINGS, cold_bytes=0)
    cooling = ColdCopies(shared_by(peer.replicas, peer.around, peer.store, settings))
    assert cooling.cool(0, NOW) == []
