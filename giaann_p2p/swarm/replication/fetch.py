"""Fetches the chunks that another peer has and this peer lacks: as deltas, or as whole shards.

All deltas that the other peer still keeps come first. A delta is kept as long as any replica might
lack it, and a replica that applies a delta keeps it, too. If a chunk came inside a whole shard
instead, and the last peer with its delta were lost, the delta could no longer be separated out for
a replica that has other chunks.

Chunks whose deltas are gone come in a whole shard (see `ShardDownloads`). The whole shard replaces
the replica here, and the deltas of chunks that only this peer has are re-applied to it. If this
peer no longer keeps these deltas, the other peer must fetch what it lacks first. If that fails in
the same way, the two peers come from partitions that never heard of each other, and both released
deltas. As a last resort, because it is a lot of data, this peer then asks for deltas that the other
peer released but still remembers.

A peer that answers unpacks each chunk's delta and cuts it to the requested shards, so many chunks
for one shard cost it as much as for all shards. Under churn, each shard lacks chunks of its own. So
a request is for chunks that many shards lack, even if some of these shards lack others as well.
"""

from collections.abc import Callable, Sequence
from functools import partial

from giaann_p2p.errors import DamagedError, GiaannError, MessageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.replication.delta_fetch import Lack, deltas_of, request, shards_of
from giaann_p2p.swarm.replication.shared import Shared
from giaann_p2p.swarm.replication.store_backoff import StoreBackoff
from giaann_p2p.swarm.wire.actions import Action, Apply
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Refusal

Asked = tuple[bytes, tuple[int, ...], bool]
"""Identifies a request for deltas: the digest of the set of chunks, the shards, and whether deltas
that the peer has released are requested, too."""
_AN_ANSWER = 32
"""Approximate number of deltas in one answer; a request for more brings no more."""
_MOST_TRIED = 256
"""Maximum number of peers whose fruitless requests are remembered; the oldest entry is evicted."""


