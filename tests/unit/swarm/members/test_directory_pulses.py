"""The directory: pulses, whole and bare, that prolong the records that it knows."""

from typing import cast

import msgspec
import numpy as np
import pytest

from giaann_p2p.errors import RecordError
from giaann_p2p.swarm.members import directory as directory_module
from giaann_p2p.swarm.members import entry, record_ids
from giaann_p2p.swarm.members.directory import FORGET, Directory
from giaann_p2p.swarm.members.entry import SignOfLife, VainError
from giaann_p2p.swarm.members.record_ids import RecordIds
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.patch import made as made_patch
from giaann_p2p.swarm.wire.pulse import (
    LINK_BYTES,
    MOST_PULSES,
    PULSE_BYTES,
    Pulse,
    apart,
    bare,
    batch,
    joined,
    pulse_of,
)
from giaann_p2p.swarm.wire.record import (
    LIFETIME,
    MOST_LIFETIME,
    SKEW,
    Announcement,
    ForgedError,
    bucket_of,
)
from tests.unit.swarm.helpers_pulses import SEED, beat
from tests.unit.swarm.members.helpers_directory import (
    NOW,
    PEERS,
    RULES,
    SWARM,
    WHO,
    living,
    made,
    record,
    said_in,
    shards,
)


def test_a_pulse_prolongs_a_life_and_is_passed_on() -> None:
    found, data = made(), living()
    said = found.merge(data, NOW)
    assert said is not None
    assert said.is_new
    for number in (1, 3, MOST_PULSES):
        now, shown = NOW + 10 * number, beat(data, WHO[0], number)
        assert found.merge(shown, now) == msgspec.structs.replace(said, is_new=False)
        assert found.records(now) == [shown]
        ((known, pulse),) = found.shown(now)
        assert (known, known.lived(pulse)) == (said.said, now)
        assert found.merge(shown, now + 29) is None
        assert found.live(now + 29)
        assert not found.live(now + 30)
    assert found.refused == 0


def test_a_pulse_that_was_shown_before_prolongs_nothing() -> None:
    found, data = made(), living()
    found.merge(beat(data, WHO[0], 5), NOW + 50)
    for number in (5, 4, 0):
        assert found.merge(beat(data, WHO[0], number), NOW + 60) is None
    assert found.records(NOW + 79) == [beat(data, WHO[0], 5)]
    assert not found.live(NOW + 80)


def test_a_wrong_pulse_is_refused_and_changes_nothing() -> None:
    found, data = made(), living()
    other = living(WHO[1])
    for one in (data, other):
        found.merge(one, NOW)
    wrong = [
        joined(Pulse(1, bytes(LINK_BYTES)), data[PULSE_BYTES:]),
        joined(Pulse(2, pulse_of(SEED, PEERS[0], 1).link), data[PULSE_BYTES:]),
        joined(pulse_of(SEED, PEERS[1], 1), data[PULSE_BYTES:]),
        beat(data, WHO[0], 1, b"another seed"),
        beat(record(WHO[2]), WHO[2], 1),  # no chain has its anchor
    ]
    for one in wrong:
        with pytest.raises(RecordError, match=r"pulse: number \d of this record is not by"):
            found.merge(one, NOW + 20)
    assert found.refused == len(wrong)
    assert found.live(NOW + 29)
    assert not found.live(NOW + 30)
    newcomer = made()
    for one in wrong:
        with pytest.raises(RecordError, match="pulse: number"):
            newcomer.merge(one, NOW + 20)
    assert len(newcomer) == 0


def test_a_pulse_beyond_the_last_is_refused_before_any_hash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, data = made(), living()
    beyond = joined(Pulse(MOST_PULSES + 1, bytes(LINK_BYTES)), data[PULSE_BYTES:])
    monkeypatch.setattr(directory_module, "prove_pulse", None)  # nothing may be proved
    monkeypatch.setattr(directory_module, "prove", None)
    with pytest.raises(RecordError, match="pulse: the last one is number 120, not 121"):
        found.merge(beyond, NOW)
    monkeypatch.undo()
    found.merge(data, NOW)
    monkeypatch.setattr(directory_module, "prove_pulse", None)
    with pytest.raises(RecordError, match="pulse: the last one is number 120, not 121"):
        found.merge(beyond, NOW)


def test_a_pulse_brings_back_who_was_gone_but_not_who_left() -> None:
    found, data = made(), living(ready=shards(1))
    left = living(WHO[1], state="left")
    for one in (data, left):
        found.merge(one, NOW)
    gone = found.version(NOW + 100)
    assert found.members(NOW + 100) == ()
    assert found.merge(beat(data, WHO[0], 10), NOW + 100)
    back = found.version(NOW + 100)
    assert back != gone
    assert found.ready(1, NOW + 100) == [PEERS[0]]
    assert found.merge(beat(data, WHO[0], 11), NOW + 110)
    found.merge(beat(left, WHO[1], 11), NOW + 110)
    assert found.alive(NOW + 110) == {PEERS[0]}
    assert found.version(NOW + 110) == back
    assert found.gone(NOW + 200) == [found.announcement(PEERS[0])]


