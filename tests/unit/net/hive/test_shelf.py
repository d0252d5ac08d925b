"""What a node keeps for others, and what it does not."""

from collections import Counter
from typing import Any, cast

import pytest

from giaann_p2p.errors import RecordError
from giaann_p2p.net.hive import shelf as module
from giaann_p2p.net.hive.looks import REPLICAS
from giaann_p2p.net.hive.shelf import (
    ALL,
    BOTH,
    NOTHING,
    PULSES,
    ROLES,
    Shelf,
    news_key,
    node_key,
)
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.patch import made
from giaann_p2p.swarm.wire.pulse import bare, batch
from giaann_p2p.swarm.wire.record import BUCKETS, FRONT_BYTES, SKEW, Announcement, bucket_of
from tests.unit.net.hive.helpers_board import NOW, RULES, SWARM, record
from tests.unit.swarm.helpers_pulses import beat

ME, OTHER = (Identity.from_seed(bytes([number] * 32)) for number in (1, 2))


def shelf(most: int = 1 << 19, me: Peer = OTHER.peer) -> Shelf:
    return Shelf(me, SWARM, lambda: RULES, most)


def test_a_record_lies_in_its_place_for_its_lifetime() -> None:
    held, data = shelf(), record(ME, NOW)
    key = held.key("storage", ME.peer)
    held.put(key, data, ME.peer, 30, NOW)
    assert held.get(key, NOW + 29.9) == [data]
    held.put(key, data, ME.peer, 30, NOW + 20)  # the same again prolongs nothing
    assert held.get(key, NOW + 30) == []
    assert repr(held) == "<Shelf: 0 records, 0 bytes>"
    assert len(set(held.keys("storage") + held.keys("compute"))) == 2 * BUCKETS
    assert held.keys("storage")[bucket_of(ME.peer)] == key


def nodes_of_places(peers: int, *, near: bool) -> Counter[int]:
    """Return how many places each node keeps, by the nearest five nodes of each."""
    some = [Peer(number.to_bytes(32, "big")) for number in range(peers)]
    nodes = [int.from_bytes(node_key(SWARM, peer), "big") for peer in some]
    held = Shelf(OTHER.peer, SWARM, lambda: RULES, near=near)
    keys = [int.from_bytes(key, "big") for role in ROLES for key in held.keys(role)]
    return Counter(
        node for key in keys for node in sorted(nodes, key=lambda node: node ^ key)[:REPLICAS]
    )


@pytest.mark.parametrize(("peers", "most"), [(8, 8), (30, 12), (100, 12), (300, 24)])
def test_in_a_small_swarm_a_few_nodes_keep_all_places(peers: int, most: int) -> None:
    assert REPLICAS <= len(nodes_of_places(peers, near=True)) <= most
    assert len(nodes_of_places(peers, near=False)) >= min(peers, 50)


def test_in_a_large_swarm_no_node_keeps_many_places() -> None:
    held = nodes_of_places(10_000, near=True)
    assert max(held.values()) <= 2
    assert len(held) > 150


def test_it_lies_for_less_if_its_peer_wants_that() -> None:
    held, data = shelf(), record(ME, NOW)
    key = held.key("storage", ME.peer)
    held.put(key, data, ME.peer, 10, NOW)
    assert held.get(key, NOW + 10) == []
    held.put(key, data, ME.peer, 1e9, NOW)
    assert held.get(key, NOW + 299) == [data]
    assert held.get(key, NOW + 300) == []


@pytest.mark.parametrize("ahead", [-SKEW, 0, SKEW])
def test_clocks_may_differ(ahead: float) -> None:
    held, data = shelf(), record(ME, NOW + ahead)
    key = held.key("storage", ME.peer)
    held.put(key, data, ME.peer, 30, NOW)
    assert held.get(key, NOW + 29) == [data]
    assert held.get(key, NOW + 30) == []


