"""A simulated storage peer: the real decisions and store, on a disk with injected faults."""

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from giaann_p2p.errors import GiaannError
from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.sim.owner import USUAL, Kind, Owner
from giaann_p2p.sim.storage_node import StorageMachine
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.replication.known_sets import NOTE
from giaann_p2p.swarm.replication.retract import Withdraw
from giaann_p2p.swarm.replication.shard_fingerprint import Weights, weighed
from giaann_p2p.swarm.replication.storage import StoragePeer
from giaann_p2p.swarm.wire.actions import (
    Action,
    Adopt,
    Announce,
    Apply,
    Call,
    Cool,
    Drop,
    Forget,
    Hold,
    Leave,
    Note,
    Release,
    Reply,
    Thaw,
    Weigh,
)
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.messages import Message, Push, encode
from giaann_p2p.swarm.wire.orphans import Orphans
from giaann_p2p.swarm.wire.record import Announcement, missing_of, namings, signed
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.token import Rights

_ANNOUNCE = 10.0
_RETRY = 1.0
_WEIGHING = 0.02
"""Virtual seconds that a fingerprint of shards takes."""
_SNAPSHOT_EVERY = 4
"""The number of releases between two snapshots; a real store makes one when its log has grown."""


class Storage(Owner):
    """A storage peer whose actions are carried out one by one, each after its disk's delay."""

    def __init__(self, swarm: Swarm, name: str, skew: float, kind: Kind = USUAL) -> None:
        seed = random.Random(f"{swarm.seed} {name}").randbytes(32)
        self.identity = Identity.from_seed(seed)
        peer = self.identity.peer
        around = swarm.view_of(peer)
        super().__init__(name, peer, swarm.clock, swarm.network, swarm.trace, around, skew)
        swarm.admit(peer, Rights.STORAGE)
        self.rng = random.Random(f"{swarm.seed} {name} disk")
        self.equip(swarm, kind)
        self._sequence = self._releases = 0
        self.begin()

    def begin(self) -> None:
        """Start, or restart with the data on the disk."""
        swarm = self.swarm
        self.store = self.opened(Store)
        self.around = swarm.view_of(self.peer, self.store.notes)
        self._incarnation = self.rng.getrandbits(63)
        self.core = StoragePeer(
            self.peer,
            self.capacity,
            swarm.rules,
            swarm.settings,
            self.around,
            self.store,
            self.store.shards,
            swarm.delta_checks,
            self.now,
            self._incarnation.to_bytes(8, "little"),
        )
        if NOTE in self.store.notes:
            self.core.known.restore(self.store.notes[NOTE], swarm.rules.shards, self.now)
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
        """Fetch the records of other machines, as a look-up does; retry if none is reached."""
        self.swarm.introduce(self)
        if self.swarm.is_heard(self):
            self.around.looked(self.now)
        else:
            self.later(_RETRY, self._look)

    def tick(self) -> None:
        """Let the core decide which actions are due, and follow the founder's latest list."""
        self._do(self.core.tick(self.now))
        self._do(self.around.standing.note())
        revoked = self.swarm.admission.revoked
        if revoked.number != self._list:
            self._list = revoked.number
            search = self.core.search(revoked.sought)
            search = search._replace(disowned=self.swarm.admission.disowned)
            deed = Withdraw(self.swarm.admission, self._list, self.orphans, search)
            self._queue(partial(self._withdraw, deed))

    def _withdraw(self, deed: Withdraw) -> bool:
        """Carry out the founder's withdrawals, one batch at a time."""
        try:
            self.store.apply(deed.next(self.store))
            deed.done(self.store)
        except GiaannError:
            self._list = -1  # most likely a disk error: retry
        else:
            if not deed.over:
                self._queue(partial(self._withdraw, deed))
        return True

    def asked(self, sender: Peer, question: Message, reply: OnAnswer) -> None:
        """Answer a question, and check the rows that are served."""
        answer = partial(self._reply, question, reply)
        if isinstance(question, Push):
            ticket = self.swarm.ticket(answer)
            self._do(self.core.asked(ticket, sender, question, self.now))
        else:
            answer(self.answers.to(question))

    def _reply(self, question: Message, reply: OnAnswer, answer: Message) -> None:
        self.check(question, answer)
        reply(encode(answer))

    def restarted(self, peer: Peer) -> None:
        """Forget what another machine reported before its restart."""
        self.core.restarted(peer)

    def leave(self) -> None:
        """Hand over all shards, then leave."""
        self.say("is told to leave")
        self._do(self.core.leave(self.now))

    def next_write(self) -> Callable[[], bool] | None:
        """Return the write that the disk is at, or None."""
        return self._deeds[0] if self._deeds else None

    def _do(self, actions: Sequence[Action]) -> None:
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
        self.later(self.write_seconds(), self._next)

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
        """Carry out a store action; return whether it is over, even if with an error.

        `known` has, by shard, the peers that were known to hold the released deltas when this was
        decided.
        """
        try:
            if isinstance(action, Hold):
                self.store.hold(action.shards.tolist())
            elif isinstance(action, Drop):
                held = self.store.sets(action.shards.tolist())
                self.store.drop(action.shards.tolist())
                self.promises.let_go(self, held)
            elif isinstance(action, Note):
                self.store.note(action.key, action.value)
            elif isinstance(action, Cool):
                self.store.cool(action.shard, action.now)
            elif isinstance(action, Thaw):
                self.store.thaw(action.shard)
            elif isinstance(action, Forget):
                self.store.cold.forget(action.shards.tolist())
                self.promises.forgot(self)
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
            if isinstance(action, Apply | Adopt | Cool | Thaw):
                self._do(self.core.stored(action.number, error, self.now))
            return True
        if isinstance(action, Apply | Adopt | Cool | Thaw):
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
                cold=packed(news.cold, count),
                durable=self.store.cold.durable,
                missing=missing_of(news.missing, count),
                token=self.swarm.token_of(self.peer),
            ),
        )
        self.learn(record)
        self.swarm.publish(self, record)

    def _left(self) -> None:
        self.say("has left")
        self.die()
        self.left = True


def join(swarm: Swarm, name: str = "", kind: Kind = USUAL) -> Owner:
    """Add another storage peer, as real as those of the swarm are."""
    make = StorageMachine if swarm.real else Storage
    peer = make(swarm, name or f"peer{len(swarm.storages)}", swarm.skew(), kind)
    swarm.storages.append(peer)
    return peer
