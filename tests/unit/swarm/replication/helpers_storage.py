"""A storage peer, and what others tell, show and push to it."""

from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.replication.peer_reports import PeerReport
from giaann_p2p.swarm.wire.actions import Reply
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import AskProof, Push, Pushed
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed
from tests.helpers_swarm import (
    JOB,
    LESSONS,
    NOW,
    SETTINGS,
    SHARDS,
    A,
    Around,
    B,
    C,
    D,
    Side,
    applied,
    make_ready,
    shards,
    states,
    store,
)

ALL = list(range(SHARDS))
LINGER = SETTINGS.linger


def side_of(*members: bytes, held: list[int] | None = None, chunks: tuple[int, ...] = ()) -> Side:
    around = Around(*map(type(A), members))
    return Side(A, around, store(held if held is not None else ALL, chunks))


def word(side: Side, peer: bytes, text: str, asked: float = NOW, numbers: list[int] = ALL) -> None:
    """Let a peer have said something like "r012" of some shards."""
    for shard in numbers:
        said = PeerReport(ReplicaState(text[0]), applied(*map(int, text[1:])), asked)
        side.core.reports.heard(type(A)(peer), shard, said)


def show(side: Side, now: float, *chunks: int) -> list[bytes]:
    """Let all who are asked show that they hold what some chunks come to; return who was."""
    calls = [call for call in side.calls if isinstance(call.message, AskProof)]
    for call in calls:
        held = Answers(store(ALL, chunks), lambda shard: ReplicaState.READY, call.peer)
        side.answer(call, held.to(call.message), now)
    return [call.peer for call in calls]


def push(chunk: int, *numbers: int, job: bytes = JOB) -> Push:
    some = shards(*numbers)
    return Push(job, chunk, packed(some, SHARDS), LESSONS.parcel(chunk, some))


def pushed(*numbers: int) -> Pushed:
    return Pushed(packed(shards(*numbers), SHARDS))


def reply(side: Side, question: Push) -> Message:
    side.done.clear()
    side.do(side.core.asked(7, B, question, NOW), NOW)
    (said,) = side.told(Reply)
    assert said.ticket == 7
    return said.message


def drained(chunks: tuple[int, ...] = (0, 1)) -> Side:
    """Return a peer that has all shards ready, which are others' from now on."""
    side = side_of(A, chunks=chunks)
    side.tick(NOW)
    make_ready(side.core.replicas)
    side.around.capacities = dict.fromkeys([B, C, D], 1 << 30)
    side.around.changes += 1
    side.do(side.core.leave(NOW), NOW)
    assert states(side.core.replicas) == "dddd"
    return side
