"""What a peer sees around it, by others' records."""

import copy

import numpy as np
import pytest

from giaann_p2p.errors import RecordError
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.members.standing import DAY, FOUNDING, Standing
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.manifest import Manifest, Rules
from giaann_p2p.swarm.wire.pulse import pulse_of
from giaann_p2p.swarm.wire.record import FRONT_BYTES, Announcement, signed
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.token import Rights, founded
from tests.helpers_swarm import LAYOUT, SHARDS, shards
from tests.unit.swarm.helpers_pulses import SEED, beat

NOW = 1_800_000_000
SWARM = bytes(range(32))
ONE, TWO, THREE = (Identity.from_seed(bytes([number]) * 32) for number in (1, 2, 3))
NOBODY: tuple[int, ...] = ()
RULES = Rules(SHARDS, 2)


def record(
    identity: Identity,
    sequence: int = 1,
    ready: tuple[int, ...] = NOBODY,
    syncing: tuple[int, ...] = NOBODY,
    **fields: object,
) -> bytes:
    said: dict[str, object] = {
        "swarm_id": SWARM,
        "peer": identity.peer,
        "role": "storage",
        "incarnation": 1,
        "sequence": sequence,
        "issued": NOW,
        "capacity": 1 << 30,
        "ready": packed(shards(*ready), SHARDS),
        "syncing": packed(shards(*syncing), SHARDS),
        "anchor": pulse_of(SEED, identity.peer, 0).link,
    }
    return signed(identity, Announcement(**said | fields))  # type: ignore[arg-type]


class Seeing(PeersView):
    """A view that notes who began anew."""

    def __init__(self) -> None:
        self.rules_now = RULES
        super().__init__(ONE.peer, SWARM, lambda: self.rules_now)
        self.restarted: list[Peer] = []

    def tell(self, *records: bytes, now: float = NOW) -> None:
        for data in records:
            self.learn(data, now, self.restarted.append)


def test_who_is_there_with_what() -> None:
    one = Seeing()
    one.tell(
        record(ONE, ready=(0, 1)),
        record(TWO, ready=(1,), syncing=(2,)),
        record(THREE, syncing=(1,), state="draining"),
    )
    assert one.members(NOW) == dict.fromkeys([ONE.peer, TWO.peer], 1 << 30)
    some = np.array([1, 2], np.uint16)
    assert one.sharing(some, NOW) == {ONE.peer: [1], TWO.peer: [1, 2], THREE.peer: [1]}
    assert one.sharing(some[1:], NOW) == {TWO.peer: [2]}
    assert set(one.ready(1, NOW)) == {ONE.peer, TWO.peer}
    assert list(one.ready(2, NOW)) == []
    assert set(one.placement(NOW).peers) == {ONE.peer, TWO.peer}
    assert len(one.placement(NOW).owners(3)) == 2
    assert len(one.records(NOW)) == 3


def test_who_is_ready_is_asked_anew_when_somebody_says_another_thing() -> None:
    one = Seeing()
    one.tell(record(ONE, ready=(0, 1)))
    assert [list(one.ready(shard, NOW)) for shard in (0, 1, 2)] == [[ONE.peer], [ONE.peer], []]
    one.tell(record(ONE, 2, ready=(1,)), record(TWO, ready=(2,)))
    assert [list(one.ready(shard, NOW)) for shard in (0, 2)] == [[], [TWO.peer]]
    assert list(one.ready(2, NOW + 600)) == []  # their time is up


def test_when_the_directory_was_looked_up_first() -> None:
    one = Seeing()
    one.tell(record(TWO))
    assert one.looked_at() is None
    one.looked(NOW + 3)
    one.looked(NOW + 9)
    assert one.looked_at() == NOW + 3


def test_who_went_may_come_back_and_is_a_witness() -> None:
    one = Seeing()
    one.tell(record(TWO, ready=(1,), syncing=(2,)))
    later = NOW + 3600
    assert one.members(later) == {}
    assert one.sharing(np.array([1], np.uint16), later) == {}
    assert list(one.witnesses(1, later)) == [TWO.peer]
    assert list(one.witnesses(1, NOW)) == [TWO.peer]
    assert list(one.placement(later).peers) == []


def test_placement_is_made_anew_only_when_something_changed() -> None:
    one = Seeing()
    one.tell(record(TWO))
    placed, version = one.placement(NOW), one.version(NOW)
    one.tell(record(TWO, 2))
    assert one.placement(NOW) is placed
    assert one.version(NOW) == version
    one.tell(record(THREE))
    assert one.version(NOW) != version
    assert set(one.placement(NOW).peers) == {TWO.peer, THREE.peer}


