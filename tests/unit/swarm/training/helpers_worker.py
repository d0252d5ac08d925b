"""A worker, with what it was to learn and what it asked for."""

from collections.abc import Sequence

from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.training.worker import Lesson, Worker
from giaann_p2p.swarm.training.writer import Writer
from giaann_p2p.swarm.wire.actions import Action, Call, Compute, Reply, Stop
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Push, Pushed, Refusal
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.training_messages import (
    Beat,
    BeatAck,
    Learn,
    Learned,
    PushOrder,
    Result,
    Skip,
)
from tests.helpers_swarm import (
    JOB,
    LESSONS,
    NOW,
    SHARDS,
    A,
    Around,
    B,
    C,
    sealed,
    sent,
    shards,
    vouch,
)

ALL = packed(shards(*range(SHARDS)), SHARDS)
TEXT = ["Bees make honey."]
SKIPS = [Skip("too short", 1, 0)]
FULL = Refusal("no slot is free")


class Working:
    """A worker, with what it was to learn and what it asked for. C and D lead; A and B store."""

    def __init__(self, slots: int = 2) -> None:
        self.worker = Worker(slots, Writer(Around(A, B), 4.0), vouch)
        self.learning: list[tuple[bytes, int]] = []
        self.texts: list[list[str]] = []
        self.stopped: list[tuple[bytes, int]] = []
        self.calls: list[Call] = []
        self.replies: dict[int, Message] = {}
        self.tickets = 0
        self.brings = True
        """Coordinators say at once that what is learned is to be brought to its owners."""

    def do(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Call) and self.brings and _came(action):
                bring = [PushOrder(result.chunk, [result.voucher]) for result in _came(action)]
                self.do(self.worker.answered(action.number, BeatAck([], bring), NOW))
            elif isinstance(action, Call):
                self.calls.append(action)
            elif isinstance(action, Reply):
                self.replies[action.ticket] = sent(action.message)
            elif isinstance(action, Stop):
                self.stopped.append((action.job, action.chunk))
            else:
                assert isinstance(action, Compute)
                self.texts.append(action.sentences)
                self.learning.append((action.job, action.chunk))

    def order(
        self,
        chunk: int,
        peer: Peer = C,
        job: bytes = JOB,
        now: float = NOW,
        text: Sequence[str] = TEXT,
    ) -> Message:
        """Let a coordinator ask for a chunk; return what it is answered."""
        self.tickets += 1
        self.do(self.worker.asked(self.tickets, peer, Learn(job, chunk, [*text]), now))
        return self.replies[self.tickets]

    def computed(self, chunk: int, error: str = "", job: bytes = JOB, now: float = NOW) -> None:
        """Let a chunk be learned, or not."""

        def cut(numbers: Shards) -> bytes:
            return LESSONS.parcel(chunk, numbers)

        self.do(
            self.worker.computed(
                job, chunk, error or Lesson(cut, LESSONS.tree(chunk), 5, SKIPS), now
            )
        )

    def tick(self, now: float) -> None:
        self.do(self.worker.tick(now))

    def of(self, peer: Peer) -> list[Message]:
        """Return what a peer is being asked."""
        return [sent(call.message) for call in self.calls if call.peer == peer]

    def answer(self, peer: Peer, message: Message | None, now: float = NOW) -> None:
        call = next(call for call in self.calls if call.peer == peer)
        self.calls.remove(call)
        self.do(self.worker.answered(call.number, message, now))

    def stored(self, now: float = NOW) -> None:
        """Let the owners have all that is pushed."""
        for peer in (A, B):
            while self.of(peer):
                self.answer(peer, Pushed(ALL), now)

    def heard(self, peer: Peer, *leave: int, now: float = NOW) -> None:
        self.answer(peer, BeatAck(list(leave)), now)


def _came(call: Call) -> list[Result]:
    return call.message.results if isinstance(call.message, Beat) else []


def pushed(chunk: int) -> int:
    """Return how many bytes bringing a chunk to one owner takes."""
    return len(push(chunk).parcel) + sum(map(len, push(chunk).seal))


def push(chunk: int) -> Push:
    """Return how a chunk is brought to an owner of all shards."""
    all_of_them = shards(*range(SHARDS))
    parcel = LESSONS.parcel(chunk, all_of_them)
    return Push(JOB, chunk, ALL, parcel, sealed(JOB, chunk)(all_of_them))


def came(chunk: int) -> Result:
    """Return what is told of a chunk that is learned."""
    root = LESSONS.tree(chunk).root
    return Result(chunk, root, vouch(JOB, chunk, root))


def brings(*chunks: int) -> BeatAck:
    """Return what a coordinator says to have chunks brought to their owners."""
    return BeatAck([], [PushOrder(chunk, [came(chunk).voucher]) for chunk in chunks])


def beat(
    working: list[int],
    done: list[int] | None = None,
    failed: dict[int, str] | None = None,
    waiting: list[int] | None = None,
) -> Beat:
    """Return what is told of the job."""
    learned = [Learned(chunk, 5, SKIPS, 2 * pushed(chunk)) for chunk in done or []]
    told = list(map(came, waiting or []))
    return Beat(JOB, working, learned, list((failed or {}).items()), told)
