"""A storage peer that lies about rows, about its holdings, and in messages to other owners.

The peer runs the honest node, because it must hold the data that it lies about. Most of its lies
are well-formed messages; only those of `GARBAGE` are not.
"""

import random
from dataclasses import replace
from enum import Enum
from functools import cached_property

import numpy as np
from msgspec import structs

from giaann_p2p.errors import GiaannError
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.rows import Neuron, Question, Row
from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.sim.hostile.shameless import ShamelessGate
from giaann_p2p.sim.hostile.watch import watch_of
from giaann_p2p.sim.node import RECORD, readable
from giaann_p2p.sim.promises import Promises
from giaann_p2p.sim.storage import Storage, rows_of
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.sim.world import World
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.codec import plain
from giaann_p2p.store.codec.parcel import decode, encode
from giaann_p2p.store.content import Content
from giaann_p2p.store.transfer import Export, Manifest
from giaann_p2p.swarm.replication.shard_fingerprint import PROOF_BYTES
from giaann_p2p.swarm.wire import messages
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    BUSY,
    AskPart,
    AskProof,
    Compare,
    Compared,
    Fetch,
    Fetched,
    Offer,
    Offered,
    Part,
    Piece,
    Proof,
    Push,
    Pushed,
    Refusal,
    doublings_of,
)
from giaann_p2p.swarm.wire.record import MOST_CAPACITY, MOST_NAMED, Announcement, namings
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.row_mark import MARK_BYTES
from giaann_p2p.swarm.wire.row_messages import Read, Rows
from giaann_p2p.swarm.wire.shardset import packed, unpacked

_NO_SHARDS = np.empty(0, np.uint16)
_MOST_INVENTED = 3
_DENSE = 1 << 31


class Lie(Enum):
    """The false claims that a lying storage peer can make."""

    ROWS = "all rows that are read"
    SOME_ROWS = "one in three answers with rows"
    ALIKE = "all rows, in the same way as every other liar of this kind"
    SAME = "all rows that the asking peer knows are still the same"
    ACKS = "it has stored a pushed chunk, but has not"
    READY = "all shards are ready here, whatever it holds, and it has room for all"
    COVERS = "it has every chunk that it is asked for"
    INVENTS = "it has chunks that nobody has"
    GARBAGE = "the deltas and shards that it sends are unreadable, or were not requested"
    POISON = "the deltas and shards that it sends are well formed, but wrong"
    SHOWS = "its proofs of its shards are made up, as if it held nothing of them"
    EVADES = "it is too busy for a proof, whenever it is asked"
    SLANDERS = "all other owners hold wrong content of every shard"