def test_who_does_not_answer_is_out_of_reach_for_a_while() -> None:
    one = Seeing()
    assert not one.not_suspected(TWO.peer, NOW)
    one.tell(record(TWO))
    assert one.not_suspected(TWO.peer, NOW)
    one.suspect(TWO.peer, NOW)
    assert not one.not_suspected(TWO.peer, NOW + 0.5)
    one.heard(TWO.peer)
    assert one.not_suspected(TWO.peer, NOW + 0.5)


def test_a_peer_that_began_anew_is_told_of_once() -> None:
    one = Seeing()
    one.tell(record(TWO), record(TWO, 2), record(THREE, incarnation=7))
    assert one.restarted == []
    one.tell(record(TWO, 3, incarnation=2), record(TWO, 4, incarnation=2))
    assert one.restarted == [TWO.peer]
    one.tell(record(TWO, 2))  # an old one, which somebody still has
    assert one.restarted == [TWO.peer]


def test_a_process_of_two_roles_begins_anew_by_its_storage_alone() -> None:
    one = Seeing()
    one.tell(record(TWO, incarnation=1))
    one.tell(record(TWO, 9, role="compute", incarnation=2, capacity=0))
    one.tell(record(TWO, 2, incarnation=1))
    assert one.restarted == []


def test_a_pulse_is_no_new_announcement_but_counts_for_standing() -> None:
    one, data = Seeing(), record(TWO)
    assert one.learn(data, NOW, one.restarted.append)
    for number in (1, 2, 3):
        assert one.learn(beat(data, TWO, number), NOW + 10 * number, one.restarted.append) is None
    assert one.learn(beat(data, TWO, 3), NOW + 50, one.restarted.append) is None
    assert one.standing.seconds(TWO.peer) == 30
    assert one.restarted == []
    assert one.records(NOW + 59) == [beat(data, TWO, 3)]
    assert one.members(NOW + 60) == {}


def test_strangers_in_any_number_do_not_fill_the_memory() -> None:
    one = Seeing()
    one.tell(record(TWO))
    for number in range(200):
        stranger = Identity.from_seed(number.to_bytes(32, "big"))
        at = NOW + 100_000 * number  # all who came before are forgotten by then
        one.tell(record(stranger, issued=at), now=at)
    assert len(one._incarnations) < 80


def test_a_record_that_cannot_be_right_changes_nothing() -> None:
    one = Seeing()
    forged = record(TWO)[:FRONT_BYTES] + record(THREE)[FRONT_BYTES:]
    with pytest.raises(RecordError):
        one.tell(forged)
    assert one.members(NOW) == {}
    assert one.restarted == []


OLD = Standing(ONE.peer, seen={ONE.peer: 100 * DAY, THREE.peer: 10 * DAY})


def seeing(manifest: Manifest) -> PeersView:
    admission = Admission(manifest)
    return PeersView(ONE.peer, manifest.swarm_id, lambda: RULES, admission, copy.deepcopy(OLD))


def computing(manifest: Manifest, identity: Identity, token: bytes = b"") -> bytes:
    said = Announcement(
        swarm_id=manifest.swarm_id,
        peer=identity.peer,
        role="compute",
        incarnation=1,
        sequence=1,
        issued=NOW,
        token=token,
    )
    return signed(identity, said)


def test_an_author_is_a_newcomer_unless_it_stands_or_somebody_vouches_for_it() -> None:
    manifest = Manifest.founded(ONE, "town", layout=LAYOUT)
    one = seeing(manifest)
    assert one.may_teach(THREE.peer)  # seen for ten days
    assert not one.may_teach(TWO.peer)
    rights = Rights.COMPUTE | Rights.STANDING
    token = founded(ONE, manifest.swarm_id, TWO.peer, rights, NOW + 1000).to_bytes()
    one.learn(computing(manifest, TWO, token), NOW, lambda peer: None)
    assert one.may_teach(TWO.peer)
    assert one.stands(TWO.peer)
    one.learn(computing(manifest, THREE, token), NOW + 1000, lambda peer: None)
    assert not one.may_teach(TWO.peer)  # its token has run out