def test_the_newest_holds() -> None:
    held, first, second = shelf(), record(ME, NOW), record(ME, NOW, later=1)
    key = held.key("storage", ME.peer)
    held.put(key, first, ME.peer, 30, NOW)
    held.put(key, second, ME.peer, 30, NOW)
    assert held.get(key, NOW) == [second]
    with pytest.raises(RecordError, match="sequence"):
        held.put(key, first, ME.peer, 30, NOW)
    other = record(ME, NOW, later=1, capacity=5)
    with pytest.raises(RecordError, match="sequence"):
        held.put(key, other, ME.peer, 30, NOW)
    assert held.get(key, NOW) == [second]
    assert held.refused == 2


def test_a_new_pulse_prolongs_a_record_without_a_signature_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, data = shelf(most=1000), record(ME, NOW)
    key = held.key("storage", ME.peer)
    held.put(key, data, ME.peer, 30, NOW)
    monkeypatch.setattr(module, "prove", None)
    monkeypatch.setattr(module, "sets_of", None)
    second, third = (beat(data, ME, number) for number in (2, 3))
    held.put(key, third, ME.peer, 30, NOW + 29)
    for known in (data, second, third):
        held.put(key, known, ME.peer, 30, NOW + 40)  # they prolong nothing
    assert held.get(key, NOW + 58) == [third]
    assert held.get(key, NOW + 59) == []
    assert held.refused == 0


def test_a_wrong_pulse_is_refused() -> None:
    held, data = shelf(), record(ME, NOW)
    key = held.key("storage", ME.peer)
    wrong = beat(data, ME, 1, b"another seed")
    for kept in ([], [data]):
        for one in kept:
            held.put(key, one, ME.peer, 30, NOW)
        with pytest.raises(RecordError, match="pulse: number 1 of this record"):
            held.put(key, wrong, ME.peer, 30, NOW)
        with pytest.raises(RecordError, match="pulse: the last one is number"):
            held.put(key, b"\xff\xff" + data[2:], ME.peer, 30, NOW)
        assert held.get(key, NOW) == kept
    with pytest.raises(RecordError, match="peer: the record is of"):
        held.put(key, beat(data, ME, 1), OTHER.peer, 30, NOW)
    assert held.get(key, NOW + 30) == []
    assert held.refused == 5


def test_a_place_tells_what_came_lately() -> None:
    held, data = shelf(), record(ME, NOW)
    key = held.key("storage", ME.peer)
    held.put(key, data, ME.peer, 30, NOW)
    assert held.get(news_key(key, NOTHING), NOW) == []
    assert held.get(news_key(key, BOTH), NOW + 11) == [data]
    assert held.get(news_key(key, BOTH), NOW + 12) == []
    one, two = (beat(data, ME, number) for number in (1, 2))
    held.put(key, one, ME.peer, 30, NOW + 14)
    assert held.get(news_key(key, 15), NOW + 14) == [one]  # who asks may not know it
    assert held.get(news_key(key, BOTH), NOW + 25) == [bare(one)]
    assert held.get(news_key(key, BOTH), NOW + 26) == []
    assert held.get(news_key(key, NOTHING), NOW + 14) == []
    held.put(key, bare(two), ME.peer, 30, NOW + 20)
    assert held.get(news_key(key, BOTH), NOW + 21) == [bare(two)]
    assert held.get(news_key(key, ALL), NOW + 49) == held.get(key, NOW + 49) == [two]
    assert held.get(news_key(key, 254), NOW + 50) == []
    newer = record(ME, NOW + 20, later=1)
    held.put(key, newer, ME.peer, 30, NOW + 60)
    assert held.get(news_key(key, BOTH), NOW + 61) == [newer]
    assert held.keys("storage", 7) == [news_key(one, 7) for one in held.keys("storage")]


