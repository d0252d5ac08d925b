"""Addresses of known peers, in a file that may be anything."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from giaann_p2p.node.acquaintances import MOST_PEERS, Acquaintances
from giaann_p2p.swarm.record import Announcement
from tests.unit.node.helpers import Town, identity, play
from tests.unit.node.test_lookout import announcement


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
    assert set(known.addresses[:2]) == {address(2), address(4)}  # who is there comes first
    assert sorted(known.addresses) == [address(n) for n in (1, 2, 3, 4)]
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
    for first in range(1, 200, 20):
        known.note(there(*range(first, first + 20)))
    assert len(known.addresses) == MOST_PEERS
    assert set(there(199)[0].addresses) <= set(known.addresses)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[" * 10_000,
        b'{"format": 1}',
        b'{"format": 2, "peers": []}',
        b'{"format": 1, "peers": [["/ip4/10.0.0.1/tcp/1/p2p/x"]], "more": 1}',
        b'{"format": 1, "peers": []}' + b" " * (1 << 18),
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


def test_a_disk_that_refuses_does_no_harm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    known = Acquaintances(tmp_path / "nowhere" / "peers.json")
    known.note(there(1))
    known.write()
    assert "known peers are not noted down" in caplog.text


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
        await town.until(lambda: "2 storage peers are there" in repr(first.node.lookout))
        await asyncio.sleep(0)
        await first.die()
        assert sorted(Acquaintances(tmp_path / "peers.json").addresses) == [address(2), address(3)]
        first.come_back()

    play(story)
