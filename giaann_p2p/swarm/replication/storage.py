"""A storage peer's decisions: which shards to hold, compare, fetch, drop, and announce.

The code is pure: events and the time go in, actions come out. `tick` re-examines everything, so
nothing depends on a single message having arrived. It only reads its own store.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import partial

import numpy as np

from giaann_p2p.errors import GiaannError, MessageError
from giaann_p2p.store.applied import MOST_BEGUN, Applied
from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.members.exclusion import Named, placed
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.replication.anti_entropy import AntiEntropy
from giaann_p2p.swarm.replication.arrival_log import ArrivalLog
from giaann_p2p.swarm.replication.cold_copies import ColdCopies
from giaann_p2p.swarm.replication.coverage import all_ready, covered
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.replication.fetch import Fetcher
from giaann_p2p.swarm.replication.handover_proof import HandoverProof, Spare
from giaann_p2p.swarm.replication.loss_watch import LossWatch
from giaann_p2p.swarm.replication.push_budget import Bill, PushBudget
from giaann_p2p.swarm.replication.readiness import Readiness
from giaann_p2p.swarm.replication.release import DeltaRelease
from giaann_p2p.swarm.replication.replica_audit import ReplicaAudit
from giaann_p2p.swarm.replication.replicas import Replicas
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.replication.shard_downloads import ShardDownloads
from giaann_p2p.swarm.replication.shard_fingerprint import Weights
from giaann_p2p.swarm.replication.shared import Held, Rules, Shared
from giaann_p2p.swarm.wire.actions import (
    Action,
    Announce,
    Apply,
    Drop,
    Hold,
    Leave,
    Reply,
)
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.limits import of_shard
from giaann_p2p.swarm.wire.messages import Message, Push, Pushed, Refusal
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from giaann_p2p.swarm.wire.withdrawal_filter import Search, WithdrawalFilter


class StoragePeer:
    """The decisions of one storage peer; each method returns the actions that the shell does."""

    def __init__(
        self,
        me: Peer,
        capacity: int,
        rules: Rules,
        settings: Settings,
        others: PeersView,
        held: Held,
        on_disk: Shards,
        delta_checks: DeltaChecks,
        now: float,
        secret: bytes,
    ) -> None:
        """Begin; `secret` is up to 64 random bytes that only this peer knows."""
        self.me, self.rules, self.settings = me, rules, settings
        self.replicas = Replicas(me, rules.shards, on_disk.tolist())
        self.leaving = False
        self._capacity, self._others, self._held = capacity, others, held
        self._delta_checks = delta_checks
        shared = Shared(settings, rules, self.replicas, others, held, delta_checks, secret, now)
        self.reports, self._calls = shared.reports, shared.calls
        self._deeds, self._weighings = shared.writes, shared.weighings
        self._downloads = ShardDownloads(shared, of_shard(capacity), self._hurry)
        self._handover = HandoverProof(shared)
        self.auditing = ReplicaAudit(shared)
        self._fetching = Fetcher(shared, self._hurry, self._downloads.want, self._handover.fetches)
        self._anti_entropy = AntiEntropy(shared, self._fetching.after)
        self._delta_release = DeltaRelease(shared)
        self.budget = PushBudget(settings, now)
        self.arrival_log = ArrivalLog()
        self.cooling = ColdCopies(shared)
        self._readiness = Readiness(shared, self.cooling)
        self._loss_watch = LossWatch(shared, self._readiness)
        self.known = self._loss_watch.known
        self._members: Mapping[Peer, int] = {}
        self._named: Named = {}
        self._looked_at = -1, False
        self._announced: object = None

    def asked(self, ticket: int, sender: Peer, question: Push, now: float) -> list[Action]:
        """Take a pushed update for the shards that accept it here, within its author's budget."""
        try:
            shards = unpacked(question.shards, self.rules.shards)
            here = shards[[self._takes(shard, now) for shard in shards.tolist()]]
            if not len(here):
                return [Reply(ticket, Pushed(packed(here, self.rules.shards)))]
            self._delta_checks.check_sender(sender, question.seal)
            sets = {id(one): one for one in self._held.sets(here.tolist()).values()}
            self._check_room_for(question.job, sets.values())
        except MessageError as error:
            return [Reply(ticket, Refusal(str(error)))]
        stands = self._others.may_teach(sender)
        bill = self.budget.bill(sender, stands, question, sets.values(), now)
        if isinstance(bill, Refusal):
            return [Reply(ticket, bill)]
        update = self._delta_checks.packed(question, shards, here)
        update = update._replace(check=bill.weighing(update.check))
        number = self._deeds.taking(here.tolist(), partial(self._pushed, ticket, here, bill))
        return [Apply(number, [update])]

    def _takes(self, shard: int, now: float) -> bool:
        """Return whether a shard accepts updates.

        A shard that is about to leave memory accepts none: the owners could not prove that they
        hold a set that keeps changing.
        """
        if not self.replicas.holds(shard) or self.replicas.wanted(shard):
            return self.replicas.holds(shard)
        lingers = self.replicas.unchanged_for(shard, now) < self.settings.linger
        if lingers and self.replicas.state(shard) is ReplicaState.DRAINING:
            return True
        owners = self.replicas.owners(shard)  # none before the first placement
        return not (self.leaving or (owners and all(map(self._others.stands, owners))))

    def _check_room_for(self, job: bytes, sets: Collection[Applied]) -> None:
        """Raise MessageError if a shard has no room for one more job; jobs begun may go on."""
        full = (one for one in sets if one.jobs >= MOST_BEGUN and not one.of(job))
        if any(one.begun >= MOST_BEGUN for one in full):
            raise MessageError(
                f"job: no further one is begun here, for there are chunks of {MOST_BEGUN:,} jobs;"
                " learn many texts as one job, or found another swarm"
            )

    def _pushed(
        self, ticket: int, shards: Shards, bill: Bill, error: GiaannError | None, now: float
    ) -> list[Action]:
        bill.settle()
        if error:
            return [Reply(ticket, Refusal(str(error)))]
        return [Reply(ticket, Pushed(packed(shards, self.rules.shards)))]

    def answered(self, number: int, answer: Message | None, now: float) -> list[Action]:
        """Handle the answer to a call; None is a timeout."""
        heard, shown = self.reports.heard_so_far, self._handover.shown_so_far
        actions = self._calls.done(number, answer, now) + self._downloads.due(now)
        actions += self._news()
        if self.reports.heard_so_far > heard:
            actions += self._decided(self.replicas.all(ReplicaState.SYNCING).tolist(), now)
        if self._handover.shown_so_far > shown:
            actions += self._let_go(now)
        return actions

    def weighed(self, number: int, weights: Weights, now: float) -> list[Action]:
        """Handle the fingerprints that the shell computed for some shards."""
        return self._weighings.done(number, weights, now) + self._news()

    def stored(self, number: int, error: GiaannError | None, now: float) -> list[Action]:
        """Handle the completion of a store operation, or its failure."""
        into = self._deeds.into(number)
        actions = self._deeds.done(number, error, now) + self._downloads.due(now)
        return actions + self._decided(into, now)  # do not wait for the next tick

    def restarted(self, peer: Peer) -> None:
        """Handle a peer's restart: its earlier reports no longer count as recent."""
        self.reports.restarted(peer)
        self._anti_entropy.restarted(peer)
        self._handover.restarted(peer)

    def search(self, sought: WithdrawalFilter) -> Search:
        """Return the founder's search with this peer's knowledge, to apply to its own chunks."""
        came = self.arrival_log.since(sought.since) if sought.since else Applied()
        return Search(sought, came, self._others.standing_now())

    def leave(self, now: float) -> list[Action]:
        """Begin to hand over every shard."""
        self.leaving = True
        return self.tick(now)

    def tick(self, now: float) -> list[Action]:
        """Re-examine everything; call this about once a second."""
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
        actions += self.known.note(now)
        actions += self._delta_release.due(now)
        actions += self.auditing.due(now)
        return actions + self._news()

    def _hurry(self, peer: Peer, now: float) -> None:
        self._anti_entropy.hurry(peer, now)

    def _placed(self, now: float) -> list[Action]:
        if self._looked_at == (seen := (self._others.version(now), self.leaving)):
            return []
        self._looked_at = seen
        members = {p: c for p, c in self._others.members(now).items() if p != self.me}
        if not self.leaving:
            members[self.me] = self._capacity
        named = self._others.named(now)
        is_same = members == self._members and not (named or self._named)
        if is_same or not members:
            return []
        self._members, self._named = members, named
        placement = placed(members, self.rules.shards, self.rules.replicas, named)
        begun = self.replicas.place(placement, now)
        return [Hold(begun)] if len(begun) else []

    def _decided(self, shards: Iterable[int], now: float) -> list[Action]:
        """Mark those syncing shards ready that can be ready; announce if anything has changed."""
        syncing = [shard for shard in shards if self.replicas.state(shard) is ReplicaState.SYNCING]
        if not syncing:  # the common case
            return self._news()
        for shard, mine in self._held.sets(syncing).items():
            if self.replicas.wanted(shard) and self._readiness.is_ready(shard, mine, now):
                self.replicas.caught_up(shard, now)
        return self._news()

    def _let_go(self, now: float) -> list[Action]:
        dropped, spare, cooled = list[int](), dict[int, Spare](), list[Action]()
        unwanted = self._unwanted(now)
        for shard, mine in self._held.sets(unwanted).items() if unwanted else ():
            if self._deeds.awaited_by(shard) or self.cooling.awaits(shard, mine):
                continue
            # A shard that was ready here stays beside newcomers even if it is empty: otherwise
            # they alone would hold what is learned next.
            counts = mine or self.replicas.state(shard) is ReplicaState.DRAINING
            if counts and not self._may_leave_memory(shard, mine, now):
                continue
            goes = not mine or self._is_held_by_all(shard, mine, now)
            if goes and (not mine or self.cooling.may_drop(shard, mine, now)):
                self.replicas.covered(shard, now)
                self.reports.forget_shard(shard)
                dropped.append(shard)
            elif (one := self._spare(shard, mine, now)) is not None:
                spare[shard] = one
                cooled += self.cooling.cool(shard, now) if goes else []
        actions: list[Action] = [Drop(np.array(dropped, np.uint16))] if dropped else []
        actions += cooled + self._news() + self._handover.due(spare, now)
        if self.leaving and not len(self.replicas.held):
            actions.append(Leave())
        return actions

    def _may_leave_memory(self, shard: int, mine: Applied, now: float) -> bool:
        """Return whether the standing of the other holders lets a shard leave memory.

        Newcomers hold replicas in addition to the earlier holders, so newcomers that join and
        vanish take no data with them. A leaving peer takes its disk with it, so it waits until a
        quorum of keepers has the shard, or all keepers if there are fewer.
        """
        if all(map(self._others.stands, self.replicas.owners(shard))):
            return True
        if not self.leaving:
            return False
        words = self._readiness.words(shard, now)
        keeping = sum(mine <= words[peer].chunks for peer in words if self._others.keeps(peer))
        there = sum(map(self._others.keeps, self._members))
        return keeping >= min(self.rules.quorum, there)

    def _is_held_by_all(self, shard: int, mine: Applied, now: float) -> bool:
        """Return whether all owners report that they hold what is here, and have proved it."""
        owners = self.replicas.owners(shard)
        shown = self._handover.shown(shard, mine, owners, now)
        return shown and covered(mine, self._readiness.words(shard, now), owners, self.rules.quorum)

    def _spare(self, shard: int, mine: Applied, now: float) -> Spare | None:
        """Return what the owners must prove of a shard; None until all of them report it ready."""
        owners, words = self.replicas.owners(shard), self._readiness.words(shard, now)
        if not all_ready(words, owners, self.rules.quorum):
            return None
        return Spare(mine, owners, covered(mine, words, owners, self.rules.quorum))

    def _unwanted(self, now: float) -> list[int]:
        """Return the unwanted shards that have been kept for long enough, ascending.

        Syncing shards may go at once, draining shards after `linger` seconds.
        """
        if not len(
            self.replicas.all(ReplicaState.SYNCING, ReplicaState.DRAINING)
        ):  # the common case
            return []
        syncing = self.replicas.all(ReplicaState.SYNCING).tolist()
        unwanted = [shard for shard in syncing if not self.replicas.wanted(shard)]
        draining = self.replicas.all(ReplicaState.DRAINING).tolist()
        lingered = [
            shard
            for shard in draining
            if self.replicas.unchanged_for(shard, now) >= self.settings.linger
        ]
        return sorted(unwanted + lingered)

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
        """Return this peer's announcement: its shards by state, cold copies, and findings."""
        ready = self.replicas.all(ReplicaState.READY, ReplicaState.DRAINING)
        syncing = self.replicas.all(ReplicaState.SYNCING)
        cold = np.array(sorted(self._held.cold.copies), np.uint16)
        wrong, missing = self.auditing.wrong(), self.known.missing
        return Announce(ready, syncing, self.leaving, wrong, cold, missing)
