"""A clock that is wrong is told by others' records, and by nothing that a stranger could forge."""

import msgspec
import pytest

from giaann_p2p.swarm.members.clock_fault import clock_fault
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.pulse import MOST_PULSES, PULSE_BYTES, PULSE_SECONDS, pulse_of
from giaann_p2p.swarm.wire.record import SKEW, Announcement, signed, signed_as
from tests.unit.swarm.helpers_pulses import SEED, beat

NOW, SWARM, RULES = 1_800_000_000, bytes(32), Rules(256)
ME, *OTHERS = (Identity.from_seed(bytes([number]) * 32) for number in range(1, 5))


def record(who: Identity, ahead: float, by: Identity | None = None) -> bytes:
    said = Announcement(
        swarm_id=SWARM,
        peer=who.peer,
        role="storage",
        incarnation=1,
        sequence=1,
        issued=NOW + int(ahead),
        anchor=pulse_of(SEED, who.peer, 0).link,
    )
    return signed(who, said) if by is None else signed_as(by, said)


def fault(*records: bytes) -> str:
    return clock_fault(records, ME.peer, NOW, SWARM, RULES)


@pytest.mark.parametrize(("ahead", "word"), [(7200, "behind"), (-9000, "ahead of")])
def test_a_clock_that_fits_nobodys_record_is_wrong(ahead: int, word: str) -> None:
    by = f"{abs(ahead):,} s {word} that of"
    assert f"{by} all 3 other peers: set it" in fault(*[record(one, ahead) for one in OTHERS])
    assert f"{by} the only other peer: set it" in fault(record(OTHERS[0], ahead))


def test_one_record_that_fits_is_enough_whatever_others_bring() -> None:
    old = [record(one, -2 * SKEW - 600) for one in OTHERS[1:]]
    assert fault(*old)
    assert not fault(*old, record(OTHERS[0], SKEW - 1))
    assert not fault()


def test_ones_own_record_says_nothing_of_the_clock() -> None:
    assert not fault(record(ME, 2 * SKEW))
    assert fault(record(ME, 0), record(OTHERS[0], 2 * SKEW))


def test_what_nobody_signed_says_nothing() -> None:
    forged = record(OTHERS[0], 2 * SKEW, by=OTHERS[1])
    assert not fault(forged, b"", b"rubbish" * 20)
    body = msgspec.msgpack.encode([1, 2])
    assert not fault(bytes(PULSE_BYTES) + OTHERS[0].sign("record", body) + body)


def test_the_date_of_a_record_is_that_of_its_pulse() -> None:
    one, lives = OTHERS[0], PULSE_SECONDS * MOST_PULSES
    data = record(one, -SKEW - lives)
    last = beat(data, one, MOST_PULSES)
    assert f"{SKEW + lives:,} s ahead of that of the only other peer" in fault(data)
    assert not fault(last)
    assert not fault(data, last)
    wrong = last[:2] + bytes(PULSE_BYTES - 2) + data[PULSE_BYTES:]
    assert not fault(wrong)
    assert fault(data, wrong)  # it does not hide that the clock is wrong


def test_a_forged_record_hides_no_wrong_clock() -> None:
    forged = record(OTHERS[0], 0, by=OTHERS[1])
    assert fault(forged, record(OTHERS[2], 2 * SKEW))