def test_a_bare_pulse_is_as_good_where_its_record_is_known() -> None:
    found, data = made(), living()
    one, two = (bare(beat(data, WHO[0], number)) for number in (1, 2))
    assert found.merge(one, NOW) is None
    assert (found.strange, len(found)) == (1, 0)
    found.merge(data, NOW)
    assert found.merge(two, NOW + 20) == SignOfLife(said_in(data), is_new=False)
    assert found.merge(one, NOW + 25) is None
    assert found.records(NOW + 49) == [beat(data, WHO[0], 2)]
    assert not found.live(NOW + 50)
    with pytest.raises(ForgedError, match="number 3"):
        found.merge(bare(beat(data, WHO[0], 3, b"another seed")), NOW + 30)
    assert (found.strange, found.refused) == (1, 1)


def test_of_records_that_are_gone_no_id_is_left() -> None:
    found = Directory(SWARM, lambda: RULES, most=3)
    for number in range(5):
        for who in WHO:
            for later in range(4):
                now = NOW + 100 * number + later
                found.merge(living(who, now), now)
    assert len(found) == 3
    assert len(found._ids) == 6  # and of the records before
    found.version(NOW + 1000 + FORGET)
    assert len(found) == len(found._ids) == 0


def test_a_newer_record_ends_the_pulses_of_the_one_before() -> None:
    found, data = made(), living()
    newer = living(state="draining")
    found.merge(data, NOW)
    found.merge(newer, NOW + 1)
    shown = beat(data, WHO[0], 2)
    for old in (shown, bare(shown)):
        assert found.merge(old, NOW + 20) is None
    assert found.strange == 0  # nodes that have got the newer one late still tell of it
    assert not found.live(NOW + 31)
    assert found.merge(beat(newer, WHO[0], 4), NOW + 40)


def test_a_dead_peers_pulses_sent_again_deceive_newcomers_alone_and_not_for_long() -> None:
    """Somebody has kept each pulse of the last hour, and sends them in the order they came."""
    data, dies = living(), NOW + 10 * MOST_PULSES
    knows, newcomer = made(), made()
    kept = [beat(data, WHO[0], number) for number in range(MOST_PULSES + 1)]
    for number, one in enumerate(kept):
        knows.merge(one, NOW + 10 * number)
    believed = dies
    for now in np.arange(dies + LIFETIME, dies + SKEW + MOST_LIFETIME, 10).tolist():
        for one in kept:
            try:
                assert knows.merge(one, now) is None
                is_new = newcomer.merge(one, now)
            except RecordError:
                continue  # too old
            if is_new:
                break
        assert not knows.live(now)
        believed = now if newcomer.live(now) else believed
    assert dies < believed <= dies + SKEW + 2 * LIFETIME


def test_a_member_that_is_barred_lives_no_longer() -> None:
    barred = set[Peer]()

    class Fence:
        def check(self, said: Announcement, now: float) -> None:
            if said.peer in barred:
                raise RecordError("token: it has expired")

    found, data = Directory(SWARM, lambda: RULES, admission=cast(Admission, Fence())), living()
    found.merge(data, NOW)
    assert found.merge(beat(data, WHO[0], 1), NOW + 10)
    barred.add(PEERS[0])
    with pytest.raises(RecordError, match="token"):
        found.merge(beat(data, WHO[0], 2), NOW + 20)
    assert not found.live(NOW + 40)


def test_the_age_of_a_record_is_that_of_its_pulse() -> None:
    data = living(now=NOW)
    with pytest.raises(RecordError, match="a replay of an old one"):
        made().merge(data, NOW + SKEW + LIFETIME + 1)
    last = beat(data, WHO[0], MOST_PULSES)
    assert made().merge(last, NOW + 10 * MOST_PULSES + SKEW + LIFETIME)
    with pytest.raises(RecordError, match="ahead of this machine's clock"):
        made().merge(last, NOW + 10 * MOST_PULSES - SKEW - 1)
    found = made()
    found.merge(data, NOW)
    with pytest.raises(RecordError, match="a replay of an old one"):
        found.merge(beat(data, WHO[0], 1), NOW + 11 + SKEW + LIFETIME)


