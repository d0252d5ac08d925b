"""When shards double and chunks grow by themselves: as a swarm grows, and when peers lie."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.model.spec import MOST_CHUNK
from giaann_p2p.store.layout import MOST_SHARDS
from giaann_p2p.swarm.members.reshard_rule import (
    FEWEST,
    LARGEST,
    LOOKS,
    NOTHING,
    PAUSE,
    ReshardRule,
    Storing,
    Wish,
    reason,
    storing,
    wanted,
)
from giaann_p2p.swarm.members.standing import Standing
from giaann_p2p.swarm.wire.edition import MOST_SIZES
from giaann_p2p.swarm.wire.manifest import Rules
from tests.helpers_swarm import SHARDS
from tests.unit.swarm.members.test_peers_view import NOW, ONE, THREE, TWO, Seeing, record

MINUTE = 60.0
RULES = Rules(256)
MIB = 1 << 20


def peers(count: int, rules: Rules = RULES, nbytes: int = 0) -> list[Storing]:
    """Return what so many equal peers tell that hold `nbytes` together."""
    return [Storing(rules.edition, True, nbytes / (rules.replicas * rules.shards))] * count


def raised(rules: Rules, wish: Wish) -> Rules:
    """Return the rules of the next edition."""
    sizes = (*rules.sizes, wish.chunk) if wish.chunk else rules.sizes
    shards = wish.shards or rules.shards
    return rules._replace(edition=rules.edition + 1, shards=shards, sizes=sizes)


class Swarm:
    """A founder that looks each minute; `changes` has the minute of each edition."""

    def __init__(self, rules: Rules = RULES) -> None:
        self.rules, self.rule = rules, ReshardRule()
        self.minutes, self.changes = 0, list[tuple[int, Wish]]()

    def live(self, minutes: int, count: int, nbytes: int = 0) -> list[Wish]:
        """Look for some minutes at so many peers; return what was raised."""
        before = len(self.changes)
        for _ in range(minutes):
            self.minutes += 1
            there = peers(count, self.rules, nbytes)
            wish = self.rule.look(self.rules, there, self.minutes * MINUTE)
            if any(wish):
                self.rules = raised(self.rules, wish)
                self.changes.append((self.minutes, wish))
        return [wish for _, wish in self.changes[before:]]


def test_shards_and_chunks_follow_a_growing_swarm_and_then_stay() -> None:
    swarm = Swarm()
    assert swarm.live(1000, 3) == []
    assert swarm.live(1000, 30) == [Wish(512, 0)]
    assert swarm.live(1000, 300) == [Wish(1024, 1024), *(Wish(n, 0) for n in (2048, 4096, 8192))]
    assert swarm.live(1000, 3) == []
    assert swarm.live(1000, 300) == []
    assert swarm.live(300, 10_000)[-1].shards == MOST_SHARDS
    assert swarm.live(100, 16_000) == []
    assert (swarm.rules.shards, swarm.rules.sizes) == (MOST_SHARDS, (64, 1024, MOST_CHUNK))


def test_large_shards_double_until_they_are_small_enough() -> None:
    swarm, gib = Swarm(), 1024 * MIB
    assert swarm.live(1000, 4, 3 * 256 * LARGEST) == []
    assert swarm.live(1000, 4, 3 * 256 * LARGEST + gib) == [Wish(512, 0)]
    assert swarm.live(1000, 4, 3 * 2048 * LARGEST) == [Wish(1024, 0), Wish(2048, 0)]


def test_a_change_is_wanted_for_a_while_and_comes_once_an_hour() -> None:
    swarm = Swarm(Rules(16))
    swarm.live(300, 10)
    minutes = [minute for minute, _ in swarm.changes]
    hour = int(PAUSE / MINUTE)
    first = LOOKS + 1 + hour  # the edition is first seen at the look after it was signed
    assert minutes == [LOOKS, first, first + 1 + hour, first + 2 * (1 + hour)]
    assert swarm.rules.shards == 256


def test_a_look_at_which_less_is_wanted_counts_for_all() -> None:
    rule = ReshardRule()
    for look in range(LOOKS):
        count = 40 if look == 3 else 300
        found = rule.look(RULES, peers(count), look * MINUTE)
    assert found == Wish(512, 128)
    for look in range(LOOKS - 1):
        found = rule.look(RULES, peers(3 if look == 1 else 300), look * MINUTE)
    assert found == NOTHING


def test_whoever_else_signs_an_edition_makes_it_wait() -> None:
    rule = ReshardRule()
    for look in range(LOOKS - 1):
        assert rule.look(RULES, peers(30), look * MINUTE) == NOTHING
    others = RULES._replace(edition=1, replicas=4)
    looks = range(LOOKS, LOOKS + int(PAUSE / MINUTE))
    assert {rule.look(others, peers(30, others), look * MINUTE) for look in looks} == {NOTHING}
    assert rule.look(others, peers(30, others), MINUTE * looks.stop) == Wish(512, 0)


def test_what_was_wanted_by_earlier_rules_does_not_count() -> None:
    rule, later = ReshardRule(), RULES._replace(edition=1)
    for look in range(LOOKS):
        rule.look(RULES, peers(30), look * MINUTE)
    rule.look(later, peers(30, later), LOOKS * MINUTE)
    assert rule.look(later, peers(30, later), LOOKS * MINUTE + PAUSE) == NOTHING


@pytest.mark.parametrize(
    ("restless", "found"),
    [
        ([Storing(0, True, 0)] * 7, Wish(512, 0)),
        ([Storing(0, True, 0)] * 8, NOTHING),  # they count by an earlier edition
        ([Storing(1, False, 0)] * 8, NOTHING),  # they fetch a shard
        ([Storing(1, False, 0)] * 4 + [Storing(2, True, 0)] * 3, Wish(512, 0)),
    ],
)
def test_nothing_changes_while_the_swarm_is_restless(restless: list[Storing], found: Wish) -> None:
    rules = RULES._replace(edition=1)
    assert wanted(rules, [*peers(30, rules)[len(restless) :], *restless]) == found


def test_fewer_peers_than_replicas_change_nothing() -> None:
    assert wanted(Rules(16), peers(2)) == wanted(Rules(16), []) == NOTHING
    assert wanted(Rules(16), peers(3)) == Wish(32, 0)


@pytest.mark.parametrize(
    ("count", "chunk"), [(3, 0), (32, 0), (33, 128), (300, 1024), (4000, 8192), (16_000, 16_384)]
)
def test_a_chunk_has_two_sentences_for_each_peer(count: int, chunk: int) -> None:
    assert wanted(Rules(MOST_SHARDS), peers(count)) == Wish(0, chunk)


def test_chunks_grow_as_often_as_an_edition_can_tell() -> None:
    sizes = (64, *range(65, 65 + MOST_SIZES))
    assert wanted(RULES._replace(sizes=sizes), peers(300)) == Wish(512, 0)
    assert wanted(RULES._replace(sizes=sizes[:-1]), peers(300)) == Wish(512, 1024)


anything = st.builds(
    Storing, st.sampled_from([0, 1]), st.booleans(), st.sampled_from([0, 1 << 30, 1 << 50])
)


@given(
    st.integers(3, 60),
    st.sampled_from([1, 256, 4096, MOST_SHARDS]),
    st.sampled_from([0, 1 << 38, 1 << 50]),
    st.floats(0.5, 1.0),
    st.lists(anything, max_size=30),
)
def test_liars_raise_nothing_that_the_others_would_not(
    count: int, shards: int, nbytes: int, least: float, liars: list[Storing]
) -> None:
    rules = Rules(shards)
    all_as_largest = peers(count, rules, nbytes)
    honest = [
        one._replace(size=(one.size or 0) * (least + (1 - least) * at / count))
        for at, one in enumerate(all_as_largest)
    ]
    lies = liars[: (count - 1) // 2]
    found = wanted(rules, [*honest[len(lies) :], *lies])
    assert found in (NOTHING, wanted(rules, honest), wanted(rules, all_as_largest))
    if 4 * len(lies) <= count and not nbytes:  # so few cannot stop it, either
        assert found == wanted(rules, honest)


def test_in_a_swarm_of_unequal_peers_a_shard_is_as_large_as_it_is() -> None:
    around = Seeing()
    around.rules_now = Rules(SHARDS, replicas=1, quorum=1)
    around.tell(
        record(ONE, capacity=64 << 30, ready=(0, 1), used=1 << 30),
        record(TWO, capacity=1 << 30, ready=(2,), used=1 << 20),
    )
    placement = around.placement(NOW)
    sizes = {
        peer.peer: used / len(placement.shards_of(peer.peer))
        for peer, used in ((ONE, 1 << 30), (TWO, 1 << 20))
        if len(placement.shards_of(peer.peer))
    }
    found = [one.size for one in storing(around, NOW)]
    assert sorted(size for size in found if size) == sorted(sizes.values())


@given(st.integers(0, 2000), st.integers(0, 16), st.integers(0, 1 << 50))
def test_shards_only_double_within_bounds_and_end(count: int, doublings: int, held: int) -> None:
    rules = Rules(1 << doublings)
    for _ in range(20):
        wish = wanted(rules, peers(max(1, count), rules, held) if count else [])
        if not any(wish):
            break
        assert wish.shards in (0, 2 * rules.shards)
        assert wish.chunk == 0 or rules.chunk < wish.chunk <= MOST_CHUNK
        was_large = held > LARGEST * 3 * rules.shards // 2
        assert was_large or wish.shards * 3 < 2 * FEWEST * count
        rules = raised(rules, wish)
    assert not any(wish)
    assert rules.shards <= MOST_SHARDS


@given(st.integers(3, 16_000), st.integers(3, 16_000))
def test_more_peers_never_want_less(one: int, other: int) -> None:
    few, many = sorted((one, other))
    less, more = wanted(RULES, peers(few)), wanted(RULES, peers(many))
    assert less.shards <= more.shards
    assert less.chunk <= more.chunk


def test_the_reason_is_told() -> None:
    told = reason(RULES, Wish(512, 1024), peers(300))
    assert told == (
        "512 shards, because 300 storage peers had 2 each; 1,024 sentences in a chunk of a new "
        "text, because each chunk takes a message to 300 storage peers"
    )
    large = peers(4, RULES, 3 * 512 * LARGEST)
    assert reason(RULES, Wish(512, 0), large) == "512 shards, because one took 512.0 MiB of memory"


def test_peers_count_once_they_have_standing() -> None:
    around = Seeing()
    around.standing = Standing(ONE.peer, needed=60.0, seen={ONE.peer: 100.0, TWO.peer: 80.0})
    around.tell(
        record(ONE, ready=tuple(range(SHARDS)), used=7 * MIB),
        record(TWO, ready=(0, 1), syncing=(2,), used=5 * MIB, edition=3),
        record(THREE, ready=(0,)),
    )
    found = storing(around, NOW)
    each = around.placement(NOW)
    one, two = (len(each.shards_of(peer.peer)) for peer in (ONE, TWO))
    assert sorted(found) == [Storing(0, True, 7 * MIB / one), Storing(3, False, 5 * MIB / two)]
    around.tell(record(ONE, 2, ready=(0,), state="joining"))
    two = len(around.placement(NOW).shards_of(TWO.peer))
    assert Storing(3, False, 5 * MIB / two) in storing(around, NOW)
    assert len(storing(around, NOW)) == 2
