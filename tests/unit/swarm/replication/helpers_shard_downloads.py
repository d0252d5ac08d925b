"""Arrivals by themselves: what they asked for, what they are answered, what they had done."""

import msgspec

from giaann_p2p.errors import GiaannError
from giaann_p2p.store.store import Store
from giaann_p2p.store.transfer import Export, Manifest
from giaann_p2p.swarm.replication.replicas import Replicas
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.replication.shard_downloads import ShardDownloads
from giaann_p2p.swarm.wire.actions import Action, Adopt, Call
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    MOST_BYTES,
    AskPart,
    Fetch,
    Fetched,
    Offer,
    Offered,
    Part,
    Piece,
)
from giaann_p2p.swarm.wire.shardset import packed
from tests.helpers_swarm import (
    JOB,
    LESSONS,
    NOW,
    SHARDS,
    A,
    Around,
    B,
    applied,
    shards,
    shared_by,
    store,
)

MOST = 1_000_000


class Arriving:
    """Arrivals by themselves, with what they asked for and what they had done."""

    def __init__(self, **changed: float) -> None:
        self.around, self.replicas = Around(), Replicas(A, SHARDS, range(SHARDS))
        self.again: list[tuple[bytes, float]] = []
        self.store = store()
        settings = Settings(**changed)  # type: ignore[arg-type]
        shared = shared_by(self.replicas, self.around, self.store, settings)
        self.calls, self.deeds, self.bulk = shared.calls, shared.writes, shared.bulk
        self.downloads = ShardDownloads(
            shared, MOST, lambda peer, now: self.again.append((peer, now))
        )
        self.actions: list[Action] = []

    def want(self, *numbers: int, peer: bytes = B, now: float = NOW) -> None:
        for number in numbers:
            self.downloads.want(type(B)(peer), number)
        self.actions += self.downloads.due(now)

    def answer(self, message: Message | None, now: float = NOW) -> None:
        """Answer the first call that is open."""
        call = self.actions.pop(0)
        assert isinstance(call, Call)
        self.actions += self.calls.done(call.number, message, now)

    def serve(self, export: Export, now: float = NOW) -> int:
        """Answer all of one shard's calls; return how many they were."""
        count = 0
        while isinstance(self.actions[0], Call):
            self.answer(answer_to(self.actions[0].message, export), now)
            count += 1
        return count

    def take_in(self, now: float = NOW) -> GiaannError | None:
        """Take in what came, as a shell does; return what came of it."""
        try:
            self.store.adopt(self.adopted.content())
        except GiaannError as error:
            outcome: GiaannError | None = error
        else:
            outcome = None
        self.actions = self.deeds.done(self.adopted.number, outcome, now)
        return outcome

    @property
    def asked(self) -> list[Message]:
        """What was asked, but for how much is to come at once."""
        return [anyhow(action.message) for action in self.actions if isinstance(action, Call)]

    @property
    def adopted(self) -> Adopt:
        (action,) = self.actions
        assert isinstance(action, Adopt)
        return action


def anyhow(question: Message) -> Message:
    """Return a question that leaves it open how much is to come at once."""
    if isinstance(question, Offer | Fetch):
        return msgspec.structs.replace(question, most=MOST_BYTES)
    return question


def answer_to(question: Message, export: Export) -> Message:
    """Answer as one who has everything as deltas, until they are asked for, and sends no part
    along with an offer."""
    if isinstance(question, Offer):
        return offered(export.manifest)
    if isinstance(question, Fetch):
        return Fetched([], question.chunks)
    assert isinstance(question, AskPart)
    assert question.digest == export.manifest.digest
    return Part(export.part(question.number))


def taught(*chunks: int) -> Store:
    return store(chunks=chunks)


def export_of(shard: int, *chunks: int) -> Export:
    return Export(taught(*chunks).content(shard))


def piece(chunk: int, *numbers: int) -> Piece:
    some = shards(*numbers)
    return Piece(JOB, chunk, packed(some, SHARDS), LESSONS.parcel(chunk, some))


def offered(manifest: Manifest, **changed: object) -> Offered:
    """Return an offer of one who has all chunks as deltas, changed somehow."""
    manifest = msgspec.structs.replace(manifest, **changed)
    return Offered(manifest.to_bytes(), applied(*range(100)).to_bytes(), b"")
