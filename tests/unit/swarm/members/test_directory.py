"""The directory: against a plain dictionary of the newest records, under floods, and in doubt."""

import random
import tracemalloc
from functools import cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from giaann_p2p.errors import RecordError, UsageError
from giaann_p2p.swarm.members import directory as directory_module
from giaann_p2p.swarm.members.directory import FORGET, Directory
from giaann_p2p.swarm.members.entry import SignOfLife
from giaann_p2p.swarm.members.health import Health
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.pulse import (
    MOST_PULSES,
    bare,
)
from giaann_p2p.swarm.wire.record import (
    FRONT_BYTES,
    LIFETIME,
    MOST_LIFETIME,
    SKEW,
    Announcement,
    Key,
    Load,
    Naming,
    PeerState,
    Role,
    signed,
)
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.unit.swarm.helpers_pulses import beat, chained
from tests.unit.swarm.members.helpers_directory import (
    LAYOUT,
    NOW,
    PEERS,
    RULES,
    SWARM,
    WHO,
    announced,
    made,
    record,
    sequences,
    shards,
)


def new(sign: SignOfLife | None) -> Announcement | None:
    """Return the announcement that a merge brought, if any."""
    return sign.said if sign is not None and sign.is_new else None


class Placed(NamedTuple):
    """Owners, as a placement tells them."""

    peers: tuple[bytes, ...]
    owner_matrix: npt.NDArray[np.uint16]


class Plain:
    """The same by a dictionary, asked one by one."""

    def __init__(self) -> None:
        self.held: dict[Key, tuple[Announcement, float]] = {}
        self.shown: dict[Key, int] = {}

    def merge(self, found: Announcement, number: int, now: float) -> bool:
        self.forget(now)
        held = self.held.get(found.key)
        if held and held[0] == found:
            if self.shown[found.key] >= number:
                return False
        elif held and held[0].sequence >= found.sequence:
            return False
        self.held[found.key], self.shown[found.key] = (found, now), number
        return True

    def forget(self, now: float) -> None:
        for key, (found, arrived) in list(self.held.items()):
            if now >= arrived + found.lifetime + FORGET:
                del self.held[key]

    def live(self, now: float) -> list[Announcement]:
        self.forget(now)
        pairs = self.held.values()
        return [f for f, at in pairs if now < at + f.lifetime and f.state != "left"]

    def gone(self, now: float) -> list[Announcement]:
        live = self.live(now)
        rest = [found for found, _ in self.held.values() if found not in live]
        return [f for f in rest if f.role == "storage" and f.state != "left"]

    def members(self, now: float) -> list[tuple[Peer, int]]:
        staying = [f for f in self.live(now) if f.state in ("joining", "active")]
        return sorted((f.peer, f.capacity) for f in staying if f.capacity)

    def naming(self, shard: int, field: str, some: list[Announcement]) -> set[Peer]:
        return {f.peer for f in some if shard in plain_shards(getattr(f, field))}


@cache
def plain_shards(data: bytes) -> list[int]:
    return unpacked(data, LAYOUT.shards).tolist()


def assert_like(found: Directory, plain: Plain, now: float) -> None:
    live, gone = plain.live(now), plain.gone(now)
    assert sorted(map(str, found.live(now))) == sorted(map(str, live))
    assert sorted(map(str, found.gone(now))) == sorted(map(str, gone))
    assert list(found.members(now)) == plain.members(now)
    assert found.alive(now) == {f.peer for f in live}
    assert len(found) == len(plain.held)
    counts = []
    shares = found.sharing(np.arange(0, LAYOUT.shards, 2, dtype=np.uint16), now)
    assert all(some == sorted({*some}) and some for some in shares.values())
    for shard in range(LAYOUT.shards):
        ready = plain.naming(shard, "ready", live)
        counts.append(len(ready))
        assert set(found.ready(shard, now)) == ready
        syncing = plain.naming(shard, "syncing", live)
        assert set(found.syncing(shard, now)) == syncing
        sharing = {peer for peer, some in shares.items() if shard in some}
        assert sharing == (set() if shard % 2 else ready | syncing)
        assert set(found.claimants(shard, now)) == plain.naming(shard, "ready", live + gone)
    owners = np.arange(LAYOUT.shards * 2).reshape(-1, 2) % len(PEERS)
    health = found.health(now, Placed(tuple(PEERS), owners.astype(np.uint16)), 2)
    assert (health.least, health.lost) == (min(counts), counts.count(0))
    assert (health.mean, health.under) == (np.mean(counts), sum(n < 2 for n in counts))
    assert health.unsettled == sum(
        PEERS[at] not in plain.naming(shard, "ready", live)
        for shard, row in enumerate(owners.tolist())
        for at in row
    )


