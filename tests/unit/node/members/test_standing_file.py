"""What a compute peer has seen of others outlives it, and no file keeps it from its work."""

import asyncio
import logging
from pathlib import Path

import pytest

from giaann_p2p.node.members.standing_file import StandingFile
from giaann_p2p.swarm.members.standing import DAY, MOST_BYTES, MOST_PEERS, NOTED_EVERY, Standing
from giaann_p2p.swarm.wire.identity import Peer
from tests.helpers_swarm import A, B, C
from tests.unit.node.helpers import Town, play
from tests.unit.node.training.helpers_compute import Workshop


def _book(file: StandingFile) -> Standing:
    book = Standing(A)
    file.restore(book)
    return book


def test_a_book_is_what_was_written_last(tmp_path: Path) -> None:
    file = StandingFile(tmp_path / "standing")
    assert len(_book(file)) == 0
    file.write(Standing(A, seen={B: DAY}).packed())
    file.write(Standing(A, seen={B: 2 * DAY, C: 60.0}).packed())
    book = _book(file)
    assert (book.seconds(B), book.seconds(C)) == (2 * DAY, 60.0)
    assert not book.has(C)


@pytest.mark.parametrize("found", [b"", b"\x93", b"\x91\x92\xa1a\xa1b", b"x" * (MOST_BYTES + 1)])
def test_what_cannot_be_read_is_logged_and_ignored(
    tmp_path: Path, found: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "standing").write_bytes(found)
    assert len(_book(StandingFile(tmp_path / "standing"))) == 0
    assert "the book of known peers cannot be read" in caplog.text


def test_a_folder_in_its_place_is_logged_and_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "standing").mkdir()
    file = StandingFile(tmp_path / "standing")
    assert len(_book(file)) == 0
    file.write(b"\x90")
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


def test_the_largest_book_can_be_read_again(tmp_path: Path) -> None:
    seen = {Peer(n.to_bytes(32, "big")): 1e6 * DAY for n in range(MOST_PEERS)}
    file = StandingFile(tmp_path / "standing")
    file.write(Standing(A, seen=seen).packed())
    assert len(_book(file)) == MOST_PEERS


def test_a_compute_peer_that_begins_anew_knows_who_stands(tmp_path: Path) -> None:
    async def story(town: Town) -> None:
        for _ in range(3):
            town.add()
        await town.until(town.settled)
        shop = Workshop(town, 100)
        await shop.end()  # one without a file
        shop.standing_file = StandingFile(tmp_path / "standing")
        shop.begin()
        await town.until((tmp_path / "standing").exists, within=2 * NOTED_EVERY)
        await asyncio.sleep(NOTED_EVERY + 60)
        await shop.end()
        shop.begin()
        newcomer = town.add()
        around = shop.node.lookout.view
        await town.until(lambda: around.directory.announcement(newcomer.me) is not None)
        old = [house.me for house in town.houses if house is not newcomer]
        assert [around.keeps(peer) for peer in old] == [True] * 3
        assert not around.keeps(newcomer.me)
        await shop.end()

    play(story)
