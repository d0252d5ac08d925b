"""A swarm at a glance."""

from collections.abc import Collection

import msgspec
import pytest

from giaann_p2p.store.cut_columns import cut_columns
from giaann_p2p.store.cuts import Cut
from giaann_p2p.swarm.members.causes import cause_of
from giaann_p2p.swarm.members.commands import GENERAL
from giaann_p2p.swarm.members.overview import Overview, overview
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.record import Missing
from tests.helpers_swarm import SHARDS
from tests.unit.swarm.members.test_peers_view import NOW, ONE, THREE, TWO, Seeing, record

ALL = tuple(range(SHARDS))
RULES = Rules(SHARDS, replicas=2)


def seen(
    *records: bytes, now: float = NOW, rules: Rules = RULES, silent: Collection[Peer] = ()
) -> Overview:
    around = Seeing()
    around.tell(*records)
    placement: Placement = around.placement(now)
    return overview(around.directory, placement, rules, now, silent)


def test_all_is_well() -> None:
    compute = record(THREE, role="compute", capacity=0, ready=(), device="cpu", slots=3)
    found = seen(record(ONE, ready=ALL, used=77), record(TWO, ready=ALL), compute)
    assert found.verdict == "healthy"
    assert (found.shards, found.replicas, found.gone) == (SHARDS, 2, [])
    assert [one.role for one in found.peers] == ["compute", "storage", "storage"]
    first = next(one for one in found.peers if one.peer == ONE.peer)
    assert (first.used, first.ready, first.syncing, first.owns) == (77, SHARDS, 0, SHARDS)
    assert (found.peers[0].device, found.peers[0].slots, found.peers[0].owns) == ("cpu", 3, 0)
    assert found.health.least == 2
    assert found.cut == ()


def test_the_columns_that_are_cut_are_counted_for_each_size_that_cuts_more() -> None:
    few = cut_columns((Cut("bee", 4), Cut("sea", 16)))
    more = cut_columns((Cut("bee", 8), Cut("day", 2), Cut("sea", 16)))
    sizes, cuts = (64, 128, 256, 512), (cut_columns(()), few, few, more)
    found = seen(rules=Rules(SHARDS, 2, edition=3, sizes=sizes, cuts=cuts))
    assert (found.replicas, found.edition) == (2, 3)
    first, then = found.cut
    assert (first.chunk, first.columns, first.parts) == (128, 2, 20)
    assert (then.chunk, then.columns, then.parts) == (512, 3, 26)
    (founding,) = seen(rules=Rules(SHARDS, 2, cuts=(few,))).cut
    assert founding == msgspec.structs.replace(first, chunk=64)


@pytest.mark.parametrize(
    ("records", "verdict", "under", "lost"),
    [
        ([record(ONE, ready=ALL)], "degraded", SHARDS, 0),
        ([record(ONE, ready=ALL), record(TWO, ready=ALL[1:], syncing=(0,))], "degraded", 1, 0),
        ([record(ONE, ready=ALL[1:]), record(TWO, ready=ALL[1:])], "lost", 1, 1),
        ([], "starting", SHARDS, SHARDS),
        ([record(ONE), record(TWO, syncing=ALL)], "starting", SHARDS, SHARDS),
        ([record(ONE, ready=ALL[:1]), record(TWO, syncing=ALL)], "starting", SHARDS, SHARDS - 1),
        ([record(ONE, ready=ALL[:1]), record(TWO, syncing=ALL[1:3])], "lost", SHARDS, SHARDS - 1),
    ],
)
def test_what_is_not_well(records: list[bytes], verdict: str, under: int, lost: int) -> None:
    found = seen(*records)
    assert found.verdict == verdict
    assert (found.health.under, found.health.lost) == (under, lost)


def test_a_swarm_does_not_start_if_a_silent_peer_has_served_what_is_fetched() -> None:
    records = record(ONE, ready=ALL), record(TWO, ready=ALL[:1], syncing=ALL[1:])
    found = seen(*records, silent=[ONE.peer])
    assert (found.verdict, found.health.lost, found.fetched) == ("lost", SHARDS - 1, SHARDS - 1)


