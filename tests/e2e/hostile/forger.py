"""A member that forges: records of others and of other times on the board, lists of the revoked,
jobs and prompts without end; and it floods whoever is there with questions and streams.

It shows a true token with every right, and knows what any member knows.
"""

import asyncio
import random
import secrets
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

import msgspec
import numpy as np
from hivemind.dht.routing import DHTID
from hivemind.p2p import PeerID

from giaann_p2p.errors import GiaannError, PeerError
from giaann_p2p.model.manner import Manner
from giaann_p2p.net.hive.board import HiveBoard
from giaann_p2p.net.hive.peer_id import libp2p_id
from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.joined_host import JoinedHost
from giaann_p2p.node.members.lookout import Lookout
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.member_messages import RevokedIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    AskDigests,
    AskNouns,
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
from giaann_p2p.swarm.wire.prompt_messages import Ask
from giaann_p2p.swarm.wire.record import (
    BUCKETS,
    MOST_CAPACITY,
    MOST_LIFETIME,
    SKEW,
    Announcement,
    Role,
    signed,
    signed_as,
)
from giaann_p2p.swarm.wire.revoked import Revoked
from giaann_p2p.swarm.wire.row_messages import AskColumn, Read
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.training_messages import Beat, BeatAck, Learn, Learned, PushOrder
from tests.e2e.hostile.flood import Flood
from tests.e2e.hostile.tally import Tally

MADE_UP = 0x0BAD_0BAD_0BAD
"""The incarnation of every record that it makes up."""
_LATER = 1 << 60
"""A sequence beyond all that a true clock makes."""
_EVERY, _ANSWERED = 0.1, 4.0
_STREAMS = 2
"""At each peer: a peer may have four, and it asks over one more."""
_CALLS = 24
"""Questions between two forgeries."""
_TOLD = 64
"""Forged records that its node of the board has for whoever asks."""
_LIVES = 60
_PROMPT = "Bees make honey from the nectar"


class Forgery(Enum):
    """What it leaves on the board, or tries to."""

    SLANDER = "a victim leaves, by a record that it did not sign"
    REPLAY = "what a victim said earlier, once more"
    FUTURE = "a record of tomorrow"
    PAST = "a record of yesterday"
    ELSEWHERE = "a record of another swarm"
    LASTING = "a record that lasts for ever"
    BOUNDLESS = "a record with more than fits"
    ROOMY = "a record with more capacity than there can be"
    BROKEN = "a true record with a byte changed"
    HUGE = "a megabyte of nothing"
    MISPLACED = "a true record in another place"