def test_in_a_young_swarm_all_may_teach_and_newcomers_keep_nothing() -> None:
    manifest = Manifest.founded(ONE, "town", layout=LAYOUT)
    for age, is_young in ((FOUNDING - 1, True), (FOUNDING, False)):
        book = Standing(ONE.peer, seen={THREE.peer: age})
        one = PeersView.of(ONE.peer, manifest, Admission(manifest), lambda: RULES, book)
        assert one.may_teach(TWO.peer) is is_young
        assert not one.stands(TWO.peer)


def test_a_holder_that_gains_standing_ends_the_wait_for_one_that_went() -> None:
    one = Seeing()
    for at in range(0, 130, 10):
        if at <= 100:
            one.tell(record(TWO, at + 1, ready=(0,)), now=NOW + at)
        if at >= 90:
            one.tell(record(THREE, at + 1, ready=(0,)), now=NOW + at)
    assert one.awaited(NOW + 129) == []  # it is there
    assert one.awaited(NOW + 135) == [TWO.peer]
    one.tell(record(THREE, 200, ready=(0,)), now=NOW + 140)  # the same claims, half as old by now
    assert one.awaited(NOW + 141) == []
    assert one.kept(NOW + 141)[0]


def test_who_of_the_members_has_standing_is_looked_at_anew_as_time_goes_by() -> None:
    one = Seeing()
    for at in range(0, 160, 10):
        one.tell(record(TWO, at + 1, ready=(0,)), now=NOW + at)
        if at >= 70:
            one.tell(record(THREE, at + 1, ready=(0,)), now=NOW + at)
            both = {TWO.peer, THREE.peer}
            assert set(one.members(NOW + at)) == both
            assert one.standing_members(NOW + at) == ({TWO.peer} if at < 140 else both), at


def test_a_compute_peer_that_is_there_for_a_day_stands() -> None:
    manifest = Manifest.founded(ONE, "town", layout=LAYOUT)
    one = seeing(manifest)
    for at in range(0, int(DAY) + 300, 300):
        said = Announcement(
            swarm_id=manifest.swarm_id,
            peer=TWO.peer,
            role="compute",
            incarnation=1,
            sequence=at + 1,
            issued=NOW + at,
        )
        assert one.may_teach(TWO.peer) == (at > DAY)
        one.learn(signed(TWO, said), NOW + at, lambda peer: None)


def test_a_book_that_is_given_is_kept_though_nobody_is_in_it() -> None:
    book = Standing(ONE.peer)
    assert PeersView(ONE.peer, SWARM, lambda: RULES, standing=book).standing is book


def test_who_was_let_into_a_swarm_of_members_is_no_newcomer() -> None:
    club = Manifest.founded(ONE, "club", layout=LAYOUT, admission="token")
    assert seeing(club).may_teach(TWO.peer)
    assert not seeing(club).stands(TWO.peer)  # it may vanish all the same


def test_records_go_by_their_own_time_whatever_a_caller_says() -> None:
    late, some = NOW + 3600.0, np.array([1, 2], np.uint16)

    def seen(now: float, record_time: float | None = None) -> list[object]:
        one = Seeing()
        one.tell(
            record(ONE, ready=(0,), cold=packed(shards(3), SHARDS)),
            record(TWO, ready=(1,), syncing=(2,)),
            record(THREE, role="compute", slots=2, capacity=0),
        )
        if record_time is not None:
            one.set_record_time(lambda: record_time)
        return [
            one.members(now),
            one.ready(1, now),
            one.witnesses(2, now),
            one.cold(3, now),
            one.sharing(some, now),
            one.workers(now),
            one.placement(now).peers,
        ]

    for then, now in zip(seen(NOW), seen(late), strict=True):
        assert then != now
    assert seen(late, NOW) == seen(NOW)
    assert seen(NOW, late) == seen(late)


def test_a_newer_edition_of_the_rules_counts_at_the_next_look() -> None:
    one = Seeing()
    one.tell(*(record(peer, ready=tuple(range(SHARDS))) for peer in (ONE, TWO, THREE)))
    before, version = one.placement(NOW), one.version(NOW)
    assert sum(map(len, one.beside(NOW).values())) == SHARDS  # two of three own each shard
    one.rules_now = Rules(SHARDS, 3, 2, founded=2, edition=1)
    assert one.version(NOW) > version
    after = one.placement(NOW)
    assert (after.replicas, after.founded) == (3, 2)
    for shard in range(SHARDS):
        assert after.owners(shard)[:2] == before.owners(shard)
    assert one.beside(NOW) == {}  # all own all now
