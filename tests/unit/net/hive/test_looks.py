"""What looks ask for: a reader in virtual time, and the nodes that keep copies of each place."""

import random
from collections.abc import Callable, Collection
from functools import partial

import msgspec
import pytest

from giaann_p2p.net.hive.finding import Finding
from giaann_p2p.net.hive.looks import ASKED, FEW, REPLICAS, Looks
from giaann_p2p.net.hive.shelf import ALL, BOTH, PULSES, Shelf, news_key
from giaann_p2p.net.hive.short_look import spread
from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.pulse import is_bare
from giaann_p2p.swarm.wire.record import BUCKETS, LIFETIME, Announcement, Role, bucket_of
from tests.unit.swarm.helpers_pulses import beat, chained

NOW = 1_900_000_000.0
SWARM, RULES = bytes(range(32)), Rules(8)
ROLE: Role = "storage"
INTERVAL = 4.5
Answers = Callable[[Shelf, bytes, float], list[bytes]]


def honest(shelf: Shelf, key: bytes, now: float) -> list[bytes]:
    return shelf.get(key, now)


def silent(shelf: Shelf, key: bytes, now: float) -> list[bytes]:
    return []


def of_before(shelf: Shelf, key: bytes, now: float) -> list[bytes]:
    """Answer as nodes of releases without batches and patches do."""
    held, since = shelf._places[news_key(key, ALL)].values(), now - key[-1]
    if key[-1] == ALL:
        return shelf.get(key, now)
    late = [one for one in held if one.until > now and one.prolonged > since]
    return [one.data if one.new > since else one.bare for one in late]


class Announcer:
    """A peer that posts a pulse every ten seconds, and sometimes a new record."""

    def __init__(self, number: int, renews: int) -> None:
        self.identity = Identity.from_seed(number.to_bytes(32, "big"))
        self.next = NOW + number % 100 / 10
        self._renews, self._posts = renews, 0
        self._data = b""

    def posted(self) -> bytes:
        """Return the record with its next pulse, or a new record."""
        number = self._posts % self._renews
        if number == 0:
            said = Announcement(
                swarm_id=SWARM,
                peer=self.identity.peer,
                role=ROLE,
                incarnation=1,
                sequence=self._posts + 1,
                issued=int(self.next),
                capacity=1000,
            )
            self._data = chained(self.identity, said)
        self._posts += 1
        self.next += LIFETIME / 3
        return beat(self._data, self.identity, number)


