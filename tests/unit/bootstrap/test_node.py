"""A bootstrap peer over the network in memory: what it answers, what it notes, how it ends."""

import asyncio
from pathlib import Path

import pytest

from giaann_p2p.node.members.acquaintances import Acquaintances
from giaann_p2p.node.members.joining import fetched
from giaann_p2p.swarm.wire.member_messages import AskManifest, ManifestIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import VERSION, AskDigests, Push, Refusal, decode, encode
from giaann_p2p.swarm.wire.record import Announcement, signed
from giaann_p2p.swarm.wire.row_messages import Read
from tests.unit.bootstrap.helpers import ME, Boot, boot
from tests.unit.node.helpers import EPOCH, MANIFEST, identity


async def answer(one: Boot, body: bytes) -> Message:
    return decode(await one.asker.call(ME, body, timeout=5))


def test_whoever_asks_gets_the_manifest(tmp_path: Path) -> None:
    async def story(one: Boot) -> None:
        assert await answer(one, encode(AskManifest())) == ManifestIs(MANIFEST.to_bytes())
        assert await fetched(one.asker, [ME], MANIFEST.swarm_id) == MANIFEST
        assert one.node.gate.asked_for_manifest == 2

    boot(story, tmp_path / "known")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (encode(AskDigests(b"\0")), "it has the manifest, and no columns"),
        (encode(Read(b"", b"")), "no columns"),
        (encode(Push(bytes(16), 1, b"", b"")), "no columns"),
        (encode(ManifestIs(b"")), "cannot be read"),  # an answer
        (bytes([VERSION]) + b"rubbish", "cannot be read"),
        (b"\x63", "a message has version 99"),
        (b"", "a message has version none"),
    ],
)
def test_all_else_is_refused_in_words(tmp_path: Path, body: bytes, words: str) -> None:
    async def story(one: Boot) -> None:
        found = await answer(one, body)
        assert isinstance(found, Refusal)
        assert words in found.reason
        assert one.node.gate.asked_for_manifest == 0

    boot(story, tmp_path / "known")


def test_it_notes_down_who_was_there(tmp_path: Path) -> None:
    known = tmp_path / "known"
    address = f"/ip4/10.0.0.9/tcp/4100/p2p/{'x' * 9}"

    async def story(one: Boot) -> None:
        other = identity(9)
        clock = one.node.lookout.time()
        said = Announcement(
            swarm_id=MANIFEST.swarm_id,
            peer=other.peer,
            role="storage",
            incarnation=1,
            sequence=1,
            issued=int(clock),
            capacity=1 << 30,
            addresses=(address,),
        )
        assert clock > EPOCH / 2
        one.board.leave(other.peer, "storage", signed(other, said), 300)
        one.board.leave(other.peer, "storage", b"what a stranger left", 300)
        await asyncio.sleep(70)
        assert len(one.node.lookout.view.directory) == 1
        assert one.node.lookout.refused > 0

    boot(story, known)
    assert Acquaintances(known).addresses == [address]


def test_it_leaves_at_once_for_it_has_nothing_to_hand_over(tmp_path: Path) -> None:
    async def story(one: Boot) -> None:
        one.node.leave()
        async with asyncio.timeout(1):
            await one.task

    boot(story, tmp_path / "known")


def test_what_nobody_planned_for_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(one: Boot) -> None:
        one.board.seen = _broken  # type: ignore[method-assign]
        with pytest.raises(RuntimeError, match="no luck"):
            async with asyncio.timeout(20):
                await asyncio.shield(one.task)
        one.task = asyncio.create_task(asyncio.sleep(0))

    boot(story, tmp_path / "known")


def _broken(me: object, role: object) -> list[bytes]:
    raise RuntimeError("no luck")
