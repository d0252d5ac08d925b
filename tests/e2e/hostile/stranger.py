"""Somebody who is no member, or not for this: it asks everybody for everything all the same.

It comes with one pretence after the other, each time over connections of its own.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

import numpy as np
from hivemind.dht.routing import DHTID
from hivemind.p2p import PeerID

from giaann_p2p.errors import GiaannError
from giaann_p2p.net.hive.board import HiveBoard
from giaann_p2p.net.hive.peer_id import libp2p_id, peer_of_address
from giaann_p2p.net.hive.streams import HiveStreams
from giaann_p2p.net.streams import StreamTransport
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.members.address_book import AddressBook
from giaann_p2p.node.members.joined_host import JoinedHost
from giaann_p2p.node.members.membership import Membership, TokenIssuer
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.wire.edition import rules_of
from giaann_p2p.swarm.wire.identity import Identity, Peer, name_of
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.member_messages import AskRecords, AskRevoked
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    AskDigests,
    AskPart,
    AskProof,
    Compare,
    Fetch,
    Offer,
    Push,
    Refusal,
    decode,
    encode,
)
from giaann_p2p.swarm.wire.record import Announcement, Role, signed_as
from giaann_p2p.swarm.wire.row_messages import Read
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.token import Rights, founded
from giaann_p2p.swarm.wire.training_messages import Beat, Learn, Learned
from tests.e2e.hostile.flood import Flood
from tests.e2e.hostile.forger import MADE_UP
from tests.e2e.hostile.program import addresses_beside
from tests.e2e.hostile.tally import Tally

_ANSWERED, _PAUSE = 4.0, 0.5
_STREAMS = 4
"""At each peer: all that one peer may have."""
_FOR_EVER = 1 << 40
_EVERY_RIGHT = Rights.STORAGE | Rights.COMPUTE | Rights.CLIENT
_MOST_OF_IT = 1 << 40


class Pretence(Enum):
    """What somebody shows for a token."""

    NONE = "nothing"
    JUNK = "bytes of chance"
    STOLEN = "another member's token"
    MADE = "a token that it gave itself"
    ELSEWHERE = "another swarm's token"
    EXPIRED = "a token that has run out"
    ROLE = "a client's token, to be a storage and compute peer"


_A_CLIENTS = Read | Compare | AskDigests | Learn | AskRevoked | AskRecords
"""What a client may ask."""


class Stranger:
    """See the module."""

    def __init__(self, place: JoinedHost, manifest: Manifest, tally: Tally, folder: Path) -> None:
        self._place, self._manifest, self._tally, self._folder = place, manifest, tally, folder
        self._chance = random.Random("a stranger's")
        self._clock = Clock()

    async def run(self, begun: asyncio.Event) -> None:
        """Do nothing until it is to begin; then come as whoever it likes."""
        await begun.wait()
        addresses = addresses_beside(self._folder)
        await self._place.transport.close()  # its other connections would show for what it shows
        host = self._place.host
        async with asyncio.TaskGroup() as group:
            shown = self._chance.randbytes(100)
            flood = Flood(host, self._tally, shown, self._questions(), _STREAMS)
            group.create_task(flood.run(addresses))
            while True:
                for pretence in Pretence:
                    await self._come(pretence, addresses)

    async def _come(self, pretence: Pretence, addresses: Sequence[str]) -> None:
        """Ask everybody for everything, and bring records."""
        shown, host = self._shown(pretence), self._place.host
        book = AddressBook(addresses, peer_of_address)
        transport = StreamTransport(HiveStreams(host, book.of), greeting=shown)
        board = await HiveBoard.start(
            host,
            self._manifest.swarm_id,
            lambda: rules_of(self._manifest, None),
            book.seeds,
            self._clock,
            None,
            shown,
        )
        try:
            for peer in book.peers:
                if peer != host.me:
                    await self._bring(pretence, board, peer, shown)
                    await asyncio.gather(
                        *[self._ask(pretence, transport, peer, one) for one in self._questions()]
                    )
                    await asyncio.sleep(_PAUSE)
        finally:
            await board.close()
            await transport.close()

    async def _ask(
        self, pretence: Pretence, transport: StreamTransport, peer: Peer, question: Message
    ) -> None:
        if pretence is Pretence.ROLE and isinstance(question, _A_CLIENTS):
            return
        name = type(question).__name__
        try:
            answer = decode(await transport.call(peer, encode(question), timeout=_ANSWERED))
        except GiaannError:
            self._tally[f"refused as {pretence.name.lower()}"] += 1
            return
        if isinstance(answer, Refusal):
            self._tally[f"refused as {pretence.name.lower()}"] += 1
        else:
            self._tally[f"TOLD {name} as {pretence.name.lower()} by {name_of(peer)}"] += 1

    async def _bring(self, pretence: Pretence, board: HiveBoard, peer: Peer, shown: bytes) -> None:
        """Have a node of the board keep records that this is a storage and compute peer."""
        roles: tuple[Role, ...] = ("storage", "compute")
        for role in roles:
            said = Announcement(
                swarm_id=self._manifest.swarm_id,
                peer=self._place.host.me,
                role=role,
                incarnation=MADE_UP,
                sequence=int(self._clock() * 1000),
                issued=int(self._clock()),
                capacity=_MOST_OF_IT if role == "storage" else 0,
                slots=8 if role == "compute" else 0,
                token=shown,
            )
            record = signed_as(self._place.host.identity, said)
            key = DHTID.from_bytes(board._shelf.key(role, self._place.host.me))
            taken = await board._node.protocol.call_store(
                PeerID(libp2p_id(peer)), [key], [record], [30.0]
            )
            outcome = "TAKEN" if taken and taken[0] else "refused"
            self._tally[f"records {outcome} as {pretence.name.lower()} by {name_of(peer)}"] += 1

    def _shown(self, pretence: Pretence) -> bytes:
        peers, me, soon = self._folder.parents[1], self._place.host.me, int(time.time()) + 3600
        giver = TokenIssuer(peers / "bootstrap-1" / "data")
        own = Identity.from_seed(self._chance.randbytes(32))
        if pretence is Pretence.JUNK:
            return self._chance.randbytes(100)
        if pretence is Pretence.STOLEN:
            token = Membership(peers / "storage-1" / "data").token
            return token.to_bytes() if token is not None else b""
        if pretence is Pretence.MADE:
            swarm_id = self._manifest.swarm_id
            return founded(own, swarm_id, me, _EVERY_RIGHT, _FOR_EVER).to_bytes()
        if pretence is Pretence.ELSEWHERE:
            return founded(own, bytes(32), me, _EVERY_RIGHT, _FOR_EVER).to_bytes()
        if pretence is Pretence.EXPIRED:
            return giver.given(me, _EVERY_RIGHT, 1).to_bytes()
        if pretence is Pretence.ROLE:
            return giver.given(me, Rights.CLIENT, soon).to_bytes()
        return b""

    def _questions(self) -> list[Message]:
        count, chance = self._manifest.layout.shards, self._chance
        shards = packed(np.arange(count, dtype=np.uint16), count)
        job = chance.randbytes(16)
        return [
            Push(job, 3_000_000, shards, chance.randbytes(64)),
            Read(chance.randbytes(8), chance.randbytes(8)),
            Compare(shards, [b""] * count),
            Fetch(shards, Applied().plus(job, 1).to_bytes()),
            Offer(chance.randrange(count)),
            AskPart(0, bytes(16), 0),
            AskDigests(shards),
            AskProof(shards, Applied().to_bytes(), bytes(16)),
            AskRevoked(0),
            AskRecords("storage"),
            Learn(job, 3_000_000, ["Bees make honey."]),
            Beat(job, [], [Learned(1)], []),
        ]
