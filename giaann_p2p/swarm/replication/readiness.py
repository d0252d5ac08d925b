"""Decides when a syncing replica is ready: once it catches up, or a quorum begins without one.

1. A replica is ready at once if it has every chunk that a ready replica reported recently.
2. If no peer has the shard ready, it begins with what a quorum of its owners has, `patience`
   seconds after the first lookup of the directory. A peer that never found the directory knows no
   other peers, and never begins.
3. It does not begin without the chunks of a cold copy: its own copy is merged first. It waits for
   another peer's copy while that peer answers, for up to `patience` plus `offer` seconds.
"""

from collections.abc import Mapping

from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.replication.cold_copies import ColdCopies
from giaann_p2p.swarm.replication.coverage import caught_up, may_begin
from giaann_p2p.swarm.replication.peer_reports import PeerReport
from giaann_p2p.swarm.replication.shared import Shared
from giaann_p2p.swarm.wire.identity import Peer


class Readiness:
    """Decides for all shards of one peer when they are ready."""

    def __init__(self, shared: Shared, cooling: ColdCopies) -> None:
        self._settings, self._quorum = shared.settings, shared.rules.quorum
        self._replicas, self._others = shared.replicas, shared.others
        self._reports, self._cold_copies = shared.reports, cooling
        self._begun = shared.begun
        self._unheard_since: dict[int, float] = {}

    def __repr__(self) -> str:
        return f"<Readiness: {len(self._unheard_since)} shards wait for a cold copy>"

    def is_ready(self, shard: int, mine: Applied, now: float) -> bool:
        """Return whether a shard may become ready with the chunks `mine` that are here."""
        words = self.words(shard, now)
        if caught_up(mine, words):
            return True
        if not self.has_waited(now) or self._is_ready_elsewhere(shard, now):
            return False
        if self._cold_copies.awaits(shard, mine) or self._waits_to_hear(shard, words, now):
            return False
        owners = self._replicas.owners(shard)
        others = [peer for peer in owners if peer != self._replicas.me]
        return may_begin(mine, words, others, min(self._quorum, len(owners)))

    def has_waited(self, now: float) -> bool:
        """Return whether `patience` seconds have passed since the start and the first lookup."""
        looked = self._others.looked_at()
        return looked is not None and now - max(self._begun, looked) >= self._settings.patience

    def words(self, shard: int, now: float) -> dict[Peer, PeerReport]:
        """Return the recent reports on a shard, except those of excluded peers.

        A report that was asked for before this peer held the shard does not count: the shard may
        have been dropped and taken again since, and chunks learned in between went only to others.
        """
        since = max(now - self._settings.word_counts, self._replicas.held_since(shard))
        excluded = self._replicas.excluded(shard)
        return {peer: w for peer, w in self._reports.on(shard, since) if peer not in excluded}

    def _is_ready_elsewhere(self, shard: int, now: float) -> bool:
        return not self._replicas.excluded(shard).issuperset(self._others.ready(shard, now))

    def _waits_to_hear(self, shard: int, words: Mapping[Peer, PeerReport], now: float) -> bool:
        """Return whether a reachable peer with a cold copy has yet to offer the copy.

        The wait is bounded, in case a peer answers but never offers its copy.
        """
        cold = [peer for peer in self._others.cold(shard, now) if peer not in words]
        me = self._replicas.me
        if not any(peer != me and self._others.reachable(peer, now) for peer in cold):
            self._unheard_since.pop(shard, None)
            return False
        since = self._unheard_since.setdefault(shard, now)
        return now - since < self._settings.patience + self._settings.offer
