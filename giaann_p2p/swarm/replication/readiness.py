"""Decides when a syncing replica becomes ready to serve reads.

1. A replica is ready at once if it has every chunk that a replica that serves reads, ready or
   draining, reported recently. Where peers with standing announce the shard as ready, only their
   reports count: a stranger could report an empty replica as ready.
2. If no peer has the shard ready, the shard becomes ready with the chunks that a quorum of its
   owners has, `patience` seconds after the first lookup of the directory, or after this peer has
   begun to hold it. It waits because the peers that had the shard may be restarting, and meanwhile
   its rows must not seem never learned. A peer whose store takes longer to open is announced
   meanwhile, so that it remains an owner (see `node.replication.opening`). In a swarm that has
   raised its number of replicas, it takes more owners (`Rules.begin`). A peer that never found the
   directory knows no other peers, so its replicas never become ready this way.
3. In case 2 the chunks of cold copies must come first. This peer merges its own copy of the shard.
   If another peer that answers has a copy, this peer waits until that copy is offered, for up to
   `patience` plus `offer` seconds.
4. So long it also waits in case 2 for peers without standing that claim to have the shard ready, or
   chunks that are not here. Honest ones deliver them; strangers could keep a swarm unreadable.
"""

from collections.abc import Mapping
from math import inf

from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.replication.cold_copies import ColdCopies
from giaann_p2p.swarm.replication.coverage import caught_up, may_begin
from giaann_p2p.swarm.replication.peer_reports import PeerReport
from giaann_p2p.swarm.replication.shared import Shared
from giaann_p2p.swarm.wire.identity import Peer


class Readiness:
    """Decides when each syncing replica of one peer becomes ready."""

    def __init__(self, shared: Shared, cooling: ColdCopies) -> None:
        self._settings, self._shared = shared.settings, shared
        self._replicas, self._others = shared.replicas, shared.others
        self._reports, self._cold_copies = shared.reports, cooling
        self._begun = shared.begun
        self._unheard_since: dict[int, float] = {}

    def __repr__(self) -> str:
        return f"<Readiness: {len(self._unheard_since)} shards wait for a cold copy>"

    def is_ready(self, shard: int, mine: Applied, now: float) -> bool:
        """Return whether this peer's replica of a shard may become ready with the chunks `mine`."""
        words, stands = self.words(shard, now), self._others.stands
        standing = {peer: word for peer, word in words.items() if stands(peer)}
        ready = self._ready_elsewhere(shard, now)
        is_known = any(map(stands, ready))
        if caught_up(mine, standing if is_known else words):
            return True
        since = self._replicas.held_since(shard)
        if not self.has_waited(now, since):
            return False
        strangers_count = not self.has_waited(now - self._at_most, since)
        if is_known or (strangers_count and ready):
            return False
        if self._cold_copies.awaits(shard, mine) or self._waits_to_hear(shard, words, now):
            return False
        owners, rules = self._replicas.owners(shard), self._shared.rules
        others = [words[peer] for peer in owners if peer in words and peer != self._replicas.me]
        heeded = words if strangers_count else standing
        return may_begin(mine, heeded, others, min(rules.begin, len(owners)))

    def has_waited(self, now: float, since: float = -inf) -> bool:
        """Return whether `patience` seconds have passed since `since`.

        They must also have passed since start, and since the first lookup of the directory.
        """
        if (looked := self._others.looked_at()) is None:
            return False
        return now - max(self._begun, looked, since) >= self._settings.patience

    @property
    def _at_most(self) -> float:
        """Seconds for which to wait for what strangers claim, or for a cold copy."""
        return self._settings.patience + self._settings.offer

    def words(self, shard: int, now: float, seconds: float | None = None) -> dict[Peer, PeerReport]:
        """Return the reports on a shard of the last `seconds`; the default is `word_counts`.

        Reports of peers that are excluded from the shard are left out.

        A report that was asked for before this peer held the shard does not count. This peer may
        have dropped the shard and taken it again since, so it may lack chunks learned in between.
        """
        seconds = self._settings.word_counts if seconds is None else seconds
        since = max(now - seconds, self._replicas.held_since(shard))
        excluded = self._replicas.excluded(shard)
        return {peer: w for peer, w in self._reports.on(shard, since) if peer not in excluded}

    def _ready_elsewhere(self, shard: int, now: float) -> list[Peer]:
        """Return the peers that announce a shard as ready and are not excluded from it."""
        excluded = self._replicas.excluded(shard)
        return [peer for peer in self._others.ready(shard, now) if peer not in excluded]

    def _waits_to_hear(self, shard: int, words: Mapping[Peer, PeerReport], now: float) -> bool:
        """Return whether to wait for a reachable peer that has yet to offer its cold copy.

        The wait is bounded, because a peer may answer but never offer its copy.
        """
        cold = [peer for peer in self._others.cold(shard, now) if peer not in words]
        me = self._replicas.me
        if not any(peer != me and self._others.not_suspected(peer, now) for peer in cold):
            self._unheard_since.pop(shard, None)
            return False
        since = self._unheard_since.setdefault(shard, now)
        return now - since < self._at_most
