"""Patches: they make a record into its next, byte by byte, and nothing that was not signed."""

import random

import msgspec
import pytest

from giaann_p2p.errors import RecordError
from giaann_p2p.swarm.wire.identity import SIGNATURE_BYTES, Identity
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.patch import applied, base_of, is_patch, made
from giaann_p2p.swarm.wire.pulse import (
    PULSE_BYTES,
    bare,
    bucket_in,
    id_of,
    is_bare,
    is_short,
    joined,
    pulse_of,
    split,
)
from giaann_p2p.swarm.wire.record import FRONT_BYTES, Announcement, ForgedError, Load, read
from tests.unit.swarm.helpers_pulses import beat, chained

WHO = Identity.from_seed(bytes(32))
NOW, SWARM = 1_900_000_000, bytes(range(32))
PLAIN = Announcement(
    swarm_id=SWARM,
    peer=WHO.peer,
    role="storage",
    incarnation=1 << 63,
    sequence=1,
    issued=NOW,
    capacity=1 << 40,
    addresses=("/ip4/203.0.113.7/tcp/4100/p2p/x",) * 2,
)


def record(seed: bytes = b"twelve bytes", **changes: object) -> bytes:
    return chained(WHO, msgspec.structs.replace(PLAIN, **changes), seed)


OLD = record()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"load": Load(1, 2, 3, 4), "used": 12345},
        {"edition": 3},
        {"edition": 3, "counted": 16},
        {"addresses": (), "state": "draining", "ready": b"\0"},
    ],
)
def test_a_patch_makes_the_old_record_into_the_new_and_the_new_into_the_old(
    changes: dict[str, object],
) -> None:
    new = record(b"another seed", sequence=1 << 40, issued=NOW + 1200, **changes)
    for one, other in ((OLD, new), (new, OLD), (OLD, OLD)):
        patch = made(15, one, other)
        assert (is_patch(patch), is_bare(patch), is_short(patch)) == (True, False, False)
        assert bucket_in(patch) == 15
        assert base_of(patch) == id_of(one[PULSE_BYTES:])
        assert applied(patch, one[PULSE_BYTES:]) == other
        assert read(applied(patch, one[PULSE_BYTES:]), NOW, SWARM, Rules(8)).peer == WHO.peer


def test_at_rest_a_patch_takes_135_bytes() -> None:
    new = record(b"another seed", sequence=1 << 40, issued=NOW + 1200)
    assert len(made(0, OLD, new)) <= 135


def test_it_has_the_newest_pulse() -> None:
    shown = beat(OLD, WHO, 7)
    assert applied(made(0, OLD, shown), OLD[PULSE_BYTES:]) == shown


def test_what_no_node_would_send_is_refused_or_shows_by_its_signature() -> None:
    rng, new = random.Random(1), record(sequence=2)
    patch, old = made(0, OLD, new), OLD[PULSE_BYTES:]
    for _ in range(3000):
        at = rng.randrange(1 + 16, len(patch))
        wrong = [
            patch[:at],
            patch[:at] + bytes([rng.randrange(256)]) + patch[at + 1 :],
            patch[:at] + rng.randbytes(rng.randrange(30)),
        ]
        for one in wrong:
            try:
                found = applied(one, old)
                read(found, NOW, SWARM, Rules(8))
            except RecordError:
                continue
            assert found == new


def test_a_patch_that_changes_more_fields_than_a_record_has_is_forged() -> None:
    patch = made(0, OLD, record(sequence=2))
    front, count = patch[: 1 + 16 + FRONT_BYTES], 25
    for many, why in ((64, "is missing"), (65, "it changes 65 fields")):
        change = msgspec.msgpack.encode([count, {200 + at: 0 for at in range(many)}])
        with pytest.raises(ForgedError, match=why):
            applied(front + change, b"\0" * SIGNATURE_BYTES + b"\x90")


def test_records_and_pulses_are_no_patches() -> None:
    for other in (OLD, bare(OLD), b"", bytes([0x40]), bytes([0x80]) * 500):
        assert not is_patch(other)


def test_a_record_that_no_patch_makes_has_none() -> None:
    """Else whoever signs such a record could make readers take honest nodes for forgers."""
    _, record_of_it = split(record(sequence=2))
    body = record_of_it[SIGNATURE_BYTES:]
    fields = msgspec.msgpack.decode(body, type=list[msgspec.Raw])
    assert body[0] == 0xDC  # an array whose length takes two bytes; here it takes four
    longer = b"\xdd" + len(fields).to_bytes(4, "big") + b"".join(map(bytes, fields))
    new = joined(pulse_of(b"twelve bytes", WHO.peer, 0), WHO.sign("record", longer) + longer)
    assert read(new, NOW, SWARM, Rules(8)).sequence == 2
    assert made(3, OLD, new) == b""
