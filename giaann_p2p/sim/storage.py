"""A storage peer of the simulation: the real decisions, the real store, a disk that can betray."""

import random
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from giaann_p2p.errors import DamagedError, GiaannError
from giaann_p2p.model.rows import Neuron
from giaann_p2p.model.rows import Rows as ToldRows
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.sim.node import Node
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.store.codec import plain, sheaf
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.actions import (
    Action,
    Adopt,
    Announce,
    Apply,
    Call,
    Drop,
    Hold,
    Leave,
    Release,
    Reply,
    Weigh,
)
from giaann_p2p.swarm.answers import Answers
from giaann_p2p.swarm.identity import Identity, Peer
from giaann_p2p.swarm.messages import Message, Push, Pushed, Read, Rows, encode
from giaann_p2p.swarm.orphans import Orphans
from giaann_p2p.swarm.record import Announcement, namings, signed
from giaann_p2p.swarm.shardset import packed, unpacked
from giaann_p2p.swarm.storage import StoragePeer
from giaann_p2p.swarm.token import Rights
from giaann_p2p.swarm.weighing import Weights, weighed
from giaann_p2p.swarm.withdrawing import Withdraw

_ANNOUNCE = 10.0
_RETRY = 1.0
_WEIGHING = 0.02
"""Seconds that it takes to weigh shards."""
_SNAPSHOT_EVERY = 4
"""Releases between two snapshots; a real store makes one when its log has grown."""
_SPARE = 1 << 20
QUICK_DISK = 0.005
"""Seconds that a deed takes on a healthy disk, on average."""