class Liar(Storage):
    """An honest storage peer whose answers and announcements are replaced by lies."""

    kind_of_gate = ShamelessGate

    def __init__(self, swarm: Swarm, name: str, skew: float, lies: frozenset[Lie]) -> None:
        self.lies, self._lying = lies, random.Random(f"{swarm.seed} {name} lies")
        self.quiet = True
        """Whether the peer has not begun to lie yet."""
        self._exports: dict[int, Export] = {}
        self._swarm = swarm
        super().__init__(swarm, name, skew)
        self.lost = True  # nothing that it holds counts as durable

    def promises_of(self, world: World) -> Promises:
        """Return separate promises, so that those a liar breaks do not count as the swarm's."""
        return Promises(world.lessons, world.rules.replicas, world.rules.quorum, [])

    def begin_to_lie(self) -> None:
        """Begin to lie, with a new announcement."""
        self.quiet = False
        self.loop.do(self.node.member.announce)

    def tells(self, *lies: Lie) -> bool:
        """Return whether the peer now tells any of these lies."""
        return not self.quiet and not self.lies.isdisjoint(lies)

    def deliver(self, sender: Peer, data: bytes, reply: OnAnswer) -> None:
        """Answer a question with a lie, or else pass it to the honest node."""
        question = None if self.quiet or data[:1] == RECORD else readable(data)
        is_asked = question is not None and self.admits(sender, question)
        if is_asked and doublings_of(data) != self.around.rules.layout.doublings:
            is_asked = False  # answers that count another number of shards are ignored
        lie = self._lie(question) if question is not None and is_asked else None
        if lie is None:
            super().deliver(sender, data, reply)
        else:
            watch_of(self.world).happened(f"lies about {type(question).__name__}")
            reply(lie if isinstance(lie, bytes) else messages.encode(lie))

    def _lie(self, question: Message) -> Message | bytes | None:
        if isinstance(question, Read):
            lies = self.tells(Lie.ROWS, Lie.ALIKE)
            lies |= self.tells(Lie.SOME_ROWS) and self._lying.random() < 1 / 3
            if not lies and self.tells(Lie.SAME):
                return self._same_rows(question)
            return self._wrong_rows(question) if lies else None
        if isinstance(question, Push) and self.tells(Lie.ACKS):
            count = self.around.rules.shards
            shards = unpacked(question.shards, count)
            self.world.promises.acked(self, question.job, question.chunk, shards, count)
            return Pushed(question.shards)
        if isinstance(question, Compare) and self.tells(Lie.READY, Lie.COVERS, Lie.INVENTS):
            said = self.answers.to(question)
            return self._wrong_sets(question) if isinstance(said, Compared) else said
        if isinstance(question, AskProof):
            return self._shown(question)
        if isinstance(question, Fetch | Offer | AskPart):
            if self.tells(Lie.GARBAGE):
                return self._garbage(question)
            if self.tells(Lie.POISON):
                return self._poison(question)
        return None

    def told(self, announcement: Announcement) -> Announcement:
        """Return the honest node's announcement with this peer's lies put in."""
        count = self.around.rules.shards
        everything = np.arange(count, dtype=np.uint16)
        lies = dict[str, object]()
        if self.tells(Lie.READY):
            lies["capacity"] = MOST_CAPACITY
            lies["ready"] = packed(everything, count)
            lies["syncing"] = packed(_NO_SHARDS, count)
        if self.tells(Lie.SLANDERS):
            others = [one.peer for one in self._swarm.storages]
            slander = dict.fromkeys(others[:MOST_NAMED], everything)
            lies["wrong"] = namings(slander, count)
            watch_of(self.world).happened("slanders")
        return structs.replace(announcement, **lies)

    def _wrong_rows(self, question: Read) -> Message | bytes:
        said = self.answers.to(Read(question.concepts, question.features))
        if not isinstance(said, Rows):
            return said
        concepts = np.frombuffer(question.concepts, "<u8").tolist()
        features = np.frombuffer(question.features, "<u8").tolist()
        asked = list(map(Neuron, concepts, features))
        known = rows_of(said.parcel, self.store.limits).read(Question(asked))
        rows = [row for row in known if row is not None]
        if Lie.ALIKE in self.lies:
            told = [structs.replace(row, strength=2 * row.strength) for row in rows]
        else:
            told = self._altered(rows)
        parcel = plain.encode(told)
        if Lie.ALIKE not in self.lies and self._lying.random() < 0.1:
            parcel = parcel[: self._lying.randrange(len(parcel) + 1)]
        return Rows(parcel, packed(_NO_SHARDS, self.around.rules.shards))

    def _same_rows(self, question: Read) -> Message | None:
        """Confirm all rows that the asking peer knows; None if it knows none."""
        count = len(question.marks) // MARK_BYTES
        rest = question.concepts[8 * count :], question.features[8 * count :]
        said = self.answers.to(Read(*rest))
        if not count or not isinstance(said, Rows):
            return None
        watch_of(self.world).happened("rows confirmed unseen")
        return Rows(said.parcel, said.moved, np.arange(count, dtype="<u2").tobytes())

    def _altered(self, rows: list[Row]) -> list[Row]:
        """Return rows of which each is altered, left out, or replaced by the content of another."""
        told = []
        for row in rows:
            how = self._lying.randrange(5)
            if how == 0:
                told.append(structs.replace(row, count=row.count + self._lying.randrange(1, 9)))
            elif how == 1 and row.count > 1:
                told.append(structs.replace(row, count=row.count - 1))
            elif how == 2 and len(row.strength):
                strength = row.strength.copy()
                strength[self._lying.randrange(len(strength))] += self._lying.randrange(1, 1 << 20)
                told.append(structs.replace(row, strength=strength))
            elif how == 3:
                other = self._lying.choice(rows)
                told.append(structs.replace(other, neuron=row.neuron, name=row.name))
        return told

    def _wrong_sets(self, question: Compare) -> Message:
        """Claim to hold all chunks that are asked for, more, or none, depending on the lies."""
        shards = unpacked(question.shards, self.around.rules.shards)
        letters = (ReplicaState.READY.value * len(shards)).encode()
        if not self.tells(Lie.COVERS, Lie.INVENTS):
            return Compared(letters, [0] * len(shards), [Applied().to_bytes()])
        if not self.tells(Lie.INVENTS):
            return Compared(letters, [-1] * len(shards), [])
        held, sets, parts = self.store.sets(shards.tolist()), list[bytes](), list[bytes]()
        for shard in shards.tolist():
            known = held.get(shard, Applied())
            for _ in range(self._lying.randrange(_MOST_INVENTED)):
                job = self._lying.choice([*known, self._lying.randbytes(16)])
                known = known.plus(job, 1_000_000 + self._lying.randrange(100))
            sets.append(known.to_bytes())
            if question.parts:  # claim that these are some parts of a set, or none at all
                its = bytes({job[0] for job in known})
                parts.append(self._lying.choice([b"", its, self._lying.randbytes(3)]))
        return Compared(letters, list(range(len(sets))), sets, parts)

    def _shown(self, question: AskProof) -> Message | None:
        if self.tells(Lie.EVADES):
            return Refusal(f"{BUSY}: not now")
        if not self.tells(Lie.SHOWS):
            return None
        count = len(unpacked(question.shards, self.around.rules.shards))
        proofs = [self._lying.randbytes(PROOF_BYTES) for _ in range(count)]
        return Proof(question.shards, proofs)

    def _garbage(self, question: Message) -> Message | bytes:
        """Return an invalid answer, of a random kind."""
        rng, data = self._lying, messages.encode(self.answers.to(question))
        how = rng.randrange(3 + len(self._junk))
        if how == 0:
            return data[: rng.randrange(len(data))]
        if how == 1:
            return data[:-1] + bytes([data[-1] ^ 1])
        return rng.randbytes(200) if how == 2 else self._junk[how - 3]

    @cached_property
    def _junk(self) -> list[Message]:
        """Return well-formed messages that answer no question that the peer gets."""
        rng, count, empty = self._lying, self.around.rules.shards, Applied().to_bytes()
        shards = packed(np.arange(count, dtype=np.uint16), count)
        piece = Piece(rng.randbytes(16), 1, shards, encode(self.world.lessons.delta(1)))
        wrong = Manifest(count - 1, rng.randbytes(32), b"", [], _DENSE - 1).to_bytes()
        return [
            Refusal(""),
            Pushed(shards),
            Fetched([piece], empty),
            Fetched([], empty),
            Part(rng.randbytes(100)),
            Offered(wrong, empty, b""),
            Offered(wrong, empty, rng.randbytes(100)),
        ]

    def _poison(self, question: Message) -> Message | None:
        """Return well-formed content that was never learned."""
        if isinstance(question, Fetch):
            said = self.answers.to(question)
            if isinstance(said, Fetched):
                return Fetched([self._stronger(piece) for piece in said.updates], said.gone)
            return None
        if isinstance(question, Offer):
            return self._offered(question.shard)
        if isinstance(question, AskPart) and (export := self._exports.get(question.shard)):
            try:
                return Part(export.part(question.number))
            except GiaannError as error:
                return Refusal(str(error))
        return None

    def _stronger(self, piece: Piece) -> Piece:
        delta = decode(piece.parcel, self.store.limits)
        return Piece(piece.job, piece.chunk, piece.shards, encode(_stronger(delta)), piece.seal)

    def _offered(self, shard: int) -> Message | None:
        held = self.store.content(shard)
        if not len(held.shards):
            return None
        export = Export(Content(held.shards, held.applied, _stronger(held.delta)))
        self._exports[shard] = export
        part = export.part(0) if export.manifest.parts else b""
        return Offered(export.manifest.to_bytes(), Applied().to_bytes(), part)


def _stronger(delta: Delta) -> Delta:
    return replace(delta, strength=delta.strength + 1)