def claims_of(found: Directory, now: float) -> object:
    """Return all that the version stands for."""
    return (
        found.members(now),
        [
            [sorted(asked(n, now)) for asked in (found.ready, found.syncing, found.claimants)]
            for n in range(LAYOUT.shards)
        ],
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_directory_is_a_dictionary_of_the_newest(seed: int) -> None:
    rng = random.Random(seed)
    found, plain, now = made(), Plain(), NOW
    sent: list[bytes] = []
    seen = dict[int, object]()
    for _ in range(150):
        now += rng.choice([0, 0.5, 3, 20, 200, 3000 if seed % 2 else 1, 90_000 * (seed % 4 == 0)])
        if sent and rng.random() < 0.5:
            data = rng.choice(sent[-30:])
        else:
            data = drawn(rng, now)
            sent.append(data)
        decoded = msgspec.msgpack.decode(data[FRONT_BYTES:], type=Announcement)
        number = rng.choice([0, 0, 1, 2, rng.randrange(MOST_PULSES + 1)])
        data = beat(data, WHO[PEERS.index(decoded.peer)], number)
        found.version(now)  # it forgets who is gone for long
        is_new = found.announcement(*decoded.key) != decoded
        if rng.random() < 0.5 and not is_new:
            data = bare(data)
        try:
            merged = found.merge(data, now)
        except RecordError:
            assert found.refused
            continue
        assert plain.merge(decoded, number, now) == (merged is not None)
        assert merged in (None, SignOfLife(decoded, is_new))
        assert_like(found, plain, now)
        claims = claims_of(found, now)
        assert seen.setdefault(found.version(now), claims) == claims


def drawn(rng: random.Random, now: float) -> bytes:
    role: Role = rng.choice(["storage", "storage", "compute"])
    state: PeerState = rng.choice(["joining", "active", "active", "draining", "left"])
    holding: dict[str, object] = {}
    if role == "storage":
        some = sorted(rng.sample(range(16), rng.randrange(17)))
        half = len(some) // 2
        holding = {"ready": shards(*some[:half]), "syncing": shards(*some[half:])}
        holding["capacity"] = rng.choice([0, 5, 5, 9])
    who = rng.choice(WHO)
    said = announced(
        who,
        now + rng.choice([0, -20, SKEW // 2, -SKEW]),
        role=role,
        state=state,
        lifetime=rng.choice([5, 30, 300]),
        sequence=next(sequences) - rng.choice([0, 0, 0, 9]) + 10,
        incarnation=rng.randrange(3),
        **holding,
    )
    return chained(who, said)


def test_the_newest_record_holds() -> None:
    found = made()
    old, newer = announced(used=1), announced(used=2)
    assert new(found.merge(signed(WHO[0], newer), NOW)) == newer
    assert found.merge(signed(WHO[0], old), NOW) is None
    assert found.announcement(PEERS[0]) == newer
    equal = signed(WHO[0], announced(sequence=newer.sequence, used=3))
    assert found.merge(equal, NOW) is None
    assert found.announcement(PEERS[0]) == newer
    assert found.refused == 0


def test_the_same_bytes_again_prolong_nothing() -> None:
    found, data = made(), record(lifetime=30)
    assert found.merge(data, NOW)
    assert found.merge(data, NOW + 29) is None
    assert len(found.live(NOW + 29.9)) == 1
    assert found.live(NOW + 30) == []
    assert found.merge(data, NOW + 31) is None
    assert found.live(NOW + 31) == []


@pytest.mark.parametrize("skew", [-SKEW, SKEW])
def test_a_wrong_clock_changes_nothing_about_the_end(skew: int) -> None:
    found = made()
    assert found.merge(record(now=NOW + skew, lifetime=30), NOW)
    assert found.live(NOW + 29)
    assert not found.live(NOW + 30)


def test_a_forgotten_peers_record_cannot_be_sent_again() -> None:
    found = Directory(SWARM, lambda: RULES, forget=2 * SKEW + MOST_LIFETIME)
    data = record(now=NOW + SKEW, lifetime=MOST_LIFETIME)
    assert found.merge(data, NOW)
    end = NOW + MOST_LIFETIME + 2 * SKEW + MOST_LIFETIME
    assert found.gone(end - 1)
    assert found.merge(data, end - 1) is None
    assert found.gone(end) == []
    assert len(found) == 0
    with pytest.raises(RecordError, match="a replay of an old one"):
        found.merge(data, end)
    with pytest.raises(UsageError, match="forget must be 7500 s or more"):
        Directory(SWARM, lambda: RULES, forget=3600)


def test_a_dead_peers_records_sent_again_deceive_newcomers_alone_and_not_for_long() -> None:
    """Somebody has kept each record of the last hour, and sends them in the order they came."""
    every, dies = 10, NOW + SKEW
    kept = [(now, record(now=now)) for now in np.arange(NOW, dies + 1, every).tolist()]
    knows, newcomer = made(), made()
    for now, data in kept:
        knows.merge(data, now)
    believed = dies
    for now in np.arange(dies + LIFETIME, dies + SKEW + MOST_LIFETIME, every).tolist():
        kept = [one for one in kept if one[0] >= now - SKEW - LIFETIME]
        if kept:
            _, data = kept.pop(0)
            assert knows.merge(data, now) is None
            newcomer.merge(data, now)
        assert not knows.live(now)
        believed = now if newcomer.live(now) else believed
    assert dies + SKEW / 2 < believed <= dies + SKEW + 2 * LIFETIME


def test_bad_records_are_counted_and_change_nothing() -> None:
    found, forged = made(), bytearray(record())
    forged[3] ^= 1
    for data in (b"", bytes(forged), record(swarm_id=bytes(32)), record(now=NOW + 9999)):
        with pytest.raises(RecordError):
            found.merge(data, NOW)
    assert (found.refused, len(found), found.version(NOW)) == (4, 0, 0)
    assert found.merge(record(), NOW)


def test_signatures_are_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    proven: list[int] = []
    prove = directory_module.prove

    def counting(data: bytes, announcement: Announcement) -> None:
        proven.append(announcement.sequence)
        prove(data, announcement)

    monkeypatch.setattr(directory_module, "prove", counting)
    found, old, new = made(), record(), record()
    for _ in range(3):
        found.merge(new, NOW)
        found.merge(old, NOW)
    assert len(proven) == 1


def test_both_roles_of_a_peer_are_two_records() -> None:
    found = made()
    found.merge(record(load=Load(queue=1)), NOW)
    found.merge(record(role="compute", device="cpu", load=Load(queue=2)), NOW)
    assert [found.load(PEERS[0]), found.load(PEERS[0], "compute")] == [Load(1), Load(2)]
    assert found.load(PEERS[1]) is None
    assert found.alive(NOW) == {PEERS[0]}
    assert repr(found) == "<Directory: 2 live records, 0 others>"
    assert repr(made()) == "<Directory: 0 live records, 0 others>"


def test_the_version_changes_only_with_members_and_claims() -> None:
    found = made()

    def changes(now: float = NOW, **fields: object) -> bool:
        before = found.version(now)
        assert found.merge(record(now=now, **fields), now)
        return found.version(now) != before

    assert changes(ready=shards(1))
    assert not changes(ready=shards(1), used=7, load=Load(9), lifetime=60, incarnation=2)
    assert changes(ready=shards(1, 2))
    assert changes(ready=shards(1, 2), syncing=shards(3))
    assert changes(ready=shards(1, 2), syncing=shards(3), state="draining")
    assert changes(ready=shards(1, 2), capacity=7)
    assert not changes(role="compute")
    before = found.version(NOW + 29)
    assert found.version(NOW + 31) != before  # the storage peer is gone
    assert not changes(NOW + 40, role="compute")
    assert changes(NOW + 40, ready=shards(1, 2), capacity=7)  # it is back
    assert changes(NOW + 40, state="left")
    assert not changes(NOW + 41, state="left")


def test_what_was_made_of_members_is_kept_until_they_change() -> None:
    found = made()
    found.merge(record(), NOW)
    members = found.members(NOW)
    found.merge(record(used=5), NOW)
    assert found.members(NOW) is members
    found.merge(record(WHO[1]), NOW)
    assert found.members(NOW) == tuple(sorted([(PEERS[0], 100), (PEERS[1], 100)]))


@pytest.mark.parametrize(
    ("state", "member", "ready"),
    [("joining", 1, 1), ("active", 1, 1), ("draining", 0, 1), ("left", 0, 0)],
)
def test_states(state: PeerState, member: int, ready: int) -> None:
    found = made()
    found.merge(record(state=state, ready=shards(3)), NOW)
    assert len(found.members(NOW)) == member
    assert (
        len(found.ready(3, NOW)) == len(found.claimants(3, NOW)) == len(found.alive(NOW)) == ready
    )
    assert len(found.records(NOW)) == ready
    assert len(found.gone(NOW + 100)) == ready


def test_only_the_swarms_shards_can_be_asked_for() -> None:
    for shard in (-1, 16):
        with pytest.raises(UsageError, match=f"there is no shard {shard}; the last is 15"):
            made().ready(shard, NOW)


def test_the_health_of_an_empty_swarm() -> None:
    health = made().health(NOW, Placed((), np.zeros((16, 0), np.uint16)), 3)
    assert (health.least, health.under, health.lost, health.unsettled) == (0, 16, 16, 0)


def test_an_owner_that_nobody_heard_of_is_not_settled() -> None:
    found = Directory(SWARM, lambda: RULES, most=1)
    found.merge(record(ready=shards(*range(16))), NOW)
    both = Placed((PEERS[0], PEERS[1]), np.array([[0, 1]] * 16, np.uint16))
    assert found.health(NOW, both, 2) == Health(least=1, mean=1.0, under=16, lost=0, unsettled=16)


# Room


def strangers(number: int, first: int = 1000) -> list[Identity]:
    return [Identity.from_seed((first + n).to_bytes(32, "big")) for n in range(number)]


def test_a_flood_pushes_no_live_peer_out() -> None:
    found = Directory(SWARM, lambda: RULES, most=40)
    for who in WHO:
        found.merge(record(who, lifetime=300, ready=shards(1)), NOW)
    for who in strangers(60):
        found.merge(record(who, lifetime=300, capacity=1, ready=shards(0)), NOW + 1)
    assert (len(found), found.turned_away) == (40, 60 - (40 - len(WHO)))
    assert set(PEERS) <= found.alive(NOW + 1)
    assert found.merge(record(ready=shards(1)), NOW + 2)  # who is there is heard
    assert set(found.ready(1, NOW + 2)) == set(PEERS)
    assert found.merge(record(strangers(1, 5000)[0], now=NOW + 301), NOW + 301)


def test_the_best_known_of_the_gone_are_kept_longest() -> None:
    found = Directory(SWARM, lambda: RULES, most=7)
    for now in (NOW, NOW + 10):
        found.merge(record(WHO[0], now, ready=shards(1)), now)
    for now in (NOW - 10, NOW + 10):
        found.merge(record(WHO[1], now, role="compute"), now)
        found.merge(record(WHO[2], now, state="left"), now)
    for wave in range(4):  # each is gone when the next comes
        now = NOW + 100 * (wave + 1)
        for who in strangers(4, 100 * wave):
            assert found.merge(record(who, now, ready=shards(2)), now)
    assert len(found) == 7
    assert found.claimants(1, NOW + 500) == [PEERS[0]]
    assert found.announcement(PEERS[1], "compute") is None
    assert found.announcement(PEERS[2]) is None


def test_room_is_made_by_the_gone_alone() -> None:
    found = Directory(SWARM, lambda: RULES, most=2)
    for now in (NOW, NOW + 100):
        found.merge(record(WHO[0], now, ready=shards(1)), now)
    found.merge(record(WHO[1], NOW + 140), NOW + 140)
    assert found.merge(record(WHO[2], NOW + 141), NOW + 141)
    assert found.alive(NOW + 141) == {PEERS[1], PEERS[2]}


def test_a_directory_of_one() -> None:
    found = Directory(SWARM, lambda: RULES, most=1)
    assert found.merge(record(WHO[0], ready=shards(5)), NOW)
    assert found.merge(record(WHO[1]), NOW) is None
    assert found.merge(record(WHO[1], NOW + 40), NOW + 40)
    assert (found.claimants(5, NOW + 40), len(found)) == ([], 1)
    with pytest.raises(UsageError, match="room for a record; most is 0"):
        Directory(SWARM, lambda: RULES, most=0)


# Doubt


def test_who_fails_is_bypassed_for_longer_each_time() -> None:
    found, now, times = made(), NOW, []
    found.merge(record(lifetime=300), now)
    for _ in range(9):
        found.suspect(PEERS[0], now)
        found.suspect(PEERS[0], now)  # another call that was on its way
        assert found.suspected(PEERS[0], now)
        assert PEERS[0] not in found.alive(now)
        first = now
        while found.suspected(PEERS[0], now):
            now += 0.5
        times.append(now - first)
    assert times == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    found.heard(PEERS[0])
    found.suspect(PEERS[0], now)
    assert not found.suspected(PEERS[0], now + 1)


def test_who_is_bypassed_comes_last() -> None:
    found = made()
    for who in WHO:
        found.merge(record(who, ready=shards(1), syncing=shards(2)), NOW)
    found.suspect(PEERS[0], NOW)
    found.suspect(PEERS[3], NOW)
    for asked in (found.ready(1, NOW), found.syncing(2, NOW), found.claimants(1, NOW)):
        assert set(asked) == set(PEERS)
        assert set(asked[-2:]) == {PEERS[0], PEERS[3]}
    assert len(found.members(NOW)) == len(WHO)  # the placement waits for the record's end


@pytest.mark.parametrize(
    ("fields", "trusted"),
    [
        ({"now": NOW + 12}, True),  # the peer failed at NOW + 10, this one it issued later
        ({"now": NOW + 8}, False),  # this one was only late
        ({"now": NOW + 8, "incarnation": 2}, True),
    ],
)
@pytest.mark.parametrize("skew", [-1000, 0, 1000])
def test_a_record_issued_since_ends_a_doubt(
    fields: dict[str, Any], trusted: bool, skew: int
) -> None:
    found = made()
    found.merge(record(now=NOW + skew), NOW)
    found.suspect(PEERS[0], NOW + 10)
    later = {**fields, "now": fields["now"] + skew}
    found.merge(record(**later), NOW + 10.5)
    assert found.suspected(PEERS[0], NOW + 10.6) is not trusted
    found.merge(record(now=NOW + 20 + skew), NOW + 10.7)
    assert not found.suspected(PEERS[0], NOW + 10.8)


def test_only_known_peers_are_in_doubt() -> None:
    found = made()
    found.suspect(PEERS[0], NOW)
    assert not found.suspected(PEERS[0], NOW)
    found.merge(record(), NOW)
    found.suspect(PEERS[0], NOW + FORGET + 29.5)
    assert found.suspected(PEERS[0], NOW + FORGET + 29.5)
    assert len(found.live(NOW + FORGET + 30)) == 0
    assert not found.suspected(PEERS[0], NOW + FORGET + 30)


def test_who_is_called_wrong_is_known_as_long_as_the_record_lives_that_says_so() -> None:
    directory = made()
    directory.merge(record(WHO[0], ready=shards(1)), NOW)
    assert directory.named(NOW) == {}
    before = directory.version(NOW)
    wrong = (Naming(PEERS[1], shards(1, 3)),)
    directory.merge(record(WHO[0], ready=shards(1), wrong=wrong, lifetime=20), NOW)
    assert directory.version(NOW) > before
    found = directory.named(NOW)
    assert found == {PEERS[0]: wrong}
    assert directory.named(NOW + 20) == {}
    before = directory.version(NOW + 20)
    directory.merge(record(WHO[0], ready=shards(1), wrong=wrong), NOW + 21)
    assert len(directory.named(NOW + 21)) == 1
    directory.merge(record(WHO[0], ready=shards(1)), NOW + 22)
    assert directory.named(NOW + 22) == {}
    assert directory.version(NOW + 22) > before


def test_accusations_take_no_more_memory_than_their_records() -> None:
    """Nine in ten of 65,536 shards take a few bytes in a record, and 128 KiB each when decoded."""
    directory = Directory(SWARM, lambda: Rules(1 << 16))
    accusers = [Identity.from_seed(bytes([n]) * 32) for n in range(1, 33)]
    data = []
    for n, who in enumerate(accusers):
        sets = [np.delete(np.arange(1 << 16, dtype=np.uint16), [n, 100 + m]) for m in range(8)]
        peers = sorted(Peer(bytes([n, m]) * 16) for m in range(8))
        wrong = tuple(map(Naming, peers, (packed(some, 1 << 16) for some in sets)))
        data.append(record(who, wrong=wrong))
    tracemalloc.start()
    for one in data:
        directory.merge(one, NOW)
    unpacked.cache_clear()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(directory.named(NOW)) == len(accusers)
    assert kept < 64 * 1024 * len(accusers)


def test_the_names_of_a_forgotten_peer_are_forgotten() -> None:
    directory = made()
    wrong = (Naming(PEERS[1], shards(1)),)
    directory.merge(record(WHO[0], wrong=wrong, lifetime=20), NOW)
    directory.version(NOW + 20 + FORGET)
    assert directory._accusers == set()
