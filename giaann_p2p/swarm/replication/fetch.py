"""Getting the chunks that a peer has and this one lacks: their deltas, or whole shards.

Deltas are asked for first, all that are still kept: a delta is kept as long as somebody might lack
it, and whoever takes it in keeps it, too. Had it come inside a whole shard instead, and were its
last keeper lost, it could not be told apart again for a replica that has other chunks.

What is missing then comes in a whole shard (see `Arrivals`), which takes the place of what is here,
with those deltas added that were taken in here and not there. If these are not kept here, the other
side must fetch what it lacks first. If it cannot either, the two began as parts of a swarm that had
never heard of each other, and both let go of deltas: then what the other side still remembers of
these is asked for, which is much where it is not needed.
"""

from collections.abc import Callable
from functools import partial

from giaann_p2p.errors import DamagedError, GiaannError, MessageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.actions import Action, Apply
from giaann_p2p.swarm.bulk import Bulk
from giaann_p2p.swarm.comparing import Held, Others
from giaann_p2p.swarm.deeds import Deeds
from giaann_p2p.swarm.deltas import Lack, deltas_of, request, shards_of
from giaann_p2p.swarm.evidence import Evidence
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import Message, Refused
from giaann_p2p.swarm.replicas import Replicas
from giaann_p2p.swarm.settings import Settings
from giaann_p2p.swarm.strain import Strain
from giaann_p2p.swarm.terms import Terms

Asked = tuple[bytes, tuple[int, ...], bool]
"""A set of chunks, by its digest, the shards for which it was asked for, and how: see `Lack`."""
_MOST_TRIED = 256
"""Peers of which it is known what was asked for in vain; they come and go."""


class Fetching:
    """Deltas on their way: from each peer one answer at a time, and no chunk twice at once."""

    def __init__(
        self,
        settings: Settings,
        replicas: Replicas,
        others: Others,
        held: Held,
        evidence: Evidence,
        bulk: Bulk,
        deeds: Deeds,
        terms: Terms,
        again: Callable[[Peer, float], None],
        whole: Callable[[Peer, int], None],
        fetches: Callable[[int], bool],
    ) -> None:
        self._settings, self._replicas, self._others = settings, replicas, others
        self._held, self._evidence, self._terms = held, evidence, terms
        self._bulk, self._deeds = bulk, deeds
        self._again, self._whole, self._fetches = again, whole, fetches
        self._coming: dict[Peer, Lack] = {}
        self._strain = Strain()
        self._tried: dict[Peer, set[Asked]] = {}
        self._apart: dict[Peer, set[int]] = {}  # shards that are not to be had whole either

    def after(self, peer: Peer, now: float) -> list[Action]:
        """Ask a peer for what it has beyond what is here, as it told lately."""
        if peer in self._coming or self._strain.rests(now):
            return []
        lacking = self._lacking(peer, now)
        if not lacking:
            return []
        lack = self._next_of(peer, lacking)
        self._coming[peer] = lack
        most = self._bulk.flow.window(peer)
        question = request(lack, self._replicas, most)
        return [self._bulk.call(peer, question, most, partial(self._told, peer, lack), now)]

    def _next_of(self, peer: Peer, lacking: list[Lack]) -> Lack:
        """Return what to ask a peer for: what most shards lack, but each in its turn.

        What did come is lacking no longer, so what was asked for and is lacking still was in vain.
        """
        tried = self._tried.pop(peer, set())
        open_now = {
            (lack.chunks.digest, tuple(lack.shards), lack.remembered): lack for lack in lacking
        }
        fresh = open_now.keys() - tried
        asked = max(fresh or open_now, key=lambda asked: (len(asked[1]), asked))
        self._tried[peer] = {asked} | (tried & open_now.keys() if fresh else set())
        if len(self._tried) > _MOST_TRIED:
            del self._tried[next(iter(self._tried))]
        return open_now[asked]

    def _lacking(self, peer: Peer, now: float) -> list[Lack]:
        """Return what a peer has that is neither here nor on its way."""
        found: dict[tuple[bytes, bool], Lack] = {}
        apart = self._apart.pop(peer, set())
        beyond: dict[tuple[int, int], Applied] = {}  # most shards have one set, here and there
        coming = [(lack.chunks, frozenset(lack.shards)) for lack in self._coming.values()]
        for shard, mine in self._held.sets(self._replicas.held.tolist()).items():
            word = self._evidence.of(peer, shard)
            if word is None or word.chunks is mine:  # as nearly always
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
        """Tell whether what is here and not there could be added to a shard that comes."""
        word = self._evidence.of(peer, shard)
        mine = self._held.sets([shard]).get(shard)
        if word is None or mine is None or peer in self._replicas.barred(shard):
            return False
        beyond = mine - word.chunks
        return not beyond or beyond <= self._held.retained_for(shard)

    def _told(self, peer: Peer, lack: Lack, answer: Message | None, now: float) -> list[Action]:
        if isinstance(answer, Refused):
            del self._coming[peer]
            self._others.heard(peer)
            return []
        try:
            updates, gone = deltas_of(answer, lack, self._replicas, self._terms)
        except (MessageError, DamagedError):
            del self._coming[peer]
            self._others.suspect(peer, now)
            return []
        self._others.heard(peer)
        if not updates:
            del self._coming[peer]
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
        self._strain.told(error, now)
        if isinstance(error, MessageError):
            self._others.suspect(peer, now)
        if error is not None:
            return []
        self._again(peer, now)
        return self.after(peer, now)  # for what was too much for one answer