@pytest.mark.parametrize("skew", [-1000, 0, 1000])
def test_a_pulse_that_was_due_since_ends_a_doubt(skew: int) -> None:
    found, data = made(), living(now=NOW + skew, lifetime=300)
    found.merge(beat(data, WHO[0], 1), NOW + 10)
    found.suspect(PEERS[0], NOW + 25)
    found.merge(beat(data, WHO[0], 2), NOW + 25.5)  # this one was only late
    assert found.suspected(PEERS[0], NOW + 25.6)
    found.merge(beat(data, WHO[0], 3), NOW + 25.7)
    assert not found.suspected(PEERS[0], NOW + 25.8)


def short(data: bytes) -> bytes:
    """Return the short pulse of a storage peer's record."""
    (found,) = apart(batch(bucket_of(said_in(data).peer), [bare(data)]))
    return found


def test_a_short_pulse_prolongs_the_record_whose_chain_it_continues() -> None:
    found, data = made(), living()
    found.merge(data, NOW)
    shown = beat(data, WHO[0], 2)
    assert found.merge(short(shown), NOW + 20) == SignOfLife(said_in(data), is_new=False)
    for again in (shown, beat(data, WHO[0], 1), data):
        assert found.merge(short(again), NOW + 25) is None
    assert found.records(NOW + 49) == [shown]
    assert not found.live(NOW + 50)
    assert found.merge(short(beat(data, WHO[0], 2 + 13)), NOW + 30) is None  # not even hashed
    with pytest.raises(VainError, match="number 3 continues none of 1 records"):
        found.merge(short(beat(data, WHO[0], 3, b"another seed")), NOW + 30)
    assert (found.strange, found.refused, found.strange_buckets) == (0, 0, set())


def test_of_records_that_begin_alike_a_short_pulse_prolongs_the_right_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record_ids, "beginning", lambda bucket, record_id: b"same")
    monkeypatch.setattr(entry, "beginning", lambda bucket, record_id: b"")
    monkeypatch.setattr(RecordIds, "rows", lambda self, short: self._alike.get(b"same", []))
    found, records = made(), [living(who) for who in WHO]
    for data in records:
        found.merge(data, NOW)
    for data, who in zip(records, WHO, strict=True):
        assert found.merge(short(beat(data, who, 2)), NOW + 20)
    assert found.alive(NOW + 49) == set(PEERS)


def test_a_short_pulse_of_a_record_that_is_not_known_names_its_bucket() -> None:
    found, data, newer = made(), living(), living(state="draining")
    assert found.merge(short(beat(data, WHO[0], 1)), NOW) is None
    assert found.strange_buckets == {bucket_of(PEERS[0])}
    found.strange_buckets.clear()
    for one in (data, newer):
        found.merge(one, NOW)
    assert found.merge(short(beat(data, WHO[0], 1)), NOW + 10) is None
    assert found.strange_buckets == set()  # nodes that have got the newer one late still tell of it
    assert not found.live(NOW + 30)


def test_a_patch_of_a_known_record_is_as_good_as_the_next_record() -> None:
    found, data, newer = made(), living(), living(state="draining")
    patch = made_patch(3, data, newer)
    assert found.merge(patch, NOW) is None
    assert found.strange_buckets == {3}
    found.merge(data, NOW)
    assert found.merge(patch, NOW + 1) == SignOfLife(said_in(newer), is_new=True)
    assert found.records(NOW + 1) == [newer]
    assert found.merge(patch, NOW + 2) is None
    assert found.refused == 0
    next_one = made_patch(3, newer, living(sequence=10**9))
    wrong = {
        "signature": next_one[:50] + bytes(8) + next_one[58:],
        "patch: Input data was truncated": next_one[:-1],
        "patch: it makes no newer record": made_patch(3, newer, newer),
    }
    for why, one in wrong.items():
        with pytest.raises(ForgedError, match=why):
            found.merge(one, NOW + 3)
    assert found.refused == len(wrong)
    assert found.records(NOW + 3) == [newer]


def test_who_is_overdue_has_shown_nothing_for_a_third_of_a_lifetime() -> None:
    found, data = made(), living()
    found.merge(data, NOW)
    found.merge(living(WHO[1], lifetime=90), NOW)
    found.merge(living(WHO[2], state="left"), NOW)
    assert found.overdue("storage", NOW + 9.9, NOW + 15) == []
    assert found.overdue("storage", NOW + 10, NOW + 15) == [PEERS[0]]
    assert found.overdue("compute", NOW + 10, NOW + 15) == []
    assert found.overdue("storage", NOW + 30, NOW + 29) == PEERS[:2]
    assert found.overdue("storage", NOW + 30, NOW + 30) == [PEERS[1]]
    found.merge(beat(data, WHO[0], 1), NOW + 31)
    assert found.overdue("storage", NOW + 30, NOW + 31) == [PEERS[1]]