class Forger:
    """See the module."""

    def __init__(self, place: JoinedHost, manifest: Manifest, tally: Tally, folder: Path) -> None:
        self._place, self._manifest, self._tally = place, manifest, tally
        self._identity, self._me = place.host.identity, place.host.me
        self._clock = Clock()
        self._gate = Gate(manifest, place.transport, place.token, self._clock)
        self._chance = random.Random("a forger's")
        self._early: dict[Peer, bytes] = {}
        self._board: HiveBoard
        self._lookout: Lookout

    async def run(self, begun: asyncio.Event) -> None:
        """Take part as a compute peer without any slots; then forge and flood."""
        manifest, admission = self._manifest, self._gate.admission
        self._board = await HiveBoard.start(
            self._place.host,
            manifest.swarm_id,
            self._gate.rules,
            self._place.book.seeds,
            self._clock,
            admission,
            self._place.token,
        )
        around = PeersView.of(self._me, manifest, admission, self._gate.rules)
        self._lookout = Lookout(
            self._board,
            around,
            manifest.swarm_id,
            self._clock,
            roles=("storage", "compute"),
        )
        self._place.book.directory = around.directory
        self._place.transport.serve(self._answer)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._lookout.run())
            group.create_task(self._be_there())
            await begun.wait()
            directory = around.directory
            said = directory.live(self._clock()), directory.records(self._clock())
            self._early = {one.peer: data for one, data in zip(*said, strict=True)}
            self._bend_the_board()
            group.create_task(self._forge())
            host = self._place.host
            flood = Flood(host, self._tally, self._place.token, self._questions(), _STREAMS)
            group.create_task(flood.run([one.addresses[0] for one in said[0] if one.addresses]))

    async def _be_there(self) -> None:
        """Be in the directory, as a compute peer."""
        await self._lookout.whole.wait()
        while True:
            now = self._clock()
            said = self._said(self._me, "compute", int(now), sequence=int(1000 * now))
            said = msgspec.structs.replace(said, incarnation=1, lifetime=_LIVES)
            try:
                await self._board.post("compute", signed(self._identity, said), _LIVES)
            except GiaannError:
                self._tally["records of its own refused"] += 1
            await asyncio.sleep(_LIVES / 6)

    async def _answer(self, peer: bytes, body: bytes) -> bytes:
        """Answer nobody, or so that those who learn for it never get rid of what they learned."""
        question = decode(body)
        self._tally[f"hears {type(question).__name__}"] += 1
        how = self._chance.randrange(4)
        if not isinstance(question, Beat) or how == 0:
            await asyncio.sleep(_ANSWERED)
            return encode(Refusal("later"))
        if how == 1:
            return encode(BeatAck([]))
        words = [
            result.voucher for result in question.results
        ]  # each stands alone, or for another chunk
        bring = [PushOrder(result.chunk, words[: how - 1]) for result in question.results]
        return encode(BeatAck([], bring))

    async def _forge(self) -> None:
        while True:
            await self._leave(self._chance.choice(list(Forgery)), self._victim())
            self._ask(self._victim())
            await asyncio.sleep(_EVERY)

    def _victim(self) -> Announcement:
        live = self._lookout.view.directory.live(self._clock())
        others = [one for one in live if one.peer != self._me]
        return self._chance.choice(others or live)

    # On the board.

    async def _leave(self, forgery: Forgery, victim: Announcement) -> None:
        """Leave a record with a node, and see whether that takes it."""
        record, to = self._record(forgery, victim), self._victim().peer
        if record is None:
            return
        whose = self._me if self._chance.random() < 0.5 else victim.peer
        key = self._board._shelf.key(victim.role, whose)
        if forgery is Forgery.MISPLACED:
            key = self._board._shelf.keys("storage")[self._chance.randrange(BUCKETS)]
            record = signed(self._identity, self._said(self._me, "compute", int(self._clock())))
        said = await self._board._node.protocol.call_store(
            PeerID(libp2p_id(to)), [DHTID.from_bytes(key)], [record], [float(MOST_LIFETIME)]
        )
        outcome = "unanswered" if not said else "TAKEN" if said[0] else "refused"
        self._tally[f"records {outcome}: {forgery.name.lower()} by {name_of(to)}"] += 1

    def _record(self, forgery: Forgery, victim: Announcement) -> bytes | None:
        if forgery is Forgery.REPLAY:
            return self._early.get(victim.peer)
        if forgery is Forgery.HUGE:
            return bytes(1 << 20)
        if forgery is Forgery.BROKEN:
            data = bytearray(self._chance.choice(list(self._early.values())))
            data[self._chance.randrange(len(data))] ^= 1 << self._chance.randrange(8)
            return bytes(data)
        now, role = int(self._clock()), victim.role
        mine = self._said(self._me, role, now)
        said = {
            Forgery.SLANDER: lambda: self._said(victim.peer, role, now, token=victim.token),
            Forgery.FUTURE: lambda: self._said(self._me, role, now + 2 * SKEW),
            Forgery.PAST: lambda: self._said(self._me, role, now - 3 * SKEW),
            Forgery.ELSEWHERE: lambda: _changed(mine, swarm_id=bytes(32)),
            Forgery.LASTING: lambda: _changed(mine, lifetime=1 << 40),
            Forgery.BOUNDLESS: lambda: _changed(mine, addresses=("/ip4/192.0.2.1/tcp/1",) * 4000),
            Forgery.ROOMY: lambda: _changed(mine, capacity=2 * MOST_CAPACITY),
            Forgery.MISPLACED: lambda: mine,
        }[forgery]()
        return signed_as(self._identity, said)

    def _said(
        self,
        peer: Peer,
        role: Role,
        issued: int,
        sequence: int = _LATER,
        token: bytes | None = None,
    ) -> Announcement:
        return Announcement(
            swarm_id=self._manifest.swarm_id,
            peer=peer,
            role=role,
            state="active" if peer == self._me else "left",
            incarnation=MADE_UP,
            sequence=sequence,
            issued=issued,
            lifetime=MOST_LIFETIME,
            addresses=tuple(self._place.host.addresses)[:1] if peer == self._me else (),
            token=self._place.token if token is None else token,
        )

    def _bend_the_board(self) -> None:
        """Have its own node tell whoever asks what nobody said."""
        shelf = self._board._shelf
        get = shelf.get

        def told(key: bytes, now: float) -> list[bytes]:
            return [*get(key, now), *self._forged_for(key)]

        vars(shelf)["get"] = told

    def _forged_for(self, key: bytes) -> Sequence[bytes]:
        kinds = Forgery.SLANDER, Forgery.FUTURE, Forgery.LASTING, Forgery.BROKEN, Forgery.REPLAY
        self._tally["questions of the board answered with forgeries"] += 1
        found = [self._record(self._chance.choice(kinds), self._victim()) for _ in range(_TOLD)]
        return [record for record in found if record is not None]

    # Questions.

    def _ask(self, victim: Announcement) -> None:
        questions = self._questions()
        some = [self._chance.choice(questions) for _ in range(_CALLS)]
        if victim.role == "compute":
            some = [self._ask_prompt(), self._order(), self._forged_beat()]
        some.append(self._forged_list())
        for question in some:
            name = type(question).__name__
            self._tally[f"asks {name}"] += 1
            told = self._told(name)
            try:
                asked = self._place.transport.ask(
                    victim.peer, encode(question), timeout=_ANSWERED, told=told
                )
            except GiaannError:
                self._tally["questions that cannot be asked"] += 1
                continue
            if asked is None:
                self._dial(victim.peer)

    def _told(self, name: str) -> OnAnswer:
        def told(answer: bytes | PeerError) -> None:
            self._tally[f"{'told' if _is_told(answer) else 'refused'} {name}"] += 1

        return told

    def _dial(self, peer: Peer) -> None:
        """Have a connection for the next time."""
        self._dialling = asyncio.ensure_future(self._met(peer))

    async def _met(self, peer: Peer) -> None:
        try:
            await self._place.transport.call(peer, encode(self._read()), timeout=_ANSWERED)
        except GiaannError:
            self._tally["dials in vain"] += 1

    def _questions(self) -> list[Message]:
        layout, chance = self._manifest.layout, self._chance
        count = layout.shards
        shards = packed(np.arange(count, dtype=np.uint16), count)
        job, salt = chance.randbytes(16), chance.randbytes(16)
        return [
            self._read(),
            self._read(4096),
            Read(bytes(16), bytes(8)),
            AskColumn(chance.randbytes(8)),
            AskNouns(chance.randrange(count)),
            Compare(shards, [b""] * count),
            Compare(chance.randbytes(20), [b""] * 3),
            Fetch(shards, Applied().plus(job, 1).to_bytes()),
            Offer(chance.randrange(count)),
            AskPart(chance.randrange(count), bytes(16), 0),
            AskDigests(shards),
            AskProof(shards, Applied().to_bytes(), salt),
            Push(job, 5_000_000, shards, chance.randbytes(1 << 12)),
        ]

    def _read(self, most: int = 64) -> Read:
        numbers = self._chance.randbytes(8 * most)
        return Read(numbers, numbers[::-1])

    def _ask_prompt(self) -> Ask:
        return Ask(self._chance.randbytes(16), _PROMPT, Manner(), b"")

    def _order(self) -> Learn:
        """Have a text learned, and never say a word on what it came to."""
        text = [f"{self._chance.randbytes(8).hex()} makes {number} of it." for number in range(64)]
        return Learn(self._chance.randbytes(16), self._chance.randrange(1 << 20), text)

    def _forged_beat(self) -> Beat:
        return Beat(self._chance.randbytes(16), [1], [Learned(2)], [])

    def _forged_list(self) -> RevokedIs:
        """Say that the founder has revoked everybody."""
        live = self._lookout.view.directory.live(self._clock())
        peers = tuple(sorted({one.peer for one in live}))
        signature = secrets.token_bytes(64)
        number = self._chance.randrange(1, 1 << 31)
        return RevokedIs(Revoked(self._manifest.swarm_id, number, peers, signature).to_bytes())


def _changed(said: Announcement, **fields: object) -> Announcement:
    changed: Announcement = msgspec.structs.replace(said, **fields)
    return changed


def _is_told(answer: bytes | PeerError) -> bool:
    if not isinstance(answer, bytes):
        return False
    try:
        return not isinstance(decode(answer), Refusal)
    except GiaannError:  # another hostile peer's
        return False