@pytest.mark.parametrize(("seen_at", "verdict"), [(0, "starting"), (NOW - 60, "lost")])
def test_a_swarm_whose_storage_peers_have_all_left_is_not_starting(
    seen_at: int, verdict: str
) -> None:
    about = Missing(seen=seen_at)
    found = seen(record(THREE, role="compute", capacity=0, slots=3, missing=about))
    assert (found.verdict, found.storing) == (verdict, 0)
    cause = cause_of(found)
    assert cause is not None
    words, advice = cause.words(found), cause.advice(found, GENERAL)
    if verdict == "lost":
        assert words.startswith(f"{SHARDS} shards, last seen 60 s ago")
        assert "each with its original command and data folder" in advice
    else:
        assert words == "no storage peer yet"


def test_who_went_without_leave_may_come_back() -> None:
    found = seen(record(ONE, ready=ALL), now=NOW + 40)
    assert found.peers == []
    assert found.gone == [ONE.peer]
    assert found.verdict == "lost"


@pytest.mark.parametrize(
    ("silent", "verdict", "least", "under"),
    [
        ((), "healthy", 2, 0),
        ((TWO.peer,), "degraded", 1, SHARDS),
        ((ONE.peer, TWO.peer), "lost", 0, SHARDS),
        ((THREE.peer,), "healthy", 2, 0),  # nobody who is said to be there
    ],
)
def test_what_silent_peers_hold_does_not_count(
    silent: tuple[Peer, ...], verdict: str, least: int, under: int
) -> None:
    found = seen(record(ONE, ready=ALL), record(TWO, ready=ALL), silent=silent)
    assert (found.verdict, len(found.peers)) == (verdict, 2)
    assert (found.health.least, found.health.under) == (least, under)
    assert found.health.unsettled == 0  # nothing is on its way to them
    assert sorted(found.silent) == sorted({*silent} - {THREE.peer})


@pytest.mark.parametrize(
    ("used", "quorum", "verdict", "closed"),
    [
        ((100, 99), 2, "full", SHARDS),
        ((100, 99), 1, "degraded", 0),
        ((100, 100), 1, "full", SHARDS),
        ((99, 84), 2, "healthy", 0),
    ],
)
def test_a_swarm_is_full_when_nothing_more_can_be_learned(
    used: tuple[int, int], quorum: int, verdict: str, closed: int
) -> None:
    one, two = (
        record(peer, ready=ALL, capacity=100, used=part)
        for peer, part in zip((ONE, TWO), used, strict=True)
    )
    found = seen(one, two, rules=RULES._replace(quorum=quorum))
    assert (found.verdict, found.closed) == (verdict, closed)
    nearly = [peer.peer for peer, part in zip((ONE, TWO), used, strict=True) if 85 <= part < 100]
    assert [one.peer for one in found.filling] == nearly


def test_a_swarm_is_full_when_those_are_that_hold_on_to_what_newcomers_own() -> None:
    giants = [
        record(Identity.from_seed(bytes([n]) * 32), ready=ALL, capacity=1 << 40) for n in (8, 9)
    ]
    found = seen(record(ONE, ready=ALL, capacity=100, used=100), *giants)
    assert (found.verdict, found.closed, found.full) == ("full", SHARDS, [ONE.peer])
    found = seen(record(ONE, ready=ALL, capacity=100, used=99), *giants)
    assert (found.verdict, found.closed, found.full) == ("healthy", 0, [])
    assert [one.peer for one in found.filling] == [ONE.peer]


def test_nothing_is_on_its_way_to_who_does_not_answer() -> None:
    records = record(ONE, ready=ALL), record(TWO, ready=(), syncing=ALL)
    assert seen(*records).health.unsettled == SHARDS
    assert seen(*records, silent=[TWO.peer]).health.unsettled == 0


def test_who_has_two_roles_is_silent_once() -> None:
    compute = record(ONE, role="compute", capacity=0, ready=(), device="cpu", slots=3)
    found = seen(record(ONE, ready=ALL), compute, silent=[ONE.peer])
    assert found.silent == [ONE.peer]
