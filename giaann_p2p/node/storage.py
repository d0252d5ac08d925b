"""A storage peer, alive: it feeds `swarm.storage` with what happens, and does what that decides.

1. Nothing is decided before the first look at the board went well, for who knows of nobody would
   take itself for the only peer. What is asked meanwhile is answered with what there is.
2. An update is acknowledged when it is on the disk, and an acknowledgement is given once.
3. Over its bounds it refuses, in words, and stays up. An error that nobody planned for ends it:
   `run` raises it, and nothing is left running.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from giaann_p2p.errors import GiaannError, PeerError, TokenError
from giaann_p2p.net.board import Board
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.acquaintances import Acquaintances
from giaann_p2p.node.answering import Answering
from giaann_p2p.node.calls import Calls
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.counters import Counters
from giaann_p2p.node.gate import Gate
from giaann_p2p.node.holdings import Holdings
from giaann_p2p.node.keeper import Keeper, Wanted
from giaann_p2p.node.lifetime import Lifetime, Part
from giaann_p2p.node.lookout import Lookout
from giaann_p2p.node.options import Options
from giaann_p2p.node.presence import Presence
from giaann_p2p.node.quarrel import Quarrel
from giaann_p2p.node.reception import Reception
from giaann_p2p.node.revoking import Revoking
from giaann_p2p.node.rules import Rules
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
from giaann_p2p.swarm.identity import Identity, Peer, name_of
from giaann_p2p.swarm.manifest import Manifest
from giaann_p2p.swarm.messages import (
    Message,
    Push,
)
from giaann_p2p.swarm.orphans import Orphans
from giaann_p2p.swarm.record import (
    MOST_CAPACITY,
    MOST_RECORD_ADDRESSES,
    Announcement,
    Load,
    namings,
)
from giaann_p2p.swarm.replica import State
from giaann_p2p.swarm.settings import Settings
from giaann_p2p.swarm.shardset import packed
from giaann_p2p.swarm.storage import StoragePeer
from giaann_p2p.swarm.surroundings import Surroundings
from giaann_p2p.swarm.terms import Terms
from giaann_p2p.swarm.voucher import Notary
from giaann_p2p.swarm.weighing import weighed
from giaann_p2p.swarm.withdrawing import Withdraw


class StorageNode:
    """See the module. The store stays the caller's, to be closed when `run` has ended."""

    def __init__(
        self,
        identity: Identity,
        manifest: Manifest,
        store: Store,
        transport: Transport,
        board: Board,
        *,
        capacity: int,
        addresses: Callable[[], Sequence[str]] = tuple,
        acquaintances: Acquaintances | None = None,
        settings: Settings | None = None,
        options: Options | None = None,
        clock: Callable[[], float] | None = None,
        incarnation: Callable[[], int] = lambda: secrets.randbits(63),
        log: logging.Logger | None = None,
        gate: Gate | None = None,
    ) -> None:
        self.me = identity.peer
        self.counters = Counters()
        self._manifest, self._store, self._transport = manifest, store, transport
        self._capacity, self._addresses, self._acquaintances = capacity, addresses, acquaintances
        self._options = options or Options()
        self._clock = clock or Clock()
        self.gate = gate or Gate(manifest, transport, clock=self._clock)
        self._log = log or logging.getLogger("giaann.storage")
        self._incarnation = incarnation()
        self._threads = ThreadPoolExecutor(self._options.threads, "giaann-answers")
        self._writer = ThreadPoolExecutor(2, "giaann-store")  # one for deeds, one for snapshots
        self._settings, self._holdings = settings or Settings(), Holdings(store)
        self.lookout = self._new_lookout(board)
        self.terms = self._new_terms()
        self.core = self._new_core()
        self.keeper = Keeper(
            store,
            self._holdings,
            self._stored,
            write=self._writer,
            beside=self._writer,
            options=self._options,
            log=self._log,
        )
        self.presence = Presence(
            identity,
            board,
            self.lookout,
            self._record,
            self._clock,
            last=acquaintances.sequence if acquaintances is not None else 0,
            options=self._options,
            log=self._log,
        )
        self._life = Lifetime(self._log)
        self.calls = Calls(transport, self._life.fail)
        self._orphans = Orphans()
        self.answering = Answering(
            store, self._state_of, self._threads, self._options, self.me, self._orphans
        )
        self.gate.on_change(self._members_changed)
        self.reception = Reception(
            self.gate,
            self.answering,
            self.counters,
            self._take,
            lambda: self.keeper.fullness,
            self._options.queue_patience,
        )
        self._load, self._counted = Load(), (0, 0)
        self._left = asyncio.Event()
        self._told = ""
        self._quarrel = Quarrel(self._log)

    def __repr__(self) -> str:
        return f"<StorageNode {name_of(self.me)}: {self.core.replicas!r}>"

    @property
    def ready(self) -> bool:
        """Whether it knows the others, and all that it should hold is ready here."""
        replicas = self.core.replicas
        syncing = replicas.all(State.SYNCING)
        return self.reception.open and not len(syncing)

    async def run(self) -> None:
        """Live, until it has left, or is closed, or fails."""
        self._transport.serve(self.reception.answer)
        self._transport.on_lost(self._lost)
        held = len(self._store.shards)
        self._log.info("%s begins with %d shards here already", name_of(self.me), held)
        self._withdraw()
        await self._life.run(self._parts(), self._end)

    def leave(self) -> None:
        """Hand over all that is here, then end."""
        if not self.core.leaving:
            self._log.info("draining: %d shards are to be handed over", len(self._store.shards))
            self._do(self.core.leave(self._clock()))
            self.presence.changed()

    async def close(self) -> None:
        """End now, whatever is still here."""
        await self._life.close()

    # Its parts, and their end.

    def _new_lookout(self, board: Board) -> Lookout:
        manifest = self._manifest
        return Lookout(
            board,
            Surroundings.of(self.me, manifest, self.gate.admission),
            manifest.layout,
            manifest.swarm_id,
            self._clock,
            restarted=self._restarted,
            options=self._options,
            log=self._log,
        )

    def _new_core(self) -> StoragePeer:
        return StoragePeer(
            self.me,
            self._capacity,
            Rules.of(self._manifest),
            self._settings,
            self.lookout.others,
            self._holdings,
            self._store.shards,
            self.terms,
            self._clock(),
            secrets.token_bytes(32),
        )

    def _new_terms(self) -> Terms:
        manifest = self._manifest
        notary = Notary(
            manifest.swarm_id, manifest.layout, manifest.redundancy, self.gate.admission
        )
        return Terms.of(manifest.spec, manifest.layout, notary.check, self.gate.admission)

    def _parts(self) -> list[Part]:
        parts = [
            self.lookout.run(),
            self.presence.run(),
            self.keeper.run(),
            self._tick(),
            self._departure(),
            Revoking(self.gate, self.lookout, self._transport, self._log).run(),
        ]
        if self._acquaintances is not None:
            parts.append(self._acquaintances.run(self.lookout, self._threads))
        return parts

    async def _end(self) -> None:
        self.reception.close()
        try:
            await self.calls.end()
            await self.answering.end()
            if self._left.is_set() and not self._life.has_failed:
                await self.presence.say("left")
                self._log.info("left")
        finally:
            self._threads.shutdown()
            self._writer.shutdown()

    async def _departure(self) -> None:
        """End when all is handed over, and nothing is left to be done."""
        await self._left.wait()
        await self.keeper.idle()
        self._life.end()

    async def _tick(self) -> None:
        await self.lookout.whole.wait()
        self.reception.open = True
        while True:
            self._count()
            self._do(self.core.tick(self._clock()))
            self._tell()
            await asyncio.sleep(self._options.tick)

    # What happens, and what comes of it.

    def _do(self, actions: Sequence[Action], wanted: Wanted | None = None) -> None:
        """Carry actions out; `wanted` tells whether the peer that pushed still waits for them."""
        for action in actions:
            if isinstance(action, Call):
                self.calls.start(action, partial(self._answered, action.number))
            elif isinstance(action, Reply):
                self.reception.reply(action)
            elif isinstance(action, Announce):
                self.presence.changed()
            elif isinstance(action, Leave):
                self._left.set()
            elif isinstance(action, Hold | Drop | Apply | Adopt | Release):
                self.counters.repairs += isinstance(action, Adopt)
                if isinstance(action, Apply) and wanted is None:
                    self.counters.repairs += len(action.updates)
                self.keeper.do(action, wanted)
            elif isinstance(action, Weigh):
                self._life.start(self._weigh(action))

    async def _weigh(self, action: Weigh) -> None:
        work = partial(weighed, self._store, action.shards.tolist(), action.salt)
        weights = await asyncio.get_running_loop().run_in_executor(self._threads, work)
        self._do(self.core.weighed(action.number, weights, self._clock()))

    def _answered(self, number: int, answer: Message | None) -> None:
        self._do(self.core.answered(number, answer, self._clock()))

    def _stored(self, number: int, error: GiaannError | None) -> None:
        self._do(self.core.stored(number, error, self._clock()))

    def _restarted(self, peer: Peer) -> None:
        self.core.restarted(peer)

    def _state_of(self, shard: int) -> State:
        return self.core.replicas.state(shard)

    def _members_changed(self) -> None:
        if why := self.gate.own_fault():
            self._life.fail(TokenError(why))
        self._withdraw()
        self.lookout.others.around.directory.look_again(self.lookout.time())
        self.presence.changed()

    def _withdraw(self) -> None:
        """Let go of what the founder has withdrawn, and find what else the disowned taught."""
        admission = self.gate.admission
        if admission.revoked.disowned:
            self.keeper.do(Withdraw(admission, admission.revoked.number, self._orphans))

    def _lost(self, peer: bytes, error: PeerError) -> None:
        self.counters.lost += 1
        self._log.debug("lost the connection to %s: %s", name_of(Peer(peer)), error)

    def _take(self, ticket: int, question: Push) -> None:
        wanted = partial(self.reception.wants, ticket)
        self._do(self.core.asked(ticket, question, self._clock()), wanted)

    # What it says of itself.

    def _record(self) -> Announcement:
        count, said = self._manifest.layout.shards, self.core.announcement()
        return Announcement(
            swarm_id=self._manifest.swarm_id,
            peer=self.me,
            role="storage",
            state="draining" if said.leaving else "active",
            incarnation=self._incarnation,
            sequence=0,
            issued=0,
            capacity=self._capacity,
            used=min(self._store.nbytes, MOST_CAPACITY),
            ready=packed(said.ready, count),
            syncing=packed(said.syncing, count),
            wrong=namings(said.wrong, self._manifest.layout),
            load=self._load,
            addresses=tuple(self._addresses())[:MOST_RECORD_ADDRESSES],
            token=self.gate.token,
            revoked=self.gate.admission.revoked.number,
        )

    def _count(self) -> None:
        now = self.counters.reads, self.counters.pushes
        reads, writes = (new - old for new, old in zip(now, self._counted, strict=True))
        self._load = Load(
            queue=len(self.keeper),
            reads=int(reads / self._options.tick),
            writes=int(writes / self._options.tick),
        )
        self._counted = now

    def _tell(self) -> None:
        replicas = self.core.replicas
        self._quarrel.look(self.core.auditing.wrong(), replicas.disputed)
        ready, draining = len(replicas.all(State.READY)), len(replicas.all(State.DRAINING))
        told = f"ready {ready}/{ready + len(replicas.all(State.SYNCING))} shards"
        if draining:
            told += f", {draining} to be handed over"
        if told != self._told:
            self._told = told
            self._log.info(told)
