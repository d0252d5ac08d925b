"""A running storage peer: the I/O for the decisions of `swarm.replication.storage`.

1. Nothing is decided before the first successful look at the DHT board, because a peer that knows
   no others would conclude that it is alone. Until then, the peer answers reads and other questions
   about the shards that it holds, and refuses updates.
2. An update is acknowledged once it is on the disk, and only once.
3. The peer refuses requests beyond its bounds, with a reason, and stays up. An unexpected error
   ends the peer: `run` raises it, and nothing is left running.
4. When an edition has more shards, the store writer divides those of the store. Then, in one step
   of the event loop, the edition takes effect, and the decisions, the snapshot of the store and the
   answers are replaced by those for the new shards. Orders and questions of the old decisions are
   void; only their replies to pushes are still sent.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import msgspec
import numpy as np

from giaann_p2p.errors import GiaannError, StoreError, StoreFull, UsageError
from giaann_p2p.node.counters import Counters
from giaann_p2p.node.lifetime import Part
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.member import Member
from giaann_p2p.node.notes import take_in
from giaann_p2p.node.replication.answering import Answering
from giaann_p2p.node.replication.dispute_log import DisputeLog
from giaann_p2p.node.replication.holdings import Holdings
from giaann_p2p.node.replication.reception import Reception
from giaann_p2p.node.replication.store_writer import Change, StoreWriter, Wanted
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.members import standing
from giaann_p2p.swarm.members.capacity import Room
from giaann_p2p.swarm.members.standing import Standing
from giaann_p2p.swarm.replication import known_sets
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.replication.retract import Withdraw
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.replication.shard_fingerprint import weighed
from giaann_p2p.swarm.replication.storage import StoragePeer
from giaann_p2p.swarm.wire.actions import (
    Action,
    Adopt,
    Announce,
    Apply,
    Call,
    Drop,
    Hold,
    Leave,
    Reply,
    TakeFingerprints,
)
from giaann_p2p.swarm.wire.division import DIVIDING
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Carry, Push, PushFrom
from giaann_p2p.swarm.wire.orphans import Orphans
from giaann_p2p.swarm.wire.record import MOST_CAPACITY, Announcement, Load, missing_of, namings
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.voucher import Notary
from giaann_p2p.units import readable_bytes


class StorageNode:
    """A running storage peer. The caller owns the store, and closes it when `run` has ended."""

    def __init__(
        self, context: Context, store: Store, *, capacity: int, settings: Settings | None = None
    ) -> None:
        self.counters = Counters()
        self._manifest, self._clock, self._log = context.manifest, context.clock, context.log
        self._options, self.gate = context.options, context.gate
        divide(store, self.gate.rules().shards)
        self._store, self._holdings = store, Holdings(store)
        self._capacity, self._settings = capacity, settings or Settings()
        self._threads = ThreadPoolExecutor(self._options.threads, "giaann-answers")
        self._writer = ThreadPoolExecutor(2, "giaann-store")  # one for writes, one for snapshots
        self.member = Member(
            context,
            "storage",
            self._record,
            standing=self._standing(context.identity.peer),
            restarted=self._restarted,
        )
        self.me, self.lookout, self.calls = self.member.me, self.member.lookout, self.member.calls
        self.delta_checks = self._new_checks()
        self.core = self._new_core(context.secret)
        self.store_writer = self._new_store_writer()
        self._orphans = Orphans()
        self.answering = Answering(
            store,
            self.core.replicas.state,
            self._threads,
            self._options,
            self.me,
            self._orphans,
            self.core.carried,
            self._holdings.sets,
        )
        self.gate.on_change(self._withdraw)
        self.gate.on_division(self._divide)
        self.reception = Reception(
            self.gate,
            self.answering,
            self.counters,
            self._take,
            self._carry,
            lambda peer: self.core.differs(peer, self._clock()),
            lambda: self.store_writer.fullness,
            lambda: self.store_writer.is_dividing,
            self._options.queue_patience,
        )
        self._load, self._counted = Load(), (0, 0)
        self.room, self._level = Room(capacity), ""
        self._left = asyncio.Event()
        self._told = ""
        self._dispute_log = DisputeLog(self._log)

    def __repr__(self) -> str:
        return f"<StorageNode {name_of(self.me)}: {self.core.replicas!r}>"

    @property
    def ready(self) -> bool:
        """Whether the peer knows the other peers, and every shard that it owns is ready."""
        return self.reception.open and not self.core.replicas.catching_up

    async def run(self) -> None:
        """Run the storage peer until it has left, is closed, or fails."""
        held = len(self._store.shards)
        self._log.info("%s: starting; %d shards on disk", name_of(self.me), held)
        self._withdraw()
        await self.member.run(self.reception.answer, self._parts(), self._end, self._threads)

    def leave(self) -> None:
        """Start to drain: hand over all shards, then end."""
        if not self.core.leaving:
            self._log.info("draining: handing over %d shards", len(self._store.shards))
            self._do(self.core.leave(self._clock()))
            self.member.announce()

    @property
    def taught(self) -> bool:
        """Whether any shard here has applied a chunk."""
        return any(self._holdings.sets(self.core.replicas.held.tolist()).values())

    def go(self) -> None:
        """End a peer that has nothing to hand over, and announce that it has left.

        Updates are refused from now on, because the peer could otherwise acknowledge one that no
        other peer has.
        """
        if not self._left.is_set():
            self._log.info("this peer holds no chunk of a text, so it has nothing to hand over")
            self.reception.close()
            self._left.set()

    async def close(self) -> None:
        """End the storage peer now, without handing over its shards."""
        await self.member.life.close()

    # The node's parts, and their end.

    def _standing(self, me: Peer) -> Standing:
        """Return the book of standing, restored from a note of an earlier run in the store."""
        book = Standing(me, self._settings.standing, self._settings.founding)
        take_in(book.restore, self._store.notes.get(standing.NOTE), self._log)
        return book

    def _new_core(self, secret: bytes) -> StoragePeer:
        core = StoragePeer(
            self.me,
            self._capacity,
            self._settings,
            self.lookout.view,
            self._holdings,
            self._store.shards,
            self.delta_checks,
            now := self._clock(),
            secret,
        )
        first, shards = self._manifest.layout.shards, core.replicas.shards
        restore = partial(core.known.restore, first=first, shards=shards, now=now)
        take_in(restore, self._store.notes.get(known_sets.NOTE), self._log)
        return core

    def _new_checks(self) -> DeltaChecks:
        manifest = self._manifest
        rules, members = self.gate.rules, self.gate.admission
        notary = Notary(manifest.swarm_id, rules, manifest.redundancy, members)
        return DeltaChecks(manifest.spec, rules, notary.check, members)

    def _new_store_writer(self, make: Callable[..., StoreWriter] = StoreWriter) -> StoreWriter:
        return make(
            self._store,
            self._holdings,
            self._stored,
            write=self._writer,
            beside=self._writer,
            options=self._options,
            clock=self._clock,
            log=self._log,
        )

    def _parts(self) -> list[Part]:
        return [self.store_writer.run(), self._tick(), self._departure()]

    async def _end(self) -> None:
        self.reception.close()
        try:
            await self.calls.end()
            await self.answering.end()
            if self._left.is_set():
                await self.member.say_left()
        finally:
            self._threads.shutdown()
            self._writer.shutdown()

    async def _departure(self) -> None:
        """End the peer when it has handed over its shards and the store writer is idle."""
        await self._left.wait()
        await self.store_writer.idle()
        self.member.life.end()

    async def _tick(self) -> None:
        await self.lookout.whole.wait()
        self.reception.open = True
        while True:
            self._count()
            self._do(self.core.tick(self._clock()))
            self._do(self.lookout.view.standing.note())
            self._tell()
            await asyncio.sleep(self._options.tick)

    # Events, and the actions that follow from them.

    def _do(self, actions: Sequence[Action]) -> None:
        """Carry out actions that the present decisions ordered."""
        for action in actions:
            if isinstance(action, Call) and action.peer == self.me:
                self.member.life.start(self._ask_itself(self.core, action))
            elif isinstance(action, Call):
                self.calls.start(action, partial(self._answered, self.core, action.number))
            elif isinstance(action, Reply):
                self.reception.reply(action)
            elif isinstance(action, Announce):
                self.member.announce()
            elif isinstance(action, Leave):
                self._left.set()
            elif isinstance(action, Change):
                self.counters.repairs += _repairs(action)
                self.store_writer.do(action, self._wanted(action))
            elif isinstance(action, TakeFingerprints):
                self.member.life.start(self._weigh(self.core, action))

    async def _ask_itself(self, core: StoragePeer, call: Call) -> None:
        """Answer this peer's call to itself, for rows of a delta that it carries."""
        answer: Message | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout(call.timeout):
                is_past = core is not self.core
                answer = DIVIDING if is_past else await self.answering.to(call.message)
        self._answered(core, call.number, answer)

    async def _weigh(self, core: StoragePeer, action: TakeFingerprints) -> None:
        work = partial(weighed, self._store, action.shards.tolist(), action.salt)
        weights = await asyncio.get_running_loop().run_in_executor(self._threads, work)
        if core.replicas.shards == self._store.layout.shards:  # else they may be of divided shards
            self._do(core.weighed(action.number, weights, self._clock()))

    def _answered(self, core: StoragePeer, number: int, answer: Message | None) -> None:
        actions = core.answered(number, answer, self._clock())
        if core is self.core:
            self._do(actions)
        else:
            self._reply(core, actions)

    def _stored(self, number: int, error: GiaannError | None) -> None:
        if isinstance(error, StoreFull):
            self.room.refused(error.more)
        self._do(self.core.stored(number, error, self._clock()))

    def _restarted(self, peer: Peer) -> None:
        self.core.restarted(peer)

    def _divide(self, shards: int, then: Callable[[], None]) -> None:
        """Divide the shards, for a swarm of `shards`; `then` lets the edition take effect."""
        self._log.info("dividing the shards: the swarm gets %d of them", shards)
        self.store_writer.double(shards, partial(self._follow, then))

    def _follow(self, then: Callable[[], None], void: Sequence[Change]) -> None:
        """Switch to decisions on the divided shards; `void` are the changes dropped for that.

        Void orders to hold or drop shards are replaced by orders for their child shards.
        """
        past = self.core
        self._reply(past, void)
        then()
        self._holdings.follow()
        self.core = past.doubled()
        replicas, here = self.core.replicas, self._store.shards
        self.answering.follow(replicas.state, self.core.carried)
        lacking, spare = np.setdiff1d(replicas.held, here), np.setdiff1d(here, replicas.held)
        self._do([change for change in (Hold(lacking), Drop(spare)) if len(change.shards)])
        if any(isinstance(change, Withdraw) for change in void):
            self._withdraw()
        self._log.info("divided the shards: %d of %d are here", len(replicas.held), replicas.shards)

    def _reply(self, past: StoragePeer, actions: Sequence[Action | Change]) -> None:
        """Carry out only the replies to pushes among the actions of past decisions.

        Updates are not written any more; their senders are told to push them again.
        """
        for action in actions:
            if isinstance(action, Reply):
                self.reception.reply(action)
            elif isinstance(action, Apply) and action.ticket is not None:
                error = StoreError(DIVIDING.reason)
                self._reply(past, past.stored(action.number, error, self._clock()))

    def _withdraw(self) -> None:
        """Withdraw the chunks on the founder's list, and search for others by disowned authors."""
        admission, found = self.gate.admission, self.gate.admission.revoked
        if found.disowned or found.sought or found.withdrawn:
            search = self.core.search(found.sought)._replace(disowned=admission.disowned)
            self.store_writer.do(Withdraw(admission, found.number, self._orphans, search))
            self.core.changed(self._clock())

    def _take(self, ticket: int, sender: Peer, question: Push | PushFrom) -> None:
        self._do(self.core.asked(ticket, sender, question, self._clock()))

    def _carry(self, sender: Peer, question: Carry) -> Message:
        return self.core.carry(sender, question, self._clock())

    def _wanted(self, change: Change) -> Wanted | None:
        """Return a check whether a pushed update's sender still waits; None for other changes."""
        if isinstance(change, Apply) and change.ticket is not None:
            self.reception.queued(change.ticket)
            return partial(self.reception.wants, change.ticket)
        return None

    # The node's record, load and log.

    def _record(self, draft: Announcement) -> Announcement:
        count, said = self.core.replicas.shards, self.core.announcement()
        return msgspec.structs.replace(
            draft,
            state="draining" if said.leaving else "active",
            capacity=self._capacity,
            used=min(self.room.used, MOST_CAPACITY),
            ready=packed(said.ready, count),
            syncing=packed(said.syncing, count),
            wrong=namings(said.wrong, count),
            cold=packed(said.cold, count),
            durable=self._store.cold.durable,
            missing=missing_of(said.missing, count),
            load=self._load,
            counted=0 if count == self._manifest.layout.shards else count,
        )

    def _count(self) -> None:
        if not self.store_writer.is_dividing:  # until it ends, some shards count several times
            self.room.look(self._store.used, self._clock())
        now = self.counters.reads, self.counters.pushes
        reads, writes = (new - old for new, old in zip(now, self._counted, strict=True))
        self._load = Load(
            queue=len(self.store_writer),
            reads=int(reads / self._options.tick),
            writes=int(writes / self._options.tick),
            growth=self.room.growth,
        )
        self._counted = now
        if self.room.level != self._level:
            self._level = self.room.level
            self._warn_of_room()
            self.member.announce()

    def _warn_of_room(self) -> None:
        if self._level:
            self._log.warning(
                "%s: %s of the %s of --capacity are taken; give more, or start more storage peers",
                self._level,
                readable_bytes(self.room.used),
                readable_bytes(self._capacity),
            )
        else:
            self._log.info("the store has room again")

    def _tell(self) -> None:
        replicas = self.core.replicas
        self._dispute_log.look(self.core.auditing.wrong(), replicas.disputed)
        ready, coming = len(replicas.all(ReplicaState.READY)), len(replicas.catching_up)
        told = f"ready {ready}/{ready + coming} shards"
        if spare := len(replicas.held) - ready - coming:
            told += f", {spare} to be handed over"
        if told != self._told:
            self._told = told
            self._log.info(told)


def divide(store: Store, shards: int) -> None:
    """Divide a store's shards if the swarm's shards were divided while the store was closed.

    UsageError if the store has more shards than the edition that this peer has saved.
    """
    if store.layout.shards > shards:
        raise UsageError(
            f"the store has {store.layout.shards} shards, but the swarm's rules that this peer"
            f" knows have {shards}: the file `edition` in its data folder is missing, or older than"
            " the store. Copy that file from the data folder of another peer of this swarm: the"
            " founder has signed it, so any peer's will do"
        )
    store.double(shards)


def _repairs(change: Change) -> int:
    """Return how many deltas and whole shards in a change were fetched by this peer itself."""
    if isinstance(change, Apply):
        return len(change.updates) if change.ticket is None else 0
    return int(isinstance(change, Adopt))
