"""Decides when a syncing replica becomes ready to serve reads.

1. A replica is ready at once if it has every chunk that a replica that serves reads, ready or
   draining, reported recently. A replica of a peer without standing counts only if no peer with
   standing that holds the shard reports a chunk that is missing here, and only once all of these
   have reported, or after a while: a stranger could report an empty replica as ready.
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
4. In case 2 it also waits for peers without standing that claim to have the shard ready, or chunks
   that are not here, for up to STRANGERS_COUNT seconds. Honest ones deliver what they have until
   then; strangers could keep a swarm unreadable for ever.
"""

from collections.abc import Mapping
from math import inf

import numpy as np

from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.replication.cold_copies import ColdCopies
from giaann_p2p.swarm.replication.coverage import Words, caught_up, may_begin
from giaann_p2p.swarm.replication.peer_reports import PeerReport
from giaann_p2p.swarm.replication.shared import Shared
from giaann_p2p.swarm.wire.identity import Peer

STRANGERS_COUNT = 600.0
"""Seconds for which to wait for what peers without standing claim to have. Less: a stranger delays
a swarm that begins anew by less; more: an honest one has more time to deliver large shards."""


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
        if caught_up(mine, standing):
            return True
        since = self._replicas.held_since(shard)
        if caught_up(mine, words) and self._may_trust_strangers(shard, mine, standing, since, now):
            return True
        if not self.has_waited(now, since):
            return False
        strangers_count = not self.has_waited(now - STRANGERS_COUNT, since)
        ready = self._ready_elsewhere(shard, now)
        if any(strangers_count or stands(peer) for peer in ready):
            return False
        if self._cold_copies.awaits(shard, mine) or self._waits_to_hear(shard, words, now):
            return False
        owners, rules = self._replicas.owners(shard), self._shared.rules
        others = [words[peer] for peer in owners if peer in words and peer != self._replicas.me]
        heeded = words if strangers_count else standing
        return may_begin(mine, heeded, others, min(rules.begin, len(owners)))

    def _may_trust_strangers(
        self, shard: int, mine: Applied, standing: Words, since: float, now: float
    ) -> bool:
        """Return whether reports of peers without standing suffice to be ready.

        `standing`: the reports of the others.
        """
        if not all(word.chunks <= mine for word in standing.values()):
            return False
        holders = self._others.sharing(np.array([shard], np.uint16), now).keys()
        unheard = holders - standing.keys() - {self._replicas.me}
        return not any(map(self._others.stands, unheard)) or self.has_waited(
            now - self._longest_silence, since
        )

    def has_waited(self, now: float, since: float = -inf) -> bool:
        """Return whether `patience` seconds have passed since `since`.

        They must also have passed since start, and since the first lookup of the directory.
        """
        if (looked := self._others.looked_at()) is None:
            return False
        return now - max(self._begun, looked, since) >= self._settings.patience

    @property
    def _longest_silence(self) -> float:
        """Seconds for which to wait for peers that say nothing, and for a cold copy."""
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
        return now - since < self._longest_silence
