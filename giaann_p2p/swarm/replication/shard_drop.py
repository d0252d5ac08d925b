"""Decides when a shard that other peers own leaves this peer's memory: once they have it.

Safety: a shard with chunks is dropped only when all its owners have proved in the last minute that
they hold the same chunks, and a quorum of them report it ready right now. The peers that report it
ready and have proved it, owners or beside them, must include a quorum of peers with standing, or
all peers with standing if these are fewer. So newcomers that join and vanish take no data with
them. Where the disk has room, the shard stays as a cold copy. A peer that leaves takes its disk
with it, so then only keepers count, which have standing and a disk.

The owners need not all be running at the moment of the drop. If they had to be, a peer could not
leave a swarm in which some peer is always being restarted.

A shard without chunks needs no proof, because nothing can be lost, and does not linger if all its
owners are ready. In a new swarm the first peers hold most shards, and would otherwise take part in
each chunk for half a minute longer.
"""

import numpy as np

from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.replication.cold_copies import ColdCopies
from giaann_p2p.swarm.replication.coverage import all_ready, covered
from giaann_p2p.swarm.replication.handover_proof import TRIAL, HandoverProof, Spare
from giaann_p2p.swarm.replication.readiness import Readiness
from giaann_p2p.swarm.replication.shared import Shared
from giaann_p2p.swarm.wire.actions import Action, Drop
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.replica import ReplicaState


class ShardDrop:
    """Decides when a storage peer drops shards that it no longer owns."""

    def __init__(
        self, shared: Shared, cooling: ColdCopies, readiness: Readiness, handover: HandoverProof
    ) -> None:
        self._replicas, self._others, self._held = shared.replicas, shared.others, shared.held
        self._shared, self._settings = shared, shared.settings
        self._writes, self._reports = shared.writes, shared.reports
        self._cooling, self._readiness, self._handover = cooling, readiness, handover

    def due(self, leaving: bool, now: float) -> tuple[list[Action], dict[int, Spare]]:
        """Drop the shards that may be dropped; return what owners must prove to allow others."""
        dropped, spare, cooled = list[int](), dict[int, Spare](), list[Action]()
        unwanted, lingered = self._unwanted(now)
        for shard, mine in self._held.sets(unwanted).items() if unwanted else ():
            if self._writes.awaited_by(shard) or self._cooling.awaits(shard, mine):
                continue
            if shard not in lingered and (mine or not self._is_ready_everywhere(shard, now)):
                continue
            goes = not mine or self._is_held_by_all(shard, mine, leaving, now)
            if goes and (not mine or self._cooling.may_drop(shard, mine, now)):
                self._replicas.covered(shard, now)
                self._reports.forget_shard(shard)
                dropped.append(shard)
            elif (one := self._spare(shard, mine, now)) is not None:
                spare[shard] = one
                cooled += self._cooling.cool(shard, now) if goes else []
        actions: list[Action] = [Drop(np.array(dropped, np.uint16))] if dropped else []
        return actions + cooled, spare

    def _is_held_by_all(self, shard: int, mine: Applied, leaving: bool, now: float) -> bool:
        """Return whether all owners, and enough peers with standing, have proved to hold `mine`."""
        owners, shown = self._replicas.owners(shard), self._handover.shown(shard, mine, now)
        if not shown >= {*owners}:
            return False
        words, quorum = self._readiness.words(shard, now, TRIAL), self._shared.rules.quorum
        if not covered(mine, words, owners, quorum, now - self._settings.word_counts):
            return False
        standing = self._others.standing_members(now) - {self._replicas.me}
        count = frozenset(filter(self._others.keeps, standing)) if leaving else standing
        safe = count.intersection(shown, self._ready_with(shard, mine, now))
        return len(safe) >= min(quorum, len(count))

    def _ready_with(self, shard: int, mine: Applied, now: float) -> list[Peer]:
        """Return the peers that lately reported a shard ready, with every chunk in `mine`."""
        words = self._readiness.words(shard, now).items()
        return [p for p, w in words if w.state is ReplicaState.READY and mine <= w.chunks]

    def _spare(self, shard: int, mine: Applied, now: float) -> Spare | None:
        """Return what a shard's owners must prove before it is dropped here.

        The result is None if there are fewer owners than a quorum.
        """
        owners, words = self._replicas.owners(shard), self._readiness.words(shard, now)
        if len(owners) < self._shared.rules.quorum:
            return None
        covering = [peer for peer in owners if peer in words and mine <= words[peer].chunks]
        beside = self._others.standing_members(now).intersection(self._ready_with(shard, mine, now))
        covering += sorted(beside.difference(owners))
        lately = self._readiness.words(shard, now, TRIAL)
        return Spare(mine, owners, covering, all_ready(lately, owners))

    def _is_ready_everywhere(self, shard: int, now: float) -> bool:
        """Return whether all owners of a shard lately reported it ready."""
        return all_ready(self._readiness.words(shard, now), self._replicas.owners(shard))

    def _unwanted(self, now: float) -> tuple[list[int], set[int]]:
        """Return the shards that this peer holds and does not own, ascending.

        Also those of them that it has kept for long enough: syncing shards may be dropped at once,
        draining shards after `linger` seconds.
        """
        if not len(
            self._replicas.all(ReplicaState.SYNCING, ReplicaState.DRAINING)
        ):  # the common case
            return [], set()
        syncing = self._replicas.all(ReplicaState.SYNCING).tolist()
        unwanted = [shard for shard in syncing if not self._replicas.wanted(shard)]
        lingered = {*unwanted, *self._replicas.lingered(self._settings.linger, now)}
        return sorted([*unwanted, *self._replicas.all(ReplicaState.DRAINING).tolist()]), lingered