def test_new_records_are_told_without_pulses_as_patches_for_who_knows_the_one_before() -> None:
    held, data = shelf(), record(ME, NOW)
    key, other = held.key("storage", ME.peer), held.key("storage", OTHER.peer)
    for kept in (key, other):
        who = ME if kept == key else OTHER
        held.put(kept, record(who, NOW), who.peer, 300, NOW)
    assert held.get(news_key(key, 7), NOW + 6) == [data]
    assert held.get(news_key(key, 7), NOW + 7) == []
    held.put(key, beat(data, ME, 1), ME.peer, 300, NOW + 10)
    assert held.get(news_key(key, 7), NOW + 11) == []
    for later, at in ((1, 20), (2, 22)):
        newer = record(ME, NOW, later, used=later)
        held.put(key, newer, ME.peer, 300, NOW + at)
        before = data if later == 1 else record(ME, NOW, 1, used=1)
        patch = made(bucket_of(ME.peer), before, newer)
        assert held.get(news_key(key, 1), NOW + at + 0.5) == [patch]
        assert held.get(news_key(key, 4), NOW + at + 1) == [patch if later == 1 else newer]
        assert held.get(news_key(key, BOTH), NOW + at) == [newer]
    assert held.get(news_key(key, 7), NOW + 29) == []


def test_all_pulses_are_told_as_a_batch() -> None:
    crowd = [Identity.from_seed(number.to_bytes(32, "big")) for number in range(200)]
    crowd = [one for one in crowd if bucket_of(one.peer) == bucket_of(ME.peer)]
    held, bucket = shelf(), bucket_of(ME.peer)
    key = held.key("storage", ME.peer)
    assert held.get(news_key(key, PULSES), NOW) == []
    shown = []
    for number, one in enumerate(crowd):
        data = record(one, NOW, lifetime=30)
        held.put(key, data, one.peer, 30, NOW)
        if number:  # who never prolonged its record is told of as new
            shown.append(bare(beat(data, one, number)))
            held.put(key, shown[-1], one.peer, 30, NOW + 1)
    assert held.get(news_key(key, PULSES), NOW + 29) == [batch(bucket, shown)]
    assert held.get(news_key(key, PULSES), NOW + 31) == []


def test_a_bare_pulse_is_taken_where_its_record_is_kept_from_its_peer_alone() -> None:
    held, data = shelf(), record(ME, NOW)
    key, other = held.key("storage", ME.peer), held.key("storage", OTHER.peer)
    short = bare(beat(data, ME, 1))
    for where in (key, other, b"", bytes(20)):
        with pytest.raises(RecordError, match="its record is not kept here"):
            held.put(where, short, ME.peer, 30, NOW)
    held.put(key, data, ME.peer, 30, NOW)
    for where, by in ((key, OTHER), (other, ME), (news_key(key, 9), ME)):
        with pytest.raises(RecordError, match="its record is not kept here"):
            held.put(where, short, by.peer, 30, NOW)
    with pytest.raises(RecordError, match="its record is not kept here"):
        held.put(key, bare(beat(record(ME, NOW, later=1), ME, 1)), ME.peer, 30, NOW)
    with pytest.raises(RecordError, match="pulse: number 1 of this record is not by"):
        held.put(key, bare(beat(data, ME, 1, b"another seed")), ME.peer, 30, NOW)
    assert held.get(key, NOW) == [data]
    held.put(key, short, ME.peer, 30, NOW + 1)
    assert held.get(key, NOW + 30) == [beat(data, ME, 1)]
    with pytest.raises(RecordError, match="its record is not kept here"):
        held.put(key, bare(beat(data, ME, 2)), ME.peer, 30, NOW + 31)  # it has expired
    assert held.get(key, NOW + 31) == []


def test_who_is_no_member_any_more_keeps_no_place_by_pulses() -> None:
    barred = set[Peer]()

    class Fence:
        def check(self, said: Announcement, now: float) -> None:
            if said.peer in barred:
                raise RecordError("token: it has expired")

    held, data = (
        Shelf(OTHER.peer, SWARM, lambda: RULES, admission=cast(Admission, Fence())),
        record(ME, NOW),
    )
    key = held.key("storage", ME.peer)
    held.put(key, data, ME.peer, 30, NOW)
    held.put(key, beat(data, ME, 1), ME.peer, 30, NOW + 10)
    barred.add(ME.peer)
    with pytest.raises(RecordError, match="token"):
        held.put(key, beat(data, ME, 2), ME.peer, 30, NOW + 20)
    assert held.get(key, NOW + 40) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"swarm_id": bytes(32)}, "swarm_id"),
        ({"issued": int(NOW) + SKEW + 60}, "issued"),
        ({"issued": int(NOW) - SKEW - 360}, "issued"),
        ({"lifetime": 301}, "lifetime"),
        ({"role": "compute", "capacity": 0}, "another place"),
        ({"ready": b"\xff"}, "ready"),
        ({"protocol": 99}, "protocol"),
        ({"addresses": ("not one",)}, "addresses"),
    ],
)
def test_what_is_not_taken(changes: dict[str, Any], words: str) -> None:
    held = shelf()
    key = held.key("storage", ME.peer)
    with pytest.raises(RecordError, match=words):
        held.put(key, record(ME, NOW, **changes), ME.peer, 30, NOW)
    assert held.get(key, NOW) == []