class Storage(Node):
    """See the module."""

    def __init__(self, swarm: Swarm, name: str, skew: float) -> None:
        seed = random.Random(f"{swarm.seed} {name}").randbytes(32)
        self.identity = Identity.from_seed(seed)
        peer = self.identity.peer
        around = swarm.surroundings(peer)
        super().__init__(name, peer, swarm.clock, swarm.network, swarm.trace, around, skew)
        self.swarm, self.promises = swarm, swarm.promises
        swarm.admit(peer, Rights.STORAGE)
        self.rng = random.Random(f"{swarm.seed} {name} disk")
        self.capacity = swarm.rng.choice((1, 2, 4)) << 30
        self.disk = FakeDisk()
        self.disk_delay = QUICK_DISK
        self.left = self.lost = False
        """It has handed all over and gone, or was lost for ever."""
        self._sequence = self._releases = 0
        self.begin()

    def begin(self) -> None:
        """Begin a life."""
        swarm, layout = self.swarm, self.swarm.layout
        self.store = Store.open(
            self.disk, SPEC, layout, retain=True, spare=_SPARE, clock=lambda: self.now
        )
        self.around = swarm.surroundings(self.peer)
        self._incarnation = self.rng.getrandbits(63)
        self.core = StoragePeer(
            self.peer,
            self.capacity,
            swarm.rules,
            swarm.settings,
            self.around,
            self.store,
            self.store.shards,
            swarm.terms,
            self.now,
            self._incarnation.to_bytes(8, "little"),
        )
        self.orphans = Orphans()
        self.answers = Answers(self.store, self.core.replicas.state, self.peer, self.orphans)
        self._deeds: deque[Callable[[], bool]] = deque()
        self._busy = False
        self._told, self._list = "", 0
        self.say(f"begins with {len(self.store.shards)} shards on its disk")
        self._announce(self.core.announcement())
        self._look()
        self.later(self.rng.random(), self.every_tick)
        self.later(_ANNOUNCE, self._again)

    def _again(self) -> None:
        self._announce(self.core.announcement())
        self.later(_ANNOUNCE, self._again)

    def _look(self) -> None:
        """Get what others know of everybody, as a look-up in the directory does."""
        for data in self.swarm.records_seen_from(self):
            self.learn(data)
        if self.swarm.is_heard(self):
            self.around.looked(self.now)
        else:
            self.later(_RETRY, self._look)

    @property
    def keeps(self) -> bool:
        """Whether what it has is or will be there again."""
        return not (self.left or self.lost)

    def tick(self) -> None:
        """Let the core look at everything anew."""
        self._do(self.core.tick(self.now))
        revoked = self.swarm.admission.revoked
        if revoked.number != self._list:
            self._list = revoked.number
            deed = Withdraw(self.swarm.admission, self._list, self.orphans)
            self._queue(partial(self._withdraw, deed))

    def _withdraw(self, deed: Withdraw) -> bool:
        """Let go of what the founder has withdrawn, a little at a time."""
        try:
            self.store.apply(deed.next(self.store))
            deed.done(self.store)
        except GiaannError:
            self._list = -1  # the disk, most likely: once more
        else:
            if not deed.over:
                self._queue(partial(self._withdraw, deed))
        return True

    def asked(self, sender: Peer, question: Message, reply: Callable[[bytes], None]) -> None:
        """Answer, and have it checked what is served."""
        answer = partial(self._reply, question, reply)
        if isinstance(question, Push):
            ticket = self.swarm.ticket(answer)
            self._do(self.core.asked(ticket, question, self.now))
        else:
            said = self.answers.to(question)
            if isinstance(said, Rows):
                self._check(question, said)
            answer(said)

    def _check(self, question: Message, said: Rows) -> None:
        """Have it checked what is served here."""
        if not isinstance(question, Read):
            return
        concepts = np.frombuffer(question.concepts, "<u8").tolist()
        features = np.frombuffer(question.features, "<u8").tolist()
        moved = set(unpacked(said.moved, self.swarm.layout.shards).tolist())
        asked = [
            neuron
            for neuron in map(Neuron, concepts, features)
            if self.swarm.layout.shard_of(*neuron) not in moved
        ]
        self.promises.served(self, asked, rows_of(said.parcel, self.store.limits))

    def _reply(self, question: Message, reply: Callable[[bytes], None], answer: Message) -> None:
        if isinstance(question, Push) and isinstance(answer, Pushed):
            shards = unpacked(answer.shards, self.swarm.layout.shards)
            self.swarm.promises.acked(self, question.job, question.chunk, shards)
        reply(encode(answer))

    def restarted(self, peer: Peer) -> None:
        """What another machine said in its earlier life counts no longer."""
        self.core.restarted(peer)

    def leave(self) -> None:
        """Hand everything over and go."""
        self.say("is told to leave")
        self._do(self.core.leave(self.now))

    def crash(self, in_the_middle: bool = False, lost: bool = False) -> None:
        """Die at once, perhaps with half of a deed done; the disk may lose what was not synced."""
        if in_the_middle and self._deeds:
            self.disk.fail_at(self.rng.randrange(1, 4), 5, partial=True, times=1 << 30)
            self._deeds.popleft()()
        self.say("crashes" + (" and is lost for ever" if lost else ""))
        self.die()
        self.lost = lost
        self.disk = self.disk.crash(self.rng)

    def restart(self) -> None:
        """Begin anew with what the disk has."""
        self.alive = True
        try:
            self.begin()
        except DamagedError as error:
            self.swarm.promises.broken(f"{self.name} cannot be opened after a crash: {error}")
        else:
            self.swarm.promises.reopened(self)

    def _do(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Call):
                then = partial(self._answered, action.number)
                self.ask(action.peer, action.message, action.timeout, then)
            elif isinstance(action, Reply):
                self.swarm.answer(action.ticket, action.message)
            elif isinstance(action, Announce):
                self._announce(action)
            elif isinstance(action, Leave):
                self._left()
            elif isinstance(action, Weigh):
                weights = weighed(self.store, action.shards.tolist(), action.salt)
                self.later(_WEIGHING, partial(self._weighed, action.number, weights))
            else:
                known = self.promises.known(self, action) if isinstance(action, Release) else {}
                self._queue(partial(self._deed, action, known))

    def _weighed(self, number: int, weights: Weights) -> None:
        self._do(self.core.weighed(number, weights, self.now))

    def _answered(self, number: int, answer: Message | None) -> None:
        self._do(self.core.answered(number, answer, self.now))

    def _queue(self, deed: Callable[[], bool]) -> None:
        self._deeds.append(deed)
        if not self._busy:
            self._busy = True
            self._soon()

    def _soon(self) -> None:
        self.later(self.disk_delay * (0.5 + self.rng.random()), self._next)

    def _next(self) -> None:
        if self._deeds[0]():
            self._deeds.popleft()
        else:
            self.later(_RETRY, self._next)
            return
        if self._deeds:
            self._soon()
        else:
            self._busy = False

    def _deed(self, action: Action, known: Mapping[int, set[Peer]]) -> bool:
        """Change the store; tell whether it is over, if only with an error.

        `known`: who was known to hold what is released, when that was decided.
        """
        try:
            if isinstance(action, Hold):
                self.store.hold(action.shards.tolist())
            elif isinstance(action, Drop):
                held = self.store.sets(action.shards.tolist())
                self.store.drop(action.shards.tolist())
                self.promises.let_go(self, held)
            elif isinstance(action, Apply):
                self.store.apply(action.unpacked())
            elif isinstance(action, Adopt):
                self.store.adopt(action.content())
            elif isinstance(action, Release):
                for shards, chunks in action.parts:
                    for job in chunks:
                        self.store.release(job, chunks.of(job), shards.tolist())
                self._releases += 1
                if self._releases % _SNAPSHOT_EVERY == 0:
                    self.store.snapshot()
                self.promises.released(self, action, known)
        except GiaannError as error:
            if isinstance(action, Hold | Drop):
                return False
            if isinstance(action, Apply | Adopt):
                self._do(self.core.stored(action.number, error, self.now))
            return True
        if isinstance(action, Apply | Adopt):
            self._do(self.core.stored(action.number, None, self.now))
        return True

    def _announce(self, news: Announce) -> None:
        self._sequence = max(self._sequence + 1, int(self.now * 1000))
        if (told := repr(self.core.replicas)) != self._told:
            self._told = told
            self.say(f"has {told}")
        for peer in news.wrong:
            self.promises.named(self, peer)
        count = self.swarm.layout.shards
        record = signed(
            self.identity,
            Announcement(
                swarm_id=self.swarm.swarm_id,
                peer=self.peer,
                role="storage",
                state="draining" if news.leaving else "active",
                incarnation=self._incarnation,
                sequence=self._sequence,
                issued=int(self.now),
                capacity=self.capacity,
                used=self.store.nbytes,
                ready=packed(news.ready, count),
                syncing=packed(news.syncing, count),
                wrong=namings(news.wrong, self.swarm.layout),
                token=self.swarm.token_of(self.peer),
            ),
        )
        self.learn(record)
        self.swarm.publish(self, record)

    def _left(self) -> None:
        self.say("has left")
        self.die()
        self.left = True


def rows_of(data: bytes, limits: Limits) -> ToldRows:
    """Return the rows of an answer, in whichever form they came."""
    if data[: len(plain.MAGIC)] == plain.MAGIC:
        return plain.decode(data, limits)
    return sheaf.decode(data, limits)


def join(swarm: Swarm) -> None:
    """Let another storage peer join."""
    swarm.storages.append(Storage(swarm, f"peer{len(swarm.storages)}", swarm.skew()))
