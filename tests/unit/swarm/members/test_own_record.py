"""What a peer signs anew, and what it continues by a pulse."""

import msgspec
import pytest

from giaann_p2p.swarm.members.capacity import level
from giaann_p2p.swarm.members.own_record import OwnRecord, is_news
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.pulse import MOST_PULSES, PULSE_BYTES, PULSE_SECONDS, split
from giaann_p2p.swarm.wire.record import Announcement, Load, Missing, read
from giaann_p2p.swarm.wire.shardset import packed
from tests.helpers_swarm import shards

ME = Identity.from_seed(bytes(32))
SWARM, RULES, NOW = bytes(range(32)), Rules(8), 1_800_000_000
SAID = Announcement(
    swarm_id=SWARM,
    peer=ME.peer,
    role="storage",
    incarnation=1,
    sequence=NOW * 1000,
    issued=NOW,
    capacity=1 << 30,
    used=5,
    ready=packed(shards(1), 8),
    load=Load(4, 10, 0, 1000),
)


def said(**changes: object) -> Announcement:
    changed: Announcement = msgspec.structs.replace(SAID, **changes)
    return changed


def own() -> OwnRecord:
    return OwnRecord(ME, b"secret")


def test_nothing_new_is_told_by_pulses_that_others_believe() -> None:
    mine = own()
    assert mine.continued(SAID, NOW) is None
    first = mine.signed(SAID)
    assert split(first)[0].number == 0
    found = read(first, NOW, SWARM, RULES)
    assert msgspec.structs.replace(found, anchor=SAID.anchor) == SAID
    for number in range(1, MOST_PULSES + 1):
        now = NOW + PULSE_SECONDS * number + 0.4
        data = mine.continued(said(issued=int(now), sequence=int(1000 * now)), now)
        assert data is not None
        assert split(data)[0].number == number
        assert data[PULSE_BYTES:] == first[PULSE_BYTES:]
        assert read(data, now, SWARM, RULES) == found
    assert mine.continued(SAID, now + PULSE_SECONDS) is None  # the chain is used up
    assert repr(mine) == f"<OwnRecord: {SAID}, pulse {MOST_PULSES}>"


def test_each_record_has_a_chain_of_its_own() -> None:
    mine, other = own(), OwnRecord(ME, b"another secret")
    later = said(sequence=SAID.sequence + 1)
    anchors = {split(data)[0] for data in (mine.signed(SAID), mine.signed(later))}
    assert len(anchors | {split(other.signed(SAID))[0]}) == 3
    data = mine.continued(later, NOW + 10)
    assert data is not None
    assert read(data, NOW, SWARM, RULES).sequence == later.sequence


def test_a_pulse_follows_the_clock_and_is_a_step_ahead_at_most() -> None:
    mine = own()
    mine.signed(SAID)
    shown = [mine.continued(SAID, NOW + after) for after in (3, 7, 14, 55, 55, 55)]
    numbers = [split(data)[0].number if data else None for data in shown]
    assert numbers == [1, None, 2, 5, 6, None]
    assert mine.continued(SAID, NOW - 100) is None  # the clock was set back
    assert mine.continued(SAID, NOW + PULSE_SECONDS * (MOST_PULSES + 1)) is None


@pytest.mark.parametrize(
    ("changes", "news"),
    [
        ({}, False),
        ({"issued": NOW + 10, "sequence": 9, "anchor": b"twelve bytes"}, False),
        ({"state": "draining"}, True),
        ({"used": 6}, True),
        ({"capacity": 7}, True),
        ({"ready": packed(shards(1, 2), 8)}, True),
        ({"syncing": packed(shards(2), 8)}, True),
        ({"cold": packed(shards(2), 8)}, True),
        ({"missing": Missing(seen=1)}, True),
        ({"addresses": ("/ip4/1.2.3.4/tcp/1/p2p/Q",)}, True),
        ({"token": b"t"}, True),
        ({"revoked": 1}, True),
        ({"durable": False}, True),
        ({"incarnation": 2}, True),
        ({"lifetime": 60}, True),
        ({"load": Load(4, 10, 0, 1000)}, False),
        ({"load": Load(7, 19, 0, 1999)}, False),
        ({"load": Load(3, 6, 0, 501)}, False),
        ({"load": Load(8, 10, 0, 1000)}, True),
        ({"load": Load(4, 5, 0, 1000)}, True),
        ({"load": Load(4, 10, 1, 1000)}, True),
        ({"load": Load(4, 10, 0, 0)}, True),
    ],
)
def test_what_is_news(changes: dict[str, object], news: bool) -> None:
    assert is_news(SAID, said(**changes)) == news
    mine = own()
    mine.signed(SAID)
    assert (mine.continued(said(**changes), NOW + 10) is None) == news


FILLING = said(used=800_000_000)


@pytest.mark.parametrize(
    ("changes", "news"),
    [
        ({"used": 899_999_999}, False),
        ({"used": 900_000_000}, True),
        ({"used": 700_000_001}, False),
        ({"used": 700_000_000}, True),
        ({"used": 800_000_001, "issued": NOW + 59}, False),
        ({"used": 800_000_001, "issued": NOW + 60}, True),
        ({"used": 800_000_000, "issued": NOW + 60}, False),
    ],
)
def test_memory_in_use_is_news_if_much_has_changed_or_a_minute_ago(
    changes: dict[str, object], news: bool
) -> None:
    assert is_news(FILLING, msgspec.structs.replace(FILLING, **changes)) == news


def test_a_peer_that_becomes_nearly_full_or_full_says_so_at_once() -> None:
    one = said(capacity=1_000_000, used=849_999)
    assert level(849_999, 1_000_000) != level(850_000, 1_000_000) != level(1_000_000, 1_000_000)
    assert is_news(one, msgspec.structs.replace(one, used=850_000))
    nearly = msgspec.structs.replace(one, used=900_000)
    assert not is_news(nearly, msgspec.structs.replace(nearly, used=999_999))
    assert is_news(nearly, msgspec.structs.replace(nearly, used=1_000_000))
    assert is_news(msgspec.structs.replace(one, used=0), msgspec.structs.replace(one, used=1))