class World:
    """Peers, the nodes that keep their records, and one reader."""

    def __init__(self, peers: int, renews: int = 100, answers: Answers = honest) -> None:
        random.seed(1)
        self.peers = [Announcer(number, renews) for number in range(peers)]
        self.shelves = [Shelf(Identity.from_seed(bytes([9] * 32)).peer, SWARM, lambda: RULES)]
        self.shelves *= REPLICAS
        self.shelf = self.shelves[0]
        self.answers = [answers] * REPLICAS
        self.directory = Directory(SWARM, lambda: RULES)
        self.looks = Looks(self.shelf.keys(ROLE))
        self.bytes = 0
        """Length of all answers so far."""
        self.now = self._next = NOW + 10

    def run(self, seconds: float, watch: Callable[[], None] = lambda: None) -> None:
        """Let time pass; call `watch` after each look."""
        ends = self.now + seconds
        while self._next < ends:
            self.now = self._next
            self._post()
            soon = self._look()
            watch()
            self._next += 1.0 if soon else INTERVAL
        self.now = ends

    def live(self) -> set[Peer]:
        return {said.peer for said in self.directory.live(self.now)}

    def _post(self) -> None:
        for one in self.peers:
            while one.next <= self.now:
                at, data = one.next, one.posted()
                self.shelf.put(
                    self.shelf.key(ROLE, one.identity.peer), data, one.identity.peer, LIFETIME, at
                )

    def _look(self) -> bool:
        news, further = self.looks.news(self.now), self.looks.further(self.now)
        keys = self.shelf.keys(ROLE, news)
        finding = Finding([*keys, *further])
        for each in (dict.fromkeys(keys, ASKED), further):
            near = {key: [(key[:-1], copy) for copy in range(REPLICAS)] for key in each}
            for node, asked in spread(near, each, BUCKETS).items():
                for key in asked:
                    copy = node[1]  # type: ignore[index]
                    found = self.answers[copy](self.shelves[copy], key, self.now)
                    self.bytes += len(msgspec.msgpack.encode(found))
                    finding.take(node, key, found)
        self.looks.looked(self.now, self.now, complete=True)
        for brought in finding.brought():
            for record in brought:
                self.directory.merge(record, self.now)
        strange, self.directory.strange_buckets = self.directory.strange_buckets, set()
        overdue = partial(self.directory.overdue, ROLE)
        return self.looks.missed(len(self.live()), lambda due: overdue(due, self.now), strange)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a swarm count as large from a few peers on."""
    monkeypatch.setattr("giaann_p2p.net.hive.looks.FEW", 4)


def everybody(world: World) -> set[Peer]:
    return {one.identity.peer for one in world.peers}


def stays_whole(world: World, seconds: float = 300) -> None:
    """Let time pass, and see that every live peer is known to be live after each look."""

    def whole() -> None:
        assert world.live() == everybody(world)

    world.run(seconds, whole)


@pytest.mark.usefixtures("large")
def test_at_rest_a_pulse_comes_once_a_round_and_takes_sixteen_bytes() -> None:
    world = World(100, renews=200)
    stays_whole(world, 60)
    world.bytes = 0
    stays_whole(world, 540)
    rounds = 540 / (3 * INTERVAL)
    frames = BUCKETS * 60 * 8 * 2.5  # an empty list for each place and node, and the like
    assert 95 * rounds * 16 < world.bytes < 100 * rounds * 16 + frames


@pytest.mark.usefixtures("large")
def test_new_records_are_known_at_the_next_look() -> None:
    world = World(40, renews=5)

    def current() -> None:
        held = {data for key in world.shelf.keys(ROLE) for data in world.shelf.get(key, world.now)}
        known = {said.peer: said.sequence for said in world.directory.live(world.now)}
        last = {one.identity.peer: 5 * ((one._posts - 1) // 5) + 1 for one in world.peers}
        assert known == last
        assert len(held) == 40

    world.run(200, current)
    assert world.directory.refused == 0


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("renews", [7, 100])
def test_a_node_that_hides_all_makes_no_live_peer_expire(renews: int) -> None:
    world = World(60, renews)
    world.answers[0] = silent
    stays_whole(world, 900)


@pytest.mark.usefixtures("large")
def test_without_asking_further_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(60)
    world.answers[0] = silent
    missed = world.looks.missed
    monkeypatch.setattr(
        world.looks, "missed", lambda live, overdue, strange: missed(live, lambda due: (), strange)
    )
    with pytest.raises(AssertionError):
        stays_whole(world, 900)


@pytest.mark.usefixtures("large")
def test_who_is_lost_is_known_to_be_after_a_round_and_a_lifetime() -> None:
    world = World(60)
    world.run(100)
    lost = world.peers.pop()
    last = lost.next - LIFETIME / 3
    world.run(20)
    assert lost.identity.peer in world.live()
    world.run(last + 3 * INTERVAL + LIFETIME - world.now)
    assert world.live() == everybody(world)


@pytest.mark.usefixtures("large")
def test_nodes_of_earlier_releases_are_understood() -> None:
    world = World(60, renews=7, answers=of_before)
    stays_whole(world)
    world.answers = [honest, of_before, honest, of_before, silent]
    stays_whole(world)
    assert world.directory.refused == 0


def test_readers_of_earlier_releases_get_records_and_bare_pulses_only() -> None:
    world = World(60, renews=7)
    world.run(100)
    for seconds in (*range(BOTH, ALL + 1), 0):
        for place in world.shelf.keys(ROLE):
            key = news_key(place, seconds)
            found = world.shelf.get(key, world.now)
            assert found == (of_before(world.shelf, key, world.now) if seconds else [])
            assert all(is_bare(one) or one[0] == 0 for one in found)


def test_in_a_small_swarm_each_look_brings_a_pulse_of_each_peer() -> None:
    world = World(20)
    stays_whole(world, 100)
    assert world.looks.news(world.now) == BOTH
    assert world.looks.further(world.now) == {}


def test_a_look_that_comes_late_asks_for_all_since_the_last() -> None:
    looks = Looks([bytes(20)] * BUCKETS)
    assert looks.news(0.0) == ALL
    looks.looked(0.0, 0.0, complete=True)
    looks.missed(FEW + 1, lambda due: (), ())
    assert [looks.news(now) for now in (1.0, 4.5, 8.0, 9.0, 10.0, 30.0, 1000.0)] == [
        3,
        7,
        10,
        BOTH,
        BOTH,
        32,
        ALL,
    ]
    assert looks.further(5.0) == {}
    assert looks.further(30.0) == {}  # it brings all pulses anyway
    looks.missed(FEW, lambda due: (), ())
    assert looks.news(1.0) == BOTH


def test_a_peer_that_is_overdue_is_asked_for_at_ever_more_nodes() -> None:
    late = Identity.from_seed(bytes(32)).peer
    places = [bytes([bucket] * 19) + bytes([ALL]) for bucket in range(BUCKETS)]
    looks, due = Looks(places), list[float]()
    place = places[bucket_of(late)]

    def overdue(by: float) -> Collection[Peer]:
        due.append(by)
        return (late,)

    looks.looked(0.0, 0.0, complete=True)
    assert looks.missed(FEW + 1, lambda due: (), ()) is False
    for now in (4.5, 9.0):
        assert looks.further(now) == {}
        looks.looked(now, now, complete=True)
    rounds = {news_key(one, PULSES): 1 for one in places}
    assert looks.further(13.5) == rounds
    looks.looked(13.5, 14.0, complete=False)
    assert looks.further(14.5) == rounds  # they were not even asked for
    looks.looked(13.5, 14.0, complete=True)
    expected: list[dict[bytes, int]] = [
        {},
        {news_key(place, PULSES): 2},
        {news_key(place, LIFETIME): REPLICAS},
        {},
    ]
    for number, further in enumerate(expected):
        assert looks.missed(FEW + 1, overdue, ()) is (number < 3)
        looks.looked(15.5 + number, 15.5 + number, complete=False)
        assert looks.missed(FEW + 1, overdue, ()) is (number < 3)
        looks.looked(15.5 + number, 15.5 + number, complete=True)
        assert looks.further(15.5 + number) == further
    assert due == [12.5] * 8
    assert looks.missed(FEW + 1, lambda due: (), (3, 99)) is False
    assert looks.further(19.0) == {places[3]: 1}
