"""Storage peers that seem to vanish all at once are given up a part at a time."""

from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.record import LIFETIME, Role
from tests.unit.swarm.helpers_pulses import beat
from tests.unit.swarm.members.helpers_directory import NOW, living, made, record, shards

MANY = 96
SOME, LONG = 8, 120.0
MANY_WHO = [Identity.from_seed(n.to_bytes(32, "little")) for n in range(1, MANY + 1)]


def filled(peers: int, role: Role = "storage") -> Directory:
    """Return a directory of peers whose records arrived one after the other within a second."""
    directory = made()
    for n, who in enumerate(MANY_WHO[:peers]):
        held = {} if role == "compute" else {"ready": shards(n % 16)}
        for then in (NOW - LONG, NOW):
            directory.merge(record(who, role=role, now=then, **held), then + n / MANY)
    return directory


def live(directory: Directory, now: float) -> set[Peer]:
    return {said.peer for said in directory.live(now)}


def test_a_quarter_of_a_large_swarm_is_given_up_within_a_lifetime() -> None:
    directory = filled(MANY)
    left = [len(live(directory, NOW + n * (LIFETIME + 1))) for n in range(1, 8)]
    assert left == [72, 54, 41, 31, 23, 15, 7]  # of fewer than 32 peers, eight at once


def test_who_has_been_silent_longest_is_given_up_first() -> None:
    directory = filled(MANY)
    assert live(directory, NOW + LIFETIME + 1) == {who.peer for who in MANY_WHO[MANY // 4 :]}


def test_those_that_come_one_by_one_count_together() -> None:
    directory, end = filled(MANY), NOW + LIFETIME
    left = [len(live(directory, end + second / 4)) for second in range(4 * LIFETIME)]
    assert min(left) == left[-1] == MANY - MANY // 4


def test_a_few_are_given_up_at_once_in_a_swarm_of_any_size() -> None:
    for peers in (1, SOME):
        assert live(filled(peers), NOW + LIFETIME + 1) == set()


def test_compute_peers_are_given_up_at_once_and_do_not_count() -> None:
    directory = filled(MANY, "compute")
    for who in MANY_WHO[:SOME]:
        for then in (NOW - LONG, NOW):
            directory.merge(record(who, now=then, ready=shards(1)), then)
    assert live(directory, NOW + LIFETIME + 1) == set()


def test_peers_that_left_are_gone_at_once_and_do_not_count() -> None:
    directory = filled(MANY)
    for who in MANY_WHO[:48]:
        directory.merge(record(who, state="left"), NOW + 1)
    assert len(live(directory, NOW + 1)) == 48
    assert len(live(directory, NOW + LIFETIME + 1)) == 48 - 48 // 4


def test_who_was_kept_and_shows_life_never_was_away() -> None:
    directory, later = filled(MANY), NOW + LIFETIME + 2
    records = [living(who, ready=shards(1)) for who in MANY_WHO]
    for data in records:
        directory.merge(data, NOW + 1)
    version = directory.version(later)
    assert len(live(directory, later)) == 72
    for who, data in zip(MANY_WHO[24:], records[24:], strict=True):
        assert directory.merge(beat(data, who, 3), later)
    assert directory.version(later) == version
    assert len(live(directory, later + LIFETIME - 1)) == 72


def test_newcomers_are_given_up_at_once_and_make_nobody_wait() -> None:
    directory, honest = filled(SOME), MANY_WHO[:SOME]
    for who in MANY_WHO[SOME:]:
        for then in (NOW - LONG + 50, NOW + 20):
            directory.merge(record(who, now=then, lifetime=1, ready=shards(1)), then)
    assert live(directory, NOW + 22) == {who.peer for who in honest}
    assert live(directory, NOW + LIFETIME + 1) == set()


def test_those_that_come_back_still_count_as_given_up() -> None:
    directory, again = filled(MANY), NOW + LIFETIME + 1
    assert len(live(directory, again)) == MANY - MANY // 4
    for who in MANY_WHO[: MANY // 4]:
        directory.merge(record(who, now=again, ready=shards(1)), again)
    assert len(live(directory, again + 5)) == MANY


def test_those_whose_records_have_expired_are_not_asked_for() -> None:
    directory = filled(MANY)
    assert len(directory.overdue("storage", NOW + 1000, NOW + LIFETIME - 1)) == MANY
    assert directory.overdue("storage", NOW + 1000, NOW + LIFETIME + 1) == []
