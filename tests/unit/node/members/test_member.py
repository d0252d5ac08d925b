"""What a node of any role does: it is seen, it keeps the list of revoked members, and it ends."""

import asyncio
import random
from pathlib import Path

import msgspec
import pytest

from giaann_p2p.errors import NotAdmitted
from giaann_p2p.net.clock import run
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.memory import Network
from giaann_p2p.net.memory_board import MemoryBoard
from giaann_p2p.net.streams import StreamTransport
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.members.acquaintances import Acquaintances
from giaann_p2p.node.members.address_book import AddressBook
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.member import Member
from giaann_p2p.swarm.wire.edition import Edition
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.member_messages import AskRecords, RecordsAre
from giaann_p2p.swarm.wire.messages import Refusal
from giaann_p2p.swarm.wire.record import MOST_RECORD_ADDRESSES, Announcement
from giaann_p2p.swarm.wire.revoked import Revoked
from giaann_p2p.swarm.wire.token import EVERY, founded
from tests.unit.node.helpers import EPOCH, GIB, LIMITS, identity

FOUNDER, ME, OTHER = identity(1), identity(2), identity(3)
CLOSED = Manifest.founded(FOUNDER, "club", admission="token")
TOKEN = founded(FOUNDER, CLOSED.swarm_id, ME.peer, EVERY, int(EPOCH) + 3600).to_bytes()
ADDRESSES = [f"/ip4/10.0.0.1/tcp/{port}/p2p/x" for port in range(4100, 4120)]


def context(known: Path = Path("/nonexistent/known-peers.json")) -> Context:
    """Return what a member of a swarm is given, over the network in memory."""
    loop, chance = asyncio.get_running_loop(), random.Random(0)
    clock = Clock(lambda: EPOCH, loop.time)
    transport = StreamTransport(Network(chance).node(ME.peer), LIMITS, lambda: 1)
    return Context(
        identity=ME,
        manifest=CLOSED,
        transport=transport,
        board=MemoryBoard(chance).view(ME.peer),
        gate=Gate(CLOSED, transport, TOKEN, clock),
        clock=clock,
        addresses=lambda: ADDRESSES,
        book=AddressBook([], lambda _: ME.peer),
        acquaintances=Acquaintances(known),
        incarnation=77,
    )


def complete(draft: Announcement) -> Announcement:
    return msgspec.structs.replace(draft, capacity=GIB)


async def unasked(peer: Peer, body: bytes) -> bytes:
    raise AssertionError("nobody asks")


def revoking(*peers: Peer) -> bytes:
    return Revoked(CLOSED.swarm_id).next(FOUNDER, {*peers}).to_bytes()


def test_the_record_has_what_every_role_says_and_what_one_adds() -> None:
    async def main() -> None:
        given = context()
        member = Member(given, "storage", complete)
        living = asyncio.create_task(member.run(unasked))
        await asyncio.sleep(5)
        given.gate.learn(revoking(OTHER.peer))
        await asyncio.sleep(5)
        said = member.lookout.view.directory.announcement(ME.peer)
        assert said is not None
        assert (said.role, said.state, said.capacity) == ("storage", "active", GIB)
        assert said.addresses == tuple(ADDRESSES[:MOST_RECORD_ADDRESSES])
        assert (said.incarnation, said.token, said.revoked) == (77, TOKEN, 1)
        assert given.book is not None
        assert given.book.of(ME.peer) == list(said.addresses)
        await member.life.close()
        await living
        await given.transport.close()

    run(main())


def test_a_new_edition_is_announced_soon() -> None:
    async def main() -> None:
        given = context()
        member = Member(given, "storage", complete)
        living = asyncio.create_task(member.run(unasked))
        await asyncio.sleep(5)
        edition = Edition.signed(FOUNDER, CLOSED.swarm_id, 1, CLOSED.replicas + 1)
        assert given.gate.learn_edition(edition.to_bytes())
        await asyncio.sleep(4)  # before its record is due again
        said = member.lookout.view.directory.announcement(ME.peer)
        assert said is not None
        assert said.edition == 1
        await member.life.close()
        await living
        await given.transport.close()

    run(main())


def test_clients_get_the_records_of_a_directory_that_has_been_read() -> None:
    async def main() -> None:
        given = context()
        member = Member(given, "storage", complete)
        early = given.gate.answer(AskRecords("storage"))
        assert isinstance(early, Refusal)
        assert early.is_busy
        living = asyncio.create_task(member.run(unasked))
        await asyncio.sleep(5)
        found = given.gate.answer(AskRecords("storage"))
        mine = member.lookout.view.directory.records(member.lookout.time())
        assert len(mine) == 1
        assert found == RecordsAre(1, mine)
        assert given.gate.answer(AskRecords("compute")) == RecordsAre(1, [])
        await member.life.close()
        await living
        await given.transport.close()

    run(main())


def test_a_list_that_revokes_the_node_itself_ends_it() -> None:
    async def main() -> None:
        given = context()
        member = Member(given, "storage", complete)
        living = asyncio.create_task(member.run(unasked, last=member.say_left))
        await asyncio.sleep(5)
        given.gate.learn(revoking(ME.peer))
        with pytest.raises(NotAdmitted, match="revoked"):
            async with asyncio.timeout(60):
                await living
        await given.transport.close()

    run(main())


def test_who_announces_nothing_goes_on_when_it_is_revoked() -> None:
    """A bootstrap peer serves the manifest all the same, and nobody stores anything there."""

    async def main() -> None:
        given = context()
        member = Member(given)
        assert member.presence is None
        living = asyncio.create_task(member.run(unasked, last=member.say_left))
        await asyncio.sleep(5)
        given.gate.learn(revoking(ME.peer))
        await asyncio.sleep(5)
        assert not living.done()
        await member.life.close()
        await living
        assert member.lookout.view.directory.announcement(ME.peer) is None
        await given.transport.close()

    run(main())


def test_connections_that_broke_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        given, lost = context(), []
        monkeypatch.setattr(given.transport, "on_lost", lost.append)
        member = Member(given)
        living = asyncio.create_task(member.run(unasked))
        await asyncio.sleep(1)
        for tell in lost:
            tell(OTHER.peer, Unreachable("gone"))
        assert member.lost == 1
        await member.life.close()
        await living
        await given.transport.close()

    run(main())