def test_nobody_leaves_what_is_another_peers() -> None:
    held, data = shelf(), record(ME, NOW)
    mine, theirs = held.key("storage", ME.peer), held.key("storage", OTHER.peer)
    with pytest.raises(RecordError, match="peer"):
        held.put(mine, data, OTHER.peer, 30, NOW)
    forged = data[:-1] + bytes([data[-1] ^ 1])
    changed = record(OTHER, NOW)[:FRONT_BYTES] + data[FRONT_BYTES:]
    for wrong in (forged, changed, b"", data[:FRONT_BYTES], bytes(100_000)):
        with pytest.raises(RecordError):
            held.put(mine, wrong, ME.peer, 30, NOW)
    with pytest.raises(RecordError, match="lifetime"):
        held.put(mine, data, ME.peer, float("nan"), NOW)
    for key in (bytes(20), b"", b"x" * 1000):
        with pytest.raises(RecordError, match="not a place of this swarm"):
            held.put(key, data, ME.peer, 30, NOW)
    assert mine != theirs
    with pytest.raises(RecordError, match="another place"):
        held.put(theirs, data, ME.peer, 30, NOW)


def test_a_full_place_keeps_who_is_in_it() -> None:
    crowd = [Identity.from_seed(number.to_bytes(32, "big")) for number in range(400)]
    crowd = [one for one in crowd if bucket_of(one.peer) == bucket_of(ME.peer)]
    size = len(record(ME, NOW))
    held = shelf(most=3 * size + 10)
    key = held.key("storage", ME.peer)
    for one in crowd[:3]:
        held.put(key, record(one, NOW), one.peer, 30, NOW)
    with pytest.raises(RecordError, match="no room"):
        held.put(key, record(ME, NOW), ME.peer, 30, NOW)
    held.put(key, record(crowd[0], NOW, later=9), crowd[0].peer, 30, NOW)
    assert len(held.get(key, NOW)) == 3
    held.put(key, record(ME, NOW), ME.peer, 30, NOW + 30)
    assert len(held.get(key, NOW + 30)) == 1


def test_a_full_place_has_room_for_the_own_record_and_counts_it_not() -> None:
    crowd = [Identity.from_seed(number.to_bytes(32, "big")) for number in range(400)]
    crowd = [one for one in crowd if bucket_of(one.peer) == bucket_of(ME.peer)]
    size = len(record(ME, NOW))
    held = shelf(most=3 * size + 10, me=ME.peer)
    key = held.key("storage", ME.peer)
    for one in crowd[:2]:
        held.put(key, record(one, NOW), one.peer, 30, NOW)
    held.put(key, record(ME, NOW), ME.peer, 30, NOW)
    held.put(key, record(crowd[2], NOW), crowd[2].peer, 30, NOW)
    longer = record(ME, NOW, later=1, addresses=("/ip4/10.0.0.1/tcp/4100/p2p/x",) * 8)
    held.put(key, longer, ME.peer, 30, NOW)
    assert held.refused == 0
    assert longer in held.get(key, NOW)
    with pytest.raises(RecordError, match="no room"):
        held.put(key, record(crowd[3], NOW), crowd[3].peer, 30, NOW)
    assert len(held.get(key, NOW)) == 4


def test_a_node_stands_where_its_peer_puts_it() -> None:
    assert node_key(SWARM, ME.peer) != node_key(SWARM, OTHER.peer)
    assert node_key(SWARM, ME.peer) != node_key(bytes(32), ME.peer)
