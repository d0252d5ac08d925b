"""Addresses of known peers, in a file that may be anything."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from giaann_p2p.node.members.acquaintances import MOST_FIRST, MOST_PEERS, Acquaintances
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.record import Announcement
from tests.unit.node.helpers import Town, identity, play
from tests.unit.node.members.test_lookout import announcement


def address(number: int) -> str:
    return f"/ip4/10.0.0.{number}/tcp/4100/p2p/x"


def there(*numbers: int) -> list[Announcement]:
    return [
        msgspec.structs.replace(announcement(identity(number)), addresses=(address(number),))
        for number in numbers
    ]


def test_who_was_there_is_known_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "peers.json"
    known = Acquaintances(file)
    assert known.addresses == []
    assert known.note(there(1, 2, 3))
    assert not known.note(there(3, 2, 1))
    known.write()
    assert sorted(Acquaintances(file).addresses) == [address(1), address(2), address(3)]
    assert known.note(there(4, 2))
    assert set(known.addresses[:3]) == {address(n) for n in (1, 2, 3)}  # who is known longest
    assert known.addresses[3:] == [address(4)]
    assert not known.note(there(4))
    known.write()
    assert Acquaintances(file).addresses == known.addresses
    assert [path.name for path in tmp_path.iterdir()] == ["peers.json"]


def test_a_sequence_is_never_noted_to_be_less_than_it_was(tmp_path: Path) -> None:
    file = tmp_path / "peers.json"
    known = Acquaintances(file)
    assert known.sequence == 0
    last, noted = 1_800_000_000_000, 0
    for _ in range(500):
        last += 60_000
        if known.note([], last):
            noted += 1
            known.write()
        assert Acquaintances(file).sequence > last
    assert noted <= 500 / 30 + 1
    assert not known.note([], 5)
    assert Acquaintances(file).sequence > last


def test_it_has_its_bounds(tmp_path: Path) -> None:
    known = Acquaintances(tmp_path / "peers.json")
    known.note(there(*range(1, 21)))
    before = known.addresses
    for first in range(1, 200, 20):
        known.note(there(*range(first, first + 20)))
    assert len(known.addresses) == MOST_PEERS
    assert known.addresses[:20] == before
    assert set(there(199)[0].addresses) <= set(known.addresses)


def strangers(count: int) -> list[Announcement]:
    """Return the records of strangers whose names come before all others."""
    return [
        msgspec.structs.replace(one, peer=Peer(number.to_bytes(32, "big")))
        for number, one in enumerate(there(*[200] * count))
    ]


def test_strangers_in_any_number_take_no_place_of_who_is_known_and_there(tmp_path: Path) -> None:
    known = Acquaintances(tmp_path / "peers.json")
    friends = there(*range(1, MOST_PEERS - 9))
    known.note(friends)
    for _ in range(5):
        known.note([*strangers(1000), *friends])
        known.write()
        known = Acquaintances(tmp_path / "peers.json")
        assert {one.addresses[0] for one in friends} < set(known.addresses)
        assert known.addresses.count(address(200)) == MOST_PEERS - len(friends)


def test_half_of_the_places_are_for_good_those_of_who_came_first(tmp_path: Path) -> None:
    known = Acquaintances(tmp_path / "peers.json")
    known.note(there(*range(1, MOST_FIRST + 1)))
    known.note(there(*range(101, MOST_FIRST + 101)))
    for _ in range(5):
        known.note(strangers(1000))
        assert known.addresses[:MOST_FIRST] != known.addresses[MOST_FIRST:]
        assert set(known.addresses[:MOST_FIRST]) == {address(n + 1) for n in range(MOST_FIRST)}
        assert set(known.addresses[MOST_FIRST:]) == {address(200)}


def test_nobody_takes_anothers_place_by_naming_its_addresses(tmp_path: Path) -> None:
    known = Acquaintances(tmp_path / "peers.json")
    known.note(there(1, 2))
    thief = strangers(1)[0]
    known.note([msgspec.structs.replace(thief, addresses=(address(1), address(9))), *there(2)])
    known.note([msgspec.structs.replace(thief, addresses=(address(9),)), *there(2)])
    assert sorted(known.addresses) == [address(1), address(2), address(9)]


def test_who_moves_is_known_where_it_is_now(tmp_path: Path) -> None:
    known = Acquaintances(tmp_path / "peers.json")
    known.note(there(1, 2))
    known.write()
    known = Acquaintances(tmp_path / "peers.json")
    assert known.note([msgspec.structs.replace(there(1)[0], addresses=(address(7),))])
    assert sorted(known.addresses) == [address(2), address(7)]


def test_of_two_records_of_a_peer_that_of_its_storage_counts_and_no_order_is_ones_choice(
    tmp_path: Path,
) -> None:
    (one,) = there(1)
    other = msgspec.structs.replace(one, role="compute", addresses=(address(3),))
    kept = set()
    for number in range(20):
        known = Acquaintances(tmp_path / f"{number}.json")
        known.note([other, one])
        assert known.addresses == [address(1)]
        known.note([*there(*range(1, 200))])
        kept.add(frozenset(known.addresses))
    assert len(kept) > 10


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[" * 10_000,
        b'{"format": 1}',
        b'{"format": 2, "peers": []}',
        b'{"format": 1, "peers": [["/ip4/10.0.0.1/tcp/1/p2p/x"]], "more": 1}',
        b'{"format": 1, "peers": []}' + b" " * (1 << 20),
    ],
)
def test_a_file_that_is_something_else_is_told_of_and_left(
    data: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "peers.json"
    file.write_bytes(data)
    assert Acquaintances(file).addresses == []
    assert str(file) in caplog.text


def test_of_a_file_only_what_can_be_an_address_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "peers.json"
    file.write_bytes(
        msgspec.json.encode({"format": 1, "peers": [["; rm -rf /", address(1)], ["x" * 999]]})
    )
    assert Acquaintances(file).addresses == [address(1)]


def test_a_file_without_names_is_of_an_earlier_release(tmp_path: Path) -> None:
    file = tmp_path / "peers.json"
    peers = [[address(number)] for number in (3, 1, 2)]
    file.write_bytes(msgspec.json.encode({"format": 1, "peers": peers}))
    known = Acquaintances(file)
    assert known.addresses == [address(3), address(1), address(2)]
    assert known.note(there(1, 4))  # who was one of them has a name now
    assert sorted(known.addresses) == [address(number) for number in (1, 2, 3, 4)]
    known.write()
    assert Acquaintances(file).addresses == known.addresses


def test_a_disk_that_refuses_does_no_harm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    known = Acquaintances(tmp_path / "nowhere" / "peers.json")
    known.note(there(1))
    known.write()
    assert "the list of known peers could not be saved" in caplog.text


def test_a_storage_peer_notes_down_whom_it_meets(tmp_path: Path) -> None:
    async def story(town: Town) -> None:
        known = Acquaintances(tmp_path / "peers.json")
        for _ in range(3):
            town.add()
        meets = asyncio.ensure_future(known.run(town.houses[0].node.lookout))
        await asyncio.sleep(130)
        assert sorted(Acquaintances(tmp_path / "peers.json").addresses) == [address(2), address(3)]
        meets.cancel()
        await asyncio.gather(meets, return_exceptions=True)

    play(story)


def test_who_came_first_soon_knows_those_who_came_then(tmp_path: Path) -> None:
    async def story(town: Town) -> None:
        first = town.add(acquaintances=tmp_path / "peers.json")
        await asyncio.sleep(1)
        town.add()
        town.add()
        await town.until(lambda: "2 live storage peers" in repr(first.node.lookout))
        await asyncio.sleep(0)
        await first.die()
        assert sorted(Acquaintances(tmp_path / "peers.json").addresses) == [address(2), address(3)]
        first.come_back()

    play(story)