class Fetcher:
    """Requests for missing deltas.

    At most one request is in flight to each peer. No chunk of a shard is requested from two peers
    at the same time.
    """

    def __init__(
        self,
        shared: Shared,
        again: Callable[[Peer, float], None],
        whole: Callable[[Peer, int], None],
        fetches: Callable[[int], bool],
    ) -> None:
        self._settings, self._replicas = shared.settings, shared.replicas
        self._others, self._held, self._reports = shared.others, shared.held, shared.reports
        self._delta_checks, self._bulk, self._deeds = (
            shared.delta_checks,
            shared.bulk,
            shared.writes,
        )
        self._again, self._whole, self._fetches = again, whole, fetches
        self._coming: dict[Peer, Lack] = {}
        self._store_backoff = StoreBackoff()
        self._tried: dict[Peer, set[Asked]] = {}
        self._apart: dict[Peer, set[int]] = {}  # shards that cannot be fetched whole, either

    def after(self, peer: Peer, now: float, together: bool = True) -> list[Action]:
        """Ask a peer for chunks that it recently reported and that are missing here.

        `together`: whether shards may be asked for together although they lack other chunks, too.
        """
        if peer in self._coming or self._store_backoff.rests(now):
            return []
        lacking = self._lacking(peer, now)
        if not lacking:
            return []
        lack = self._next_of(peer, [*common(lacking), *lacking] if together else lacking)
        self._coming[peer] = lack
        most = self._bulk.flow.window(peer)
        question = request(lack, self._replicas, most)
        return [self._bulk.call(peer, question, most, partial(self._on_answer, peer, lack), now)]

    def _next_of(self, peer: Peer, lacking: list[Lack]) -> Lack:
        """Return which of the lacking sets of chunks to request next: the one of most use.

        If a set was requested before and is still lacking, that request failed. So the set waits
        until the other sets have been tried.
        """
        tried = self._tried.pop(peer, set())
        open_now = {
            (lack.chunks.digest, tuple(lack.shards), lack.remembered): lack for lack in lacking
        }
        fresh = open_now.keys() - tried
        asked = max(fresh or open_now, key=lambda asked: (use_of(open_now[asked]), asked))
        self._tried[peer] = {asked} | (tried & open_now.keys() if fresh else set())
        if len(self._tried) > _MOST_TRIED:
            del self._tried[next(iter(self._tried))]
        return open_now[asked]

    def _lacking(self, peer: Peer, now: float) -> list[Lack]:
        """Return the chunks of a peer that are neither here nor in flight.

        Shards that lack the same set of chunks are grouped.
        """
        found: dict[tuple[bytes, bool], Lack] = {}
        apart = self._apart.pop(peer, set())
        beyond: dict[tuple[int, int], Applied] = {}  # a cache: most shards have the same sets
        coming = [(lack.chunks, frozenset(lack.shards)) for lack in self._coming.values()]
        for shard, mine in self._held.sets(self._replicas.held.tolist()).items():
            word = self._reports.of(peer, shard)
            if word is None or word.chunks is mine:  # the common case
                continue
            if now - word.asked > self._settings.word_counts or not self._fetches(shard):
                continue
            pair = id(word.chunks), id(mine)
            if pair not in beyond:
                beyond[pair] = (word.chunks - mine).wanted
            lacking = beyond[pair]
            for chunks, shards in coming:
                if lacking and shard in shards:
                    lacking = lacking - chunks
            if lacking:
                kind = lacking.digest, shard in apart
                found.setdefault(kind, Lack(lacking, [], kind[1])).shards.append(shard)
        if still := {shard for lack in found.values() if lack.remembered for shard in lack.shards}:
            self._apart[peer] = still
        return list(found.values())

    def _takes_whole(self, peer: Peer, shard: int) -> bool:
        """Return whether a peer's whole shard may replace the replica here.

        The deltas of chunks that only this peer has must be retained here, to be re-applied.
        """
        word = self._reports.of(peer, shard)
        mine = self._held.sets([shard]).get(shard)
        if word is None or mine is None or peer in self._replicas.excluded(shard):
            return False
        beyond = mine - word.chunks
        return not beyond or beyond <= self._held.retained_for(shard)

    def _on_answer(
        self, peer: Peer, lack: Lack, answer: Message | None, now: float
    ) -> list[Action]:
        if isinstance(answer, Refusal):
            del self._coming[peer]
            self._others.heard(peer)
            return []
        try:
            updates, gone = deltas_of(answer, lack, self._replicas, self._delta_checks)
        except (MessageError, DamagedError):
            del self._coming[peer]
            self._others.suspect(peer, now)
            return []
        self._others.heard(peer)
        if not updates:
            del self._coming[peer]
            if not lack.all_that_is_lacking:
                # While the swarm learns, the chunks that shards lack in common keep changing. If
                # only these were requested, no whole shard with the gone chunks would ever come.
                return self.after(peer, now, together=False)
            for shard in lack.shards if gone else []:
                if self._takes_whole(peer, shard):
                    self._whole(peer, shard)
                else:
                    self._apart.setdefault(peer, set()).add(shard)
            if len(self._apart) > _MOST_TRIED:
                del self._apart[next(iter(self._apart))]
            return []
        return [Apply(self._deeds.taking(shards_of(updates), partial(self._stored, peer)), updates)]

    def _stored(self, peer: Peer, error: GiaannError | None, now: float) -> list[Action]:
        del self._coming[peer]
        self._store_backoff.told(error, now)
        if isinstance(error, MessageError):
            self._others.suspect(peer, now)
        if error is not None:
            return []
        self._again(peer, now)
        return self.after(peer, now)  # the chunks that did not fit into this answer


def use_of(lack: Lack) -> int:
    """Return the maximum number of pairs of chunk and shard for which an answer has deltas."""
    return min(len(lack.chunks), _AN_ANSWER) * len(lack.shards)


def common(lacking: Sequence[Lack]) -> list[Lack]:
    """Return a request for the chunks that several of the lacking sets have in common.

    It begins with the most useful set, and is cut down to the chunks that another set shares
    whenever that makes it more useful. The result is empty if that never happens.
    """
    first, *others = sorted(lacking, key=use_of, reverse=True)
    found = first
    for other in others:
        both = Lack(found.chunks & other.chunks, found.shards + other.shards, found.remembered)
        if found.remembered == other.remembered and use_of(both) > use_of(found):
            found = both
    if found is first:
        return []
    return [found._replace(shards=sorted(found.shards), all_that_is_lacking=False)]
