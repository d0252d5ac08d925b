"""Announcements: what a peer signs is read, and nothing else is."""

from typing import Any

import msgspec
import numpy as np
import pytest

from giaann_p2p.errors import RecordError, UsageError
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.swarm.wire.identity import Identity, Peer, name_of, to_text
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.pulse import PULSE_BYTES
from giaann_p2p.swarm.wire.record import (
    MOST_LIFETIME,
    MOST_NAMED,
    SKEW,
    Announcement,
    Load,
    Missing,
    Naming,
    accusations_of,
    bucket_of,
    namings,
    next_sequence,
    place_of,
    read,
    sets_of,
    signed,
    unproven,
)
from giaann_p2p.swarm.wire.shardset import most_bytes, packed, unpacked

ONE, OTHER = (Identity.from_seed(bytes([n]) * 32) for n in (1, 2))
SWARM, RULES, NOW = bytes(range(32)), Rules(256), 1_800_000_000
ADDRESS = "/ip4/203.0.113.7/tcp/4100/p2p/12D3KooWBmAwcd4PJNJvfV89HwE48nwkRmAgo8Vy3uQEyNNHBox2"
READY, SYNCING = np.arange(0, 100, 7, np.uint16), np.arange(1, 256, dtype=np.uint16)
NONE = packed(np.empty(0, np.uint16), 256)
PEERS = [Peer(bytes([number]) * 32) for number in range(9)]
NINE = tuple(Naming(peer, NONE) for peer in PEERS)
FULL = Announcement(
    swarm_id=SWARM,
    peer=ONE.peer,
    role="storage",
    state="joining",
    incarnation=(1 << 64) - 1,
    sequence=(1 << 64) - 1,
    issued=NOW,
    lifetime=MOST_LIFETIME,
    capacity=1 << 47,
    used=1,
    ready=packed(READY, 256),
    syncing=packed(SYNCING, 256),
    load=Load(1, 2, 3, (1 << 32) - 1),
    addresses=(ADDRESS,) * 8,
    wrong=(Naming(Identity.from_seed(bytes([3]) * 32).peer, packed(READY, 256)),),
)
PLAIN = Announcement(
    swarm_id=SWARM, peer=ONE.peer, role="storage", incarnation=1, sequence=1, issued=NOW
)
FIELDS = list(Announcement.__struct_fields__)


def changed(**changes: object) -> Announcement:
    return msgspec.structs.replace(FULL, **changes)


def unchecked(announcement: Announcement, by: Identity = ONE) -> bytes:
    """Sign what nobody should."""
    return framed(msgspec.msgpack.encode(announcement), by)


def framed(body: bytes, by: Identity = ONE, kind: str = "record") -> bytes:
    """Sign a body, and put the first pulse of no chain in front."""
    return bytes(PULSE_BYTES) + by.sign(kind, body) + body


def body_with(**changes: object) -> bytes:
    """Sign fields that are not even an announcement."""
    fields = msgspec.msgpack.decode(msgspec.msgpack.encode(FULL))
    for name, value in changes.items():
        fields[FIELDS.index(name)] = value
    return framed(msgspec.msgpack.encode(fields))


@pytest.mark.parametrize(
    "announcement",
    [
        FULL,
        PLAIN,
        msgspec.structs.replace(PLAIN, role="compute", device="NVIDIA H100, 78 GiB", slots=3),
    ],
)
def test_records_come_back(announcement: Announcement) -> None:
    data = signed(ONE, announcement)
    assert read(data, NOW, SWARM, RULES) == announcement
    assert read(data, NOW, SWARM, RULES, ONE.peer) == announcement


def test_the_shards_that_a_record_names() -> None:
    sets = sets_of(FULL, RULES)
    assert np.array_equal(sets.ready, READY)
    assert np.array_equal(sets.syncing, SYNCING)
    assert len(sets_of(PLAIN, RULES).ready) == 0


def test_a_small_record_is_small() -> None:
    assert len(signed(ONE, PLAIN)) < 220


def test_only_the_peer_itself_can_write_its_record() -> None:
    with pytest.raises(UsageError, match=f"cannot sign for {name_of(ONE.peer)}"):
        signed(OTHER, FULL)
    with pytest.raises(RecordError, match=f"signature: {name_of(ONE.peer)} did not sign"):
        read(unchecked(FULL, OTHER), NOW, SWARM, RULES)
    with pytest.raises(RecordError, match=f"the record is of {name_of(ONE.peer)}, not"):
        read(signed(ONE, FULL), NOW, SWARM, RULES, OTHER.peer)
    data = bytearray(signed(ONE, FULL))
    data[PULSE_BYTES] ^= 1
    with pytest.raises(RecordError, match="signature"):
        read(bytes(data), NOW, SWARM, RULES)
    body = msgspec.msgpack.encode(FULL)
    with pytest.raises(RecordError, match="signature"):  # signed as another thing
        read(framed(body, kind="manifest"), NOW, SWARM, RULES)


