"""A writer, with what it asked for and committed."""

from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.training.writer import FEW_BYTES, Committed, WriteAction, Writer
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Carry, Push, PushFrom
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.helpers_swarm import JOB, LESSONS, NOW, SHARDS, A, Around, sealed, shards

ALL = packed(shards(*range(SHARDS)), SHARDS)
NONE = packed(shards(), SHARDS)
EVERY = list(range(SHARDS))


class Writing:
    """A writer, with what it asked for and committed."""

    def __init__(self, *members: bytes, few: int = FEW_BYTES, quorum: int = 2) -> None:
        self.around = Around(*map(type(A), members))
        self.around.rules = Rules(SHARDS, 3, quorum)
        self.writer = Writer(self.around, 4.0, few)
        self.calls: list[Call] = []
        self.committed: list[Committed] = []
        self.sent: list[int] = []

    def do(self, acts: list[WriteAction]) -> None:
        for act in acts:
            if isinstance(act, Call):
                self.calls.append(act)
            else:
                self.committed.append(Committed(act.job, act.chunk))
                self.sent.append(act.sent)

    def push(self, chunk: int = 1, job: bytes = JOB, now: float = NOW) -> None:
        def cut(numbers: Shards) -> bytes:
            return LESSONS.parcel(chunk, numbers)

        self.do(self.writer.push(job, chunk, cut, sealed(job, chunk), now))

    def answer(self, peer: bytes, message: Message | None, now: float = NOW) -> None:
        call = next(call for call in self.calls if call.peer == peer)
        self.calls.remove(call)
        self.do(self.writer.answered(call.number, message, now))

    def tick(self, now: float) -> list[bytes]:
        """Return who is asked now."""
        before = len(self.calls)
        self.do(self.writer.tick(now))
        return sorted(call.peer for call in self.calls[before:])

    def pushed(self, peer: bytes) -> list[int]:
        """Return for which shards a peer is being asked."""
        (question,) = [call.message for call in self.calls if call.peer == peer]
        assert isinstance(question, Push)
        return unpacked(question.shards, SHARDS).tolist()


def asked(one: Writing) -> dict[bytes, tuple[bytes | None, list[int]]]:
    """Return who is being asked: to fetch from whom, or None for rows that are sent; which shards.

    Nobody may have more than one question.
    """
    found: dict[bytes, tuple[bytes | None, list[int]]] = {}
    for call in one.calls:
        assert call.peer not in found
        question = call.message
        assert isinstance(question, Push | PushFrom | Carry)
        courier = question.source if isinstance(question, PushFrom) else None
        found[call.peer] = courier, unpacked(question.shards, SHARDS).tolist()
    return found
