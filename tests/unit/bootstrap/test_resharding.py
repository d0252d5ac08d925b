"""The founder's bootstrap peer doubles the shards of real storage peers, in made-up time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bootstrap.node import BootstrapNode
from giaann_p2p.errors import DiskError
from giaann_p2p.net.hive.key_file import write_key_file
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.members import resharder
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.membership import TokenIssuer
from giaann_p2p.swarm.members import reshard_rule
from giaann_p2p.swarm.members.reshard_rule import LOOKS
from giaann_p2p.swarm.wire.edition import Edition
from tests.unit.node.helpers import EPOCH, LAYOUT, MANIFEST, Client, Town, identity, play

ME = identity(100)
SHARDS = LAYOUT.shards
EVERY, PAUSE = 3.0, 60.0
"""Seconds from look to look, and from edition to edition: less than usual."""
LONG = LOOKS * EVERY + PAUSE


class Boot:
    """A founder's bootstrap peer in a town."""

    def __init__(self, town: Town, folder: Path) -> None:
        self.town, self.issuer = town, TokenIssuer(folder)
        town.others.append(ME.peer)
        self.transport = town.transport(ME.peer)
        loop, membership = asyncio.get_running_loop(), self.issuer.membership
        clock = Clock(lambda: EPOCH + loop.time(), loop.time)
        keep = membership.keep_edition
        self.gate = Gate(MANIFEST, self.transport, clock=clock, keep_edition=keep)
        self.gate.recall_edition(membership.edition())
        context = Context(
            identity=ME,
            manifest=MANIFEST,
            transport=self.transport,
            board=town.board.view(ME.peer),
            gate=self.gate,
            clock=clock,
        )
        self.node = BootstrapNode(context, self.issuer)
        self.task = asyncio.create_task(self.node.run())

    async def counted(self, shards: int) -> None:
        """Return when all storage peers count so many shards."""
        houses = self.town.houses
        await self.town.until(lambda: {one.node.gate.rules().shards for one in houses} == {shards})

    async def close(self) -> None:
        await self.node.close()
        await self.task
        await self.transport.close()


Story = Callable[[Town, Boot], Awaitable[None]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(resharder, "EVERY", EVERY)
    monkeypatch.setattr(reshard_rule, "PAUSE", PAUSE)
    write_key_file(tmp_path / "founder.key", b"f" * 32)
    (tmp_path / "manifest.json").write_bytes(MANIFEST.to_bytes())
    return tmp_path


def told(story: Story, folder: Path) -> None:
    """Run a story with three storage peers and the bootstrap peer."""

    async def main(town: Town) -> None:
        boot = Boot(town, folder)
        for _ in range(3):
            town.add()
        await town.until(town.settled)
        await story(town, boot)
        await boot.close()

    play(main)


def test_shards_double_until_there_are_enough_and_nothing_is_lost(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "giaann.node")

    async def story(town: Town, boot: Boot) -> None:
        await Client(town).push_all(range(4))
        await boot.counted(2 * SHARDS)
        await boot.counted(4 * SHARDS)
        await town.until(town.settled)
        assert town.holds_what(range(4))
        await asyncio.sleep(2 * LONG)
        assert boot.issuer.editions.number == boot.gate.editions.number == 2
        assert boot.gate.rules().shards == 4 * SHARDS

    told(story, folder)
    assert [line for line in caplog.messages if "signed" in line] == [
        f"signed edition {number} of the swarm's rules: {2 * there} shards, because 3 storage "
        f"peers had {there} each"
        for number, there in ((1, SHARDS), (2, 2 * SHARDS))
    ]


def test_an_edition_that_was_signed_in_its_folder_is_sent_to_all(folder: Path) -> None:
    async def story(town: Town, boot: Boot) -> None:
        command = TokenIssuer(folder)
        edition = command.next_edition(chunk=128, shards=4 * SHARDS)
        assert edition is not None
        command.keep_next(edition)
        await boot.counted(4 * SHARDS)
        assert boot.gate.editions.newest == edition
        assert {house.edition for house in town.houses} == {edition.to_bytes()}

    told(story, folder)


def test_what_an_earlier_run_signed_and_did_not_send_is_sent(folder: Path) -> None:
    edition = TokenIssuer(folder).next_edition(shards=2 * SHARDS)
    assert edition is not None
    TokenIssuer(folder).keep_next(edition)

    async def story(town: Town, boot: Boot) -> None:
        await boot.counted(2 * SHARDS)

    told(story, folder)


def test_a_disk_that_refuses_an_edition_delays_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried = list[Edition]()

    def full(self: TokenIssuer, edition: Edition) -> None:
        tried.append(edition)
        raise DiskError("the disk is full")

    async def story(town: Town, boot: Boot) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(TokenIssuer, "keep_next", full)
            await town.until(lambda: len(tried) == 3)
        assert boot.gate.editions.number == 0
        assert tried[0] == tried[2]
        await boot.counted(2 * SHARDS)

    told(story, folder)
    assert caplog.messages.count("the swarm's rules were not raised: the disk is full") == 3


def test_nothing_is_signed_while_the_directory_cannot_be_read(folder: Path) -> None:
    async def story(town: Town, boot: Boot) -> None:
        await asyncio.sleep(2 * EVERY)  # until it sees a calm swarm
        town.board.lose(ME.peer)
        await asyncio.sleep(LONG)
        assert boot.issuer.editions.number == 0
        town.board.lose(ME.peer, lost=False)
        await boot.counted(2 * SHARDS)

    told(story, folder)


def test_newcomers_do_not_count_after_a_restart_either(folder: Path) -> None:
    async def story(town: Town, boot: Boot) -> None:
        await asyncio.sleep(LONG)
        await boot.close()
        town.network.stop(ME.peer)
        again = Boot(town, folder)
        newcomer = town.add()
        view = again.node.lookout.view
        await asyncio.sleep(LONG / 3)
        assert len(view.members(0)) == 4
        assert view.standing_members(0) == {house.me for house in town.houses} - {newcomer.me}
        await again.close()

    told(story, folder)