def test_a_record_is_of_one_swarm() -> None:
    swarm = bytes(32)
    with pytest.raises(RecordError, match=f"swarm_id: .* to the swarm {to_text(SWARM)}"):
        read(signed(ONE, FULL), NOW, swarm, RULES)


@pytest.mark.parametrize("skew", [-SKEW - MOST_LIFETIME, -SKEW, -100, 0, 100, SKEW])
def test_clocks_may_differ(skew: int) -> None:
    assert read(signed(ONE, changed(issued=NOW + skew)), NOW, SWARM, RULES)


@pytest.mark.parametrize(
    ("skew", "why"),
    [
        (SKEW + 1, "issued: 3,601 s ahead of this machine's clock; .* clocks is wrong"),
        (-SKEW - MOST_LIFETIME - 1, "issued: 3,901 s behind this machine's clock; .* a replay"),
        (-NOW, "behind"),
    ],
)
def test_old_records_and_wrong_clocks_are_refused(skew: int, why: str) -> None:
    with pytest.raises(RecordError, match=why):
        read(signed(ONE, changed(issued=NOW + skew)), NOW, SWARM, RULES)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"protocol": 7}, "protocol: the peer speaks 7, this one 8"),
        ({"lifetime": MOST_LIFETIME + 1}, "Expected `int` <= 300 - at `lifetime`"),
        ({"lifetime": 0}, "Expected `int` >= 1 - at `lifetime`"),
        ({"lifetime": 30.5}, "Expected `int`, got `float` - at `lifetime`"),
        ({"swarm_id": b"short"}, "at `swarm_id`"),
        ({"peer": ONE.peer + b"x"}, "at `peer`"),
        ({"role": "bootstrap"}, "Invalid enum value 'bootstrap' - at `role`"),
        ({"state": "dead"}, "at `state`"),
        ({"sequence": -1}, "at `sequence`"),
        ({"incarnation": -1}, "at `incarnation`"),
        ({"issued": -1}, "at `issued`"),
        ({"issued": float("nan")}, "at `issued`"),
        ({"capacity": (1 << 47) + 1}, "at `capacity`"),
        ({"used": "much"}, "at `used`"),
        ({"load": [1, 2, 3, 1 << 32]}, "Expected `int` .* - at `load\\[3\\]`"),
        ({"load": [1, 2, 3, 4, 5]}, "at `load`"),
        ({"addresses": [ADDRESS] * 9}, "Expected `array` of length <= 8 - at `addresses`"),
        ({"addresses": ["/dns4/" + "x" * 255]}, "at `addresses\\[0\\]`"),
        ({"addresses": ["/dns4/x\x1b[2J/p2p/Q"]}, "addresses: .* does not consist of parts"),
        ({"addresses": ["/ip4/1.2.3.4/tcp/1"]}, "addresses: .* names no peer"),
        ({"device": "x" * 81}, "at `device`"),
        ({"device": "a\nb"}, "device: 'a\\\\nb' has unprintable characters"),
        ({"device": "cpu"}, "role: the record of a storage peer"),
        ({"slots": 1}, "role: the record of a storage peer"),
        ({"role": "compute"}, "role: the record of a compute peer"),
        ({"ready": b"x" * 16000}, "a record has 79 to 15,685 bytes, not 1[67],"),
        ({"ready": b""}, "ready: a set of shards has 1 to 33 bytes, not 0"),
        ({"syncing": packed(np.array([256], np.uint16), 512)}, "syncing: .* shard 256, but"),
        ({"wrong": (Naming(OTHER.peer, b"\2"),)}, "wrong: .* has a bitmap of 0 bytes"),
        ({"wrong": (Naming(ONE.peer, NONE),)}, "wrong: the accused must be other peers"),
        ({"wrong": (Naming(OTHER.peer, NONE),) * 2}, "wrong: the accused .* ascending, each once"),
        (
            {"wrong": tuple(Naming(Peer(bytes([n]) * 32), NONE) for n in range(9))},
            "at `wrong`",
        ),
    ],
)
def test_the_wrong_field_is_named(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(RecordError, match=why):
        read(body_with(**changes), NOW, SWARM, RULES)


@pytest.mark.parametrize("field", ["capacity", "used", "ready", "syncing", "wrong"])
def test_a_compute_peer_holds_nothing(field: str) -> None:
    computes = msgspec.structs.replace(PLAIN, role="compute")
    some = msgspec.structs.replace(computes, **{field: getattr(FULL, field)})
    assert signed(ONE, computes)
    with pytest.raises(UsageError, match=r"would refuse this record: role: .* a compute peer"):
        signed(ONE, some)


def test_more_or_fewer_fields_are_refused() -> None:
    fields = msgspec.msgpack.decode(msgspec.msgpack.encode(FULL))
    for wrong in ([*fields, 1], fields[:5], [], {}, 1, "x"):
        body = msgspec.msgpack.encode(wrong)
        with pytest.raises(RecordError, match="not a record"):
            read(framed(body), NOW, SWARM, RULES)


@pytest.mark.parametrize("data", [b"", bytes(64), b"\xdd\xff\xff\xff\xff" * 20, b"\x91" * 4000])
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(RecordError):
        unproven(data, NOW, SWARM, RULES)


def test_the_largest_record_of_the_largest_swarm_can_be_read() -> None:
    count = 1 << 16
    half = packed(np.arange(0, count, 2, dtype=np.uint16), count)
    assert len(half) == most_bytes(count)
    long = "/dns4/" + "x" * 240 + "/p2p/Q1234"
    largest = changed(ready=half, syncing=half, addresses=(long,) * 8)
    data = signed(ONE, largest)
    assert read(data, NOW, SWARM, Rules(count)) == largest
    with pytest.raises(RecordError, match="not 18,"):
        read(data, NOW, SWARM, RULES)


@pytest.mark.parametrize("changes", [{"lifetime": 301}, {"addresses": ("x",)}, {"device": "\n"}])
def test_ones_own_mistakes_are_found_at_home(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="other peers would refuse this record"):
        signed(ONE, changed(**changes))


def test_sequences_only_grow() -> None:
    assert next_sequence(1.5) == 1500
    assert next_sequence(1.5, last=1499) == 1500
    assert next_sequence(1.5, last=1500) == 1501
    assert next_sequence(1.5, last=9000) == 9001


def test_peers_spread_over_the_buckets() -> None:
    peers = [Identity.from_seed(n.to_bytes(32, "big")).peer for n in range(800)]
    sizes = np.bincount([bucket_of(peer, 8) for peer in peers], minlength=8)
    assert len(sizes) == 8
    assert 60 < sizes.min() <= sizes.max() < 140
    assert {bucket_of(peer, 1) for peer in peers} == {0}
    assert bucket_of(Peer(b"\x07" + bytes(31))) == 7


def test_places_and_representations() -> None:
    assert place_of(SWARM, "storage", 3) == f"giaann/{to_text(SWARM)}/storage/3"
    assert place_of(SWARM, "compute", 0) == f"giaann/{to_text(SWARM)}/compute/0"
    assert repr(PLAIN) == f"<storage {name_of(ONE.peer)} active, 1>"
    assert PLAIN.key == (ONE.peer, "storage")


def test_who_is_wrong_of_most_shards_is_named_first_and_no_more_than_fit() -> None:
    layout = Layout(shards=1 << 14)
    wrong = {peer: np.arange(0, 900 * at, 9, np.uint16) for at, peer in enumerate(PEERS, 1)}
    named = namings(wrong, layout.shards)
    sizes = {one.peer: len(unpacked(one.shards, 1 << 14)) for one in named}
    assert list(sizes) == sorted(sizes)
    assert PEERS[-1] in sizes
    assert len(sizes) < MOST_NAMED
    assert sum(len(one.shards) for one in named) <= most_bytes(1 << 14)
    few = {peer: np.array([at], np.uint16) for at, peer in enumerate(PEERS)}
    assert [one.peer for one in namings(few, layout.shards)] == sorted(PEERS)[:MOST_NAMED]


def test_releases_that_know_no_editions_read_a_record_of_the_manifests_rules() -> None:
    body = signed(ONE, PLAIN)[PULSE_BYTES + 64 :]
    assert len(msgspec.msgpack.decode(body)) == len(FIELDS) - 2
    for number, fields in ((0, len(FIELDS) - 2), (7, len(FIELDS) - 1)):
        said = msgspec.structs.replace(PLAIN, edition=number)
        assert read(data := signed(ONE, said), NOW, SWARM, RULES) == said
        assert len(msgspec.msgpack.decode(data[PULSE_BYTES + 64 :])) == fields


def counted(number: int, **sets: Shards) -> Announcement:
    """Return a record whose sets are counted in another number of shards than the manifest's."""
    told = {name: packed(some, number) for name, some in sets.items()}
    missing = Missing(told.pop("missing", b"\0"), 9, 9)
    return changed(edition=1, counted=number, missing=missing, **told)


def halves(*numbers: int) -> Shards:
    """Return shards of 512; `n` and `n + 256` are the halves of shard `n` of 256."""
    return np.array(sorted(numbers), np.uint16)


def test_a_record_counts_in_shards_of_its_own() -> None:
    said = counted(512, ready=halves(1, 257, 300), syncing=halves(2), cold=halves(3))
    for reader in (RULES, Rules(512, founding_shards=256), Rules(2048, founding_shards=256)):
        assert read(signed(ONE, said), NOW, SWARM, reader) == said
    with pytest.raises(RecordError, match="counted: this swarm cannot have 512 shards"):
        read(signed(ONE, said), NOW, SWARM, Rules(1024))
    for number in (128, 500, 768):
        with pytest.raises(RecordError, match=f"counted: this swarm cannot have {number} shards"):
            read(signed(ONE, changed(counted=number)), NOW, SWARM, RULES)
    with pytest.raises(UsageError, match="must not claim capacity or shards"):
        signed(ONE, msgspec.structs.replace(PLAIN, role="compute", counted=512))


def test_a_peer_that_knows_the_last_edition_reads_whole_shards_of_half_ones() -> None:
    """Half a shard is neither served nor cold, but held; and its half that is missing is missing.

    Otherwise a reader would take rows for not learned, and a holder would drop the only other copy.
    """
    said = counted(
        512,
        ready=halves(1, 257, 2, 3),
        syncing=halves(259, 4, 260, 5),
        cold=halves(6, 262, 7),
        missing=halves(8, 9, 265),
    )
    sets = sets_of(said, RULES)
    assert sets.ready.tolist() == [1]
    assert sets.syncing.tolist() == [2, 3, 4, 5]
    assert sets.cold.tolist() == [6]
    assert sets.missing.tolist() == [8, 9]


def test_a_peer_that_knows_the_next_edition_reads_both_halves_of_whole_shards() -> None:
    said = changed(
        ready=packed(halves(1), 256), syncing=packed(halves(2), 256), cold=packed(halves(3), 256)
    )
    sets = sets_of(said, Rules(1024, founding_shards=256))
    assert sets.ready.tolist() == [1, 257, 513, 769]
    assert sets.syncing.tolist() == [2, 258, 514, 770]
    assert sets.cold.tolist() == [3, 259, 515, 771]
    assert sets.missing.tolist() == []


def test_a_replica_is_wrong_if_half_of_it_is() -> None:
    wrong = (Naming(PEERS[0], packed(halves(1, 2, 258), 512)),)
    said = counted(512, ready=halves(1))
    said = msgspec.structs.replace(said, wrong=wrong)
    assert accusations_of(said, Rules(512, founding_shards=256)) is said.wrong
    (one,) = accusations_of(said, RULES)
    assert (one.peer, unpacked(one.shards, 256).tolist()) == (PEERS[0], [1, 2])
    (one,) = accusations_of(said, Rules(1024, founding_shards=256))
    assert unpacked(one.shards, 1024).tolist() == [1, 2, 258, 513, 514, 770]


def test_a_record_of_many_more_shards_is_read_if_it_is_short() -> None:
    every_other = np.arange(0, 1 << 16, 2, dtype=np.uint16)
    few = counted(1 << 16, ready=every_other[:50], syncing=every_other[60:70])
    assert read(signed(ONE, few), NOW, SWARM, RULES) == few
    one_set = counted(1 << 16, ready=every_other)
    assert read(signed(ONE, one_set), NOW, SWARM, RULES) == one_set
    with pytest.raises(RecordError, match="a record has"):
        read(
            signed(
                ONE, counted(1 << 16, **dict.fromkeys(("ready", "syncing", "cold"), every_other))
            ),
            NOW,
            SWARM,
            RULES,
        )
    large = counted(1024, ready=np.arange(0, 1024, 2, dtype=np.uint16))
    assert read(signed(ONE, large), NOW, SWARM, RULES) == large


def test_a_record_of_very_many_more_shards_says_nothing_about_any() -> None:
    """Any stranger can sign one; to decode its sets would take a hundred times as long."""
    wrong = (Naming(PEERS[0], packed(halves(1), 1024)),)
    most = msgspec.structs.replace(counted(1024, ready=np.arange(1024)), wrong=wrong)
    assert len(sets_of(most, RULES).ready) == 256
    assert accusations_of(most, RULES)
    beyond = msgspec.structs.replace(counted(2048, ready=np.arange(2048)), wrong=wrong)
    assert read(signed(ONE, beyond), NOW, SWARM, RULES).edition == 1
    assert not any(len(some) for some in msgspec.structs.astuple(sets_of(beyond, RULES)))
    assert not accusations_of(beyond, RULES)
    assert len(sets_of(beyond, Rules(512, founding_shards=256)).ready) == 512
