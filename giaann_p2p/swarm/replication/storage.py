"""A storage peer's decisions: which shards to hold, compare, fetch, drop, and announce.

The code is pure: events and the time go in, actions come out. `tick` re-examines everything, so a
lost message delays a decision but never prevents it. Decisions read the peer's own store directly,
but change it only through actions.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import GiaannError
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.layout import Shards, among
from giaann_p2p.swarm.members.beside import held_beside
from giaann_p2p.swarm.members.exclusion import Named, placed_by
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.replication.anti_entropy import AntiEntropy
from giaann_p2p.swarm.replication.arrival_log import ArrivalLog
from giaann_p2p.swarm.replication.cold_copies import ColdCopies
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.replication.fetch import Fetcher
from giaann_p2p.swarm.replication.handover_proof import HandoverProof
from giaann_p2p.swarm.replication.loss_watch import LossWatch
from giaann_p2p.swarm.replication.peer_reports import PeerReports
from giaann_p2p.swarm.replication.pushes import Pushes
from giaann_p2p.swarm.replication.readiness import Readiness
from giaann_p2p.swarm.replication.release import DeltaRelease
from giaann_p2p.swarm.replication.replica_audit import ReplicaAudit
from giaann_p2p.swarm.replication.replicas import Replicas
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.replication.shard_downloads import ShardDownloads
from giaann_p2p.swarm.replication.shard_drop import ShardDrop
from giaann_p2p.swarm.replication.shard_fingerprint import ShardFingerprints
from giaann_p2p.swarm.replication.shared import Held, Shared
from giaann_p2p.swarm.wire.actions import Action, Announce, Hold, Leave
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.limits import of_shard
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Carried, Carry, Push, PushFrom, Refusal
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.withdrawal_filter import Search, WithdrawalFilter


class _PlacedOn(NamedTuple):
    """The inputs of a placement; `standing` affects only what is held beside the owners."""

    rules: Rules
    members: Mapping[Peer, int]
    named: Named
    standing: frozenset[Peer]


class StoragePeer:
    """The decisions of one storage peer. Methods return the actions that the shell carries out."""

    def __init__(
        self,
        me: Peer,
        capacity: int,
        settings: Settings,
        others: PeersView,
        held: Held,
        on_disk: Shards,
        delta_checks: DeltaChecks,
        now: float,
        secret: bytes,
        past: "StoragePeer | None" = None,
    ) -> None:
        """Begin with the shards `on_disk`; `capacity` is the memory offered for shards, in bytes.

        `secret` is up to 64 random bytes that only this peer knows. `past` are the decisions before
        the number of shards doubled (see `doubled`).
        """
        self.me, self.settings = me, settings
        shards, reports = others.rules.shards, None
        if past is None:
            self.replicas = Replicas(me, shards, on_disk.tolist())
        else:
            self.replicas = past.replicas.doubled(shards)
            reports = past.reports.doubled(past.replicas.shards, shards)
        self.leaving: bool = past is not None and past.leaving
        self._capacity, self._others, self._held = capacity, others, held
        shared = Shared(settings, self.replicas, others, held, delta_checks, secret, now, reports)
        self.reports: PeerReports = shared.reports
        self._shared, self._calls = shared, shared.calls
        self._deeds, self._weighings = shared.writes, shared.weighings
        self._downloads = ShardDownloads(shared, of_shard(capacity), self._hurry)
        self._handover = HandoverProof(shared)
        self.auditing = ReplicaAudit(shared)
        self._fetching = Fetcher(shared, self._hurry, self._downloads.want, self._handover.fetches)
        self._anti_entropy = AntiEntropy(shared, self._fetching.after)
        self._delta_release = DeltaRelease(shared)
        self._pushes = Pushes(shared, self._taking, capacity, now)
        self.budget, self.carried = self._pushes.budget, self._pushes.carried
        self.arrival_log = ArrivalLog()
        self.cooling = ColdCopies(shared)
        self._readiness = Readiness(shared, self.cooling)
        self._drop = ShardDrop(shared, self.cooling, self._readiness, self._handover)
        self._loss_watch = LossWatch(shared, self._readiness)
        self.known = self._loss_watch.known
        self._placed_on = _PlacedOn(others.rules, {}, {}, frozenset())
        self._looked_at = -1, False, frozenset[Peer]()
        self._announced: object = None
        if past is not None:
            self.budget = self._pushes.budget = past.budget
            self.arrival_log = past.arrival_log
            self.auditing.take_over(past.auditing)
            self._loss_watch.take_over(past._loss_watch)
            self.known = self._loss_watch.known

    def doubled(self) -> "StoragePeer":
        """Return the decisions after the store has divided its shards, by the newest known edition.

        Each child inherits its parent's state. Downloads, proofs and audits that were in progress
        start again. Outcomes that are still pending go to this object, which answers the peers that
        pushed to the former shards; its other actions are void.
        """
        shared = self._shared
        return StoragePeer(
            self.me,
            self._capacity,
            self.settings,
            self._others,
            self._held,
            self.replicas.held,
            shared.delta_checks,
            shared.begun,
            shared.secret,
            self,
        )

    def asked(
        self, ticket: int, sender: Peer, question: Push | PushFrom, now: float
    ) -> list[Action]:
        """Apply a pushed update to the shards that accept it here, within its author's budget."""
        return self._pushes.asked(ticket, sender, question, now)

    def carry(self, sender: Peer, question: Carry, now: float) -> Carried | Refusal:
        """Keep a delta for other holders to fetch, if there is room."""
        return self._pushes.carry(sender, question, now)

    def _taking(self, shards: Shards, now: float) -> Shards:
        """Return which of some shards accept pushed updates: those owned here, and some others."""
        takes = among(shards, self.replicas.own)
        if not takes.all():
            others = np.flatnonzero(~takes)
            takes[others] = [self._takes_still(shard, now) for shard in shards[others].tolist()]
        return shards[takes]

    def _takes_still(self, shard: int, now: float) -> bool:
        """Return whether a shard that this peer does not own accepts pushed updates.

        A shard that is about to leave memory accepts none. Its owners must first prove that they
        hold what is here, and they could not prove a set of chunks that keeps changing.
        """
        if not self.replicas.holds(shard):
            return False
        lingers = self.replicas.unchanged_for(shard, now) < self.settings.linger
        if lingers and self.replicas.state(shard) is ReplicaState.DRAINING:
            return True
        return not (self.leaving or self.replicas.owners(shard))  # none before a placement

    def answered(self, number: int, answer: Message | None, now: float) -> list[Action]:
        """Handle the answer to a call; the answer None means a timeout."""
        heard, shown = self.reports.heard_so_far, self._handover.shown_so_far
        actions = self._calls.done(number, answer, now) + self._downloads.due(now)
        actions += self._news()
        if self.reports.heard_so_far > heard:
            actions += self._decided(self.replicas.all(ReplicaState.SYNCING).tolist(), now)
        if self._handover.shown_so_far > shown:
            actions += self._let_go(now)
        return actions

    def weighed(self, number: int, weights: ShardFingerprints, now: float) -> list[Action]:
        """Handle the fingerprints that the shell computed for some shards."""
        return self._weighings.done(number, weights, now) + self._news()

    def stored(self, number: int, error: GiaannError | None, now: float) -> list[Action]:
        """Handle the end of a store operation; `error` is None if it succeeded."""
        into = self._deeds.into(number)
        if into and error is None:
            self._anti_entropy.changed(now)
        actions = self._deeds.done(number, error, now) + self._downloads.due(now)
        return actions + self._decided(into, now)  # do not wait for the next tick

    def restarted(self, peer: Peer) -> None:
        """Handle a peer's restart: its earlier reports no longer count as recent."""
        self.reports.restarted(peer)
        self._anti_entropy.restarted(peer)
        self._handover.restarted(peer)

    def changed(self, now: float) -> None:
        """Note that the chunks here are about to change."""
        self._anti_entropy.changed(now)

    def differs(self, peer: Peer, now: float) -> None:
        """Note that a peer asked which chunks are here, and that its own chunks differ."""
        self._anti_entropy.differs(peer, now)

    def search(self, sought: WithdrawalFilter) -> Search:
        """Return the founder's search for chunks to withdraw, ready to run on this peer's chunks.

        It adds what only this peer knows: when chunks arrived, and which peers have standing.
        """
        came = self.arrival_log.since(sought.since) if sought.since else Applied()
        return Search(sought, came, self._others.standing_now())

    def leave(self, now: float) -> list[Action]:
        """Begin to hand over every shard."""
        self.leaving = True
        return self.tick(now)

    def tick(self, now: float) -> list[Action]:
        """Re-examine every decision that is due; call this about once a second."""
        if self.arrival_log.is_due(now):
            held = self._held.sets(self.replicas.held.tolist())
            self.arrival_log.look(held.values(), now)
        actions = self._placed(now)
        actions += self._anti_entropy.due(now)
        actions += self._downloads.due(now)
        actions += self._decided(self.replicas.all(ReplicaState.SYNCING).tolist(), now)
        actions += self.cooling.due(self.leaving, now)
        actions += self._let_go(now)
        self._loss_watch.look(now)
        self.carried.expire(now)
        actions += self.known.note(now)
        actions += self._delta_release.due(now)
        actions += self.auditing.due(now)
        return actions + self._news()

    def _hurry(self, peer: Peer, now: float) -> None:
        self._anti_entropy.hurry(peer, now)

    def _placed(self, now: float) -> list[Action]:
        if self._others.rules.shards != self.replicas.shards:
            return []  # the placement has more shards: the store has yet to be divided
        standing = self._others.standing_members(now)
        if self._looked_at == (seen := (self._others.version(now), self.leaving, standing)):
            return []
        self._looked_at = seen
        members = {p: c for p, c in self._others.members(now).items() if p != self.me}
        if not self.leaving:
            members[self.me] = self._capacity
            standing |= {self.me}
        named = self._others.named(now)
        rules, before = self._others.rules, self._placed_on
        placed_on = _PlacedOn(rules, members, named, standing)
        if not members or placed_on == before:
            return []
        self._placed_on = placed_on
        placement = placed_by(rules, members, named)
        beside = held_beside(self.me, placement, members, standing, named)
        are_same = placed_on._replace(standing=before.standing) == before
        if are_same and beside == self.replicas.beside:
            return []
        begun = self.replicas.place(placement, now, beside)
        return [Hold(begun)] if len(begun) else []

    def _decided(self, shards: Iterable[int], now: float) -> list[Action]:
        """Mark as ready each of some shards that may become ready now; announce any change."""
        syncing = [shard for shard in shards if self.replicas.state(shard) is ReplicaState.SYNCING]
        if not syncing:  # the common case
            return self._news()
        for shard, mine in self._held.sets(syncing).items():
            if self.replicas.wanted(shard) and self._readiness.is_ready(shard, mine, now):
                self.replicas.caught_up(shard, now)
        return self._news()

    def _let_go(self, now: float) -> list[Action]:
        actions, spare = self._drop.due(self.leaving, now)
        actions += self._news() + self._handover.due(spare, now)
        if self.leaving and not len(self.replicas.held):
            actions.append(Leave())
        return actions

    def _news(self) -> list[Action]:
        changes = (
            self.replicas.changes,
            self.auditing.changes,
            self.known.changes,
            self._held.cold.changes,
        )
        if self._announced == changes:
            return []
        self._announced = changes
        return [self.announcement()]

    def announcement(self) -> Announce:
        """Return this peer's announcement.

        It has the shards by state, the cold copies, the accusations of other peers, and the shards
        with lost chunks.
        """
        ready = self.replicas.all(ReplicaState.READY, ReplicaState.DRAINING)
        syncing = self.replicas.all(ReplicaState.SYNCING)
        cold = np.array(sorted(self._held.cold.copies), np.uint16)
        wrong, missing = self.auditing.wrong(), self.known.missing
        return Announce(ready, syncing, self.leaving, wrong, cold, missing)
