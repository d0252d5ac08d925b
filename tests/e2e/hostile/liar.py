"""A storage peer that lies: of rows, of what it has, and in all that it sends to other owners.

Below the lies it is an honest peer, for it must hold what it is to lie about. What it says is well
formed as a rule: then it is not what is checked first that finds it out.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.rows import Neuron, Question, Row
from giaann_p2p.node.lifetime import Part
from giaann_p2p.node.replication.storage import StorageNode
from giaann_p2p.sim.storage import rows_of
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.codec import plain
from giaann_p2p.store.codec.parcel import decode as delta_of
from giaann_p2p.store.codec.parcel import encode as parcel_of
from giaann_p2p.store.content import Content
from giaann_p2p.store.transfer import Export, Manifest
from giaann_p2p.swarm.wire import messages
from giaann_p2p.swarm.wire.member_messages import (
    AskManifest,
    AskRecords,
    AskRevoked,
    ManifestIs,
    RecordsAre,
    RevokedIs,
)
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    AskDigests,
    AskPart,
    AskProof,
    Compare,
    Compared,
    Digest,
    Digests,
    Fetch,
    Fetched,
    Offer,
    Offered,
    Proof,
    Push,
    Pushed,
    decode,
    encode,
)
from giaann_p2p.swarm.wire.record import MOST_CAPACITY, Announcement
from giaann_p2p.swarm.wire.revoked import Revoked
from giaann_p2p.swarm.wire.row_messages import AskColumn, Column, Read, Rows
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.e2e.hostile import BEGIN
from tests.e2e.hostile.tally import Tally

_NO_SHARDS = np.empty(0, np.uint16)
_READY = b"r"
_MOST_INVENTED = 3
_DENSE = (1 << 31) - 1
_LATE = 3.0
"""Seconds that it takes for an answer when it is to be waited for: as long as nobody waits."""
Lie = Message | bytes


class Liar(StorageNode):
    """See the module."""

    def __init__(self, *given: Any, **more: Any) -> None:  # noqa: ANN401  (what a node is given)
        super().__init__(*given, **more)
        self._honestly = self.reception.answer
        self.reception.answer = self._answer  # type: ignore[method-assign]
        self.quiet = True
        """Whether it still does as honest peers do."""
        self.tally = Tally(Path.cwd())
        self._chance = random.Random("a liar's")
        self._old: dict[bytes, bytes] = {}
        self._lies: dict[type[Message], Callable[[Any, bytes], Awaitable[Lie]]] = {
            Read: self._rows,
            AskColumn: self._column,
            Push: self._pushed,
            Compare: self._compared,
            Fetch: self._delta,
            Offer: self._delta,
            AskPart: self._delta,
            AskDigests: self._digests,
            AskProof: self._proof,
            AskManifest: self._manifest_is,
            AskRevoked: self._revoked_is,
            AskRecords: self._records_are,
        }

    def _parts(self) -> list[Part]:
        asyncio.get_running_loop().add_signal_handler(BEGIN, self._begin)
        return [*super()._parts(), self.tally.keep()]

    def _begin(self) -> None:
        self.quiet = False
        self.member.announce()

    def _record(self, draft: Announcement) -> Announcement:
        said = super()._record(draft)
        if self.quiet:
            return said
        self.tally["says that it has all, and room for all there is"] += 1
        ready = packed(self._everything, self._size)
        none = packed(_NO_SHARDS, self._size)
        return structs.replace(said, ready=ready, syncing=none, capacity=MOST_CAPACITY)

    def _answer(self, peer: bytes, body: bytes) -> bytes | Awaitable[bytes]:
        question = decode(body)
        lie = self._lies.get(type(question))
        if self.quiet or lie is None:
            return self._honestly(peer, body)
        return self._bent(lie(question, peer), type(question).__name__)

    async def _bent(self, lie: Awaitable[Lie], of: str) -> bytes:
        told = await lie
        self.tally[f"lies about {of}"] += 1
        return told if isinstance(told, bytes) else encode(told)

    # What it lies about.

    async def _rows(self, question: Read, peer: bytes) -> Lie:
        """Tell rows that are not so, none, those of earlier, or nothing at all."""
        said = await self.answering.to(question, peer)
        if not isinstance(said, Rows):
            return said
        key = question.concepts + question.features
        how = self._chance.random()
        if how < 0.05:
            await asyncio.sleep(_LATE)
        elif how < 0.1:
            return Rows(said.parcel, packed(self._everything, self._size))
        elif how < 0.2:
            return self._old.setdefault(key, encode(said))
        concepts, features = (
            np.frombuffer(half, "<u8").tolist() for half in (question.concepts, question.features)
        )
        asked = list(map(Neuron, concepts, features))
        known = rows_of(said.parcel, self._store.limits).read(Question(asked))
        parcel = plain.encode(
            self._altered([row for row in known if row is not None and row.count])
        )
        if how > 0.9:
            parcel = parcel[: self._chance.randrange(len(parcel) + 1)]
        return Rows(parcel, packed(_NO_SHARDS, self._size))

    def _altered(self, rows: list[Row]) -> list[Row]:
        """Change something of each row, or leave it out, or tell another's in its place."""
        told = []
        for row in rows:
            how = self._chance.randrange(5)
            if how == 0:
                told.append(structs.replace(row, count=row.count + self._chance.randrange(1, 9)))
            elif how == 1 and row.count > 1:
                told.append(structs.replace(row, count=row.count - 1))
            elif how == 2 and len(row.strength):
                strength = row.strength.copy()
                strength[self._chance.randrange(len(strength))] += self._chance.randrange(1, 99)
                told.append(structs.replace(row, strength=strength))
            elif how == 3:
                other = self._chance.choice(rows)
                told.append(structs.replace(other, neuron=row.neuron, name=row.name))
        return told

    async def _column(self, question: AskColumn, peer: bytes) -> Lie:
        return Column(self._chance.randbytes(8 * self._chance.randrange(64)))

    async def _pushed(self, question: Push, peer: bytes) -> Lie:
        """Say that it has taken in what it has not."""
        return Pushed(question.shards)

    async def _compared(self, question: Compare, peer: bytes) -> Lie:
        """Say that it has all that is asked for, more than that, or nothing, as it fits."""
        shards = unpacked(question.shards, self._size)
        letters, how = _READY * len(shards), self._chance.randrange(4)
        if how == 0:
            return Compared(letters, [0] * len(shards), [Applied().to_bytes()])
        if how == 1:
            return Compared(letters, [-1] * len(shards), [])
        if how == 2:
            return self._garbage(question)
        held, sets = self._store.sets(shards.tolist()), []
        for shard in shards.tolist():
            known = held.get(shard, Applied())
            for _ in range(self._chance.randrange(_MOST_INVENTED)):
                job = self._chance.choice([*known, self._chance.randbytes(16)])
                known = known.plus(job, self._chance.choice((0, 1, 2, 1_000_000)))
            sets.append(known.to_bytes())
        return Compared(letters, list(range(len(sets))), sets)

    async def _delta(self, question: Fetch | Offer | AskPart, peer: bytes) -> Lie:
        """Send something well formed that was never learned, or nonsense."""
        if isinstance(question, AskPart) or self._chance.random() < 0.5:
            return self._garbage(question)
        if isinstance(question, Offer):
            return self._offered(question) or self._garbage(question)
        said = await self.answering.to(question, peer)
        if not isinstance(said, Fetched):
            return said
        limits = self._store.limits
        wrong = [
            structs.replace(one, parcel=_stronger_parcel(delta_of(one.parcel, limits)))
            for one in said.updates
        ]
        return Fetched(wrong, said.gone)

    def _offered(self, question: Offer) -> Lie | None:
        held = self._store.content(question.shard)
        if not len(held.shards):
            return None
        export = Export(Content(held.shards, held.applied, _stronger(held.delta)))
        part = export.part(0) if export.manifest.parts else b""
        return Offered(export.manifest.to_bytes(), Applied().to_bytes(), part)

    async def _digests(self, question: AskDigests, peer: bytes) -> Lie:
        """Digest what it has not: some of the right chunks, and none of the right content."""
        shards = unpacked(question.shards, self._size)[:16]
        held = self._store.sets(shards.tolist())
        found = [
            Digest(
                _READY,
                held.get(shard, Applied()).digest,
                self._chance.randbytes(16),
                self._chance.randrange(1 << 20),
                self._chance.randrange(1 << 40),
            )
            for shard in shards.tolist()
        ]
        return Digests(packed(shards, self._size), found)

    async def _proof(self, question: AskProof, peer: bytes) -> Lie:
        """Show what is no proof, or another's for another salt."""
        shards = unpacked(question.shards, self._size)
        if self._chance.random() < 0.5:
            return Proof(question.shards, [self._chance.randbytes(32) for _ in shards.tolist()])
        other = structs.replace(question, salt=self._chance.randbytes(16))
        return await self.answering.to(other, peer)

    async def _manifest_is(self, question: AskManifest, peer: bytes) -> Lie:
        manifest = bytearray(self._manifest.to_bytes())
        manifest[self._chance.randrange(len(manifest))] ^= 1
        return ManifestIs(bytes(manifest))

    async def _revoked_is(self, question: AskRevoked, peer: bytes) -> Lie:
        """Say that all others are no members any more."""
        others = tuple(sorted(one for one in self.lookout.view.members(self._clock())))
        return RevokedIs(Revoked(self._manifest.swarm_id, 9, others, bytes(64)).to_bytes())

    async def _records_are(self, question: AskRecords, peer: bytes) -> Lie:
        """Leave out all peers but some, or send what nobody has signed."""
        known = self.lookout.view.directory.records(self.lookout.time(), question.role)
        forged = [self._chance.randbytes(len(one)) for one in known]
        return RecordsAre(1, self._chance.choice([known[:1], forged, []]))

    def _garbage(self, question: Message) -> Lie:
        """Send what is no answer, each time in another way."""
        chance, empty = self._chance, Applied().to_bytes()
        wrong = Manifest(self._size - 1, chance.randbytes(32), b"", [], _DENSE).to_bytes()
        everything = packed(self._everything, self._size)
        junk: list[Message] = [
            Pushed(everything),
            Fetched([], empty),
            messages.Part(chance.randbytes(100)),
            Offered(wrong, empty, b""),
            Offered(wrong, empty, chance.randbytes(100)),
            Compared(b"r", [7], [chance.randbytes(30)]),
        ]
        data = encode(chance.choice(junk))
        how = chance.randrange(4)
        if how == 0:
            return data[: chance.randrange(len(data))]
        if how == 1:
            return data[:-1] + bytes([data[-1] ^ 1])
        return chance.randbytes(200) if how == 2 else data

    @property
    def _size(self) -> int:
        return self._manifest.layout.shards

    @property
    def _everything(self) -> Any:  # noqa: ANN401  (numpy's)
        return np.arange(self._size, dtype=np.uint16)


def _stronger(delta: Delta) -> Delta:
    return replace(delta, strength=delta.strength + 1)


def _stronger_parcel(delta: Delta) -> bytes:
    return parcel_of(_stronger(delta))
