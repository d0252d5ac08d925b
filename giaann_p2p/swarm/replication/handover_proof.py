"""Proof of possession: before a peer drops a shard, its holders must prove that they hold it.

1. A few shards at a time are on *trial*. The dropping peer fetches nothing for such a shard, so its
   own content stays the same and the owners' content only grows beyond it.
2. The dropping peer fingerprints its content under an unpredictable salt (see `shard_fingerprint`),
   and asks each owner for its own fingerprint as soon as that owner reports every chunk. A proof
   contains its owner's name, so a peer that holds nothing cannot relay another peer's proof.
3. Proofs are collected one by one, and each is valid until the trial ends. Under churn, all owners
   are rarely reachable at the same moment; a trial that needed that would never succeed. A restart
   cancels the proofs of a peer without a disk, because it comes back empty.
4. An owner that has more chunks subtracts their deltas. If it has released these deltas, it cannot
   answer, and is asked again later with another salt; by then the dropping peer has fetched the
   chunks. If the dropping peer's content changes, its trial begins anew.
5. An owner whose proof is wrong is put on backoff, longer each time, and is not asked about that
   shard for an hour. The shard is kept, and kept up to date, until other owners take it over.
6. Peers that hold the shard beside its owners are asked as well (see `ShardDrop`). But none of them
   is needed, so a trial goes on without those that give no proof, or a wrong one.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import NamedTuple

import numpy as np

from giaann_p2p.backoff import Backoff
from giaann_p2p.errors import MessageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.members.liar_backoff import LONGEST_BACKOFF, LiarBackoff
from giaann_p2p.swarm.replication.shard_fingerprint import (
    MOST_WEIGHED,
    ShardFingerprint,
    ShardFingerprints,
    proof_of,
)
from giaann_p2p.swarm.replication.shared import Shared
from giaann_p2p.swarm.wire.actions import Action, Call, TakeFingerprints
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import SALT_BYTES, AskProof, Proof, Refusal
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed, unpacked

AT_ONCE, SMALL_AT_ONCE = 64, 1024
"""Maximum number of shards on trial at the same time: in general, and of shards so small that all
of them can be fingerprinted in one go. With the first limit alone, each doubling of the shards
would double the time to hand over the same content."""
TRIAL = 60.0
"""Duration of a shard's trial in seconds; proofs are valid only until it ends. Longer: an owner
that is restarted or stopped meanwhile has time to come back and give its proof. Shorter: rows that
are read here are less out of date, and owners have fewer new chunks to subtract for a proof."""
BATCH_EVERY = 5.0
"""Interval in seconds between two batches of trials while some go on. Shards of one batch share a
salt, so an owner can prove many of them in one answer."""
PROOF_TIMEOUT = 15.0
"""Timeout in seconds of a question for proofs. A busy peer may take long to compute them, and its
work is wasted if the asking peer does not wait for the answer."""
REST, LONGEST_REST = 2.0, 30.0
"""Backoff of a shard whose trial failed, in seconds: the first pause, and the longest. The pause
doubles with each failed trial."""


class Spare(NamedTuple):
    """A shard that this peer may drop as soon as its owners prove that they hold it."""

    mine: Applied
    """The chunks that this peer has applied to the shard."""
    owners: Sequence[Peer]
    covering: Sequence[Peer]
    """The owners, and peers beside them, that report every chunk in `mine`."""
    may_begin: bool
    """Whether a trial may begin: all owners have reported the shard ready not long ago."""


@dataclass
class _Trial:
    """The trial of one shard, and the owners that have proved that they hold it."""

    salt: bytes
    begun: float
    """Time at which the trial began."""
    spare: Spare
    """The shard's owners and their reports, as of the last call of `due`."""
    weight: ShardFingerprint | None = None
    """This peer's own fingerprint of the shard; None until it is computed."""
    shown: set[Peer] = field(default_factory=set)
    """Peers that have proved that they hold the shard."""
    failed: set[Peer] = field(default_factory=set)
    """Peers beside the owners that have given no proof, or a wrong one."""

    @property
    def owing(self) -> Iterator[Peer]:
        """The peers that can give a proof, but have not given it yet."""
        asked = self.shown | self.failed
        return (peer for peer in self.spare.covering if peer not in asked)


class HandoverProof:
    """Gets proofs from the owners of shards that this peer is to drop.

    At most one question is in flight to each owner.
    """

    def __init__(self, shared: Shared) -> None:
        self.shown_so_far = 0
        """Number of correct proofs received so far."""
        self._settings, self._replicas = shared.settings, shared.replicas
        self._others, self._held, self._secret = shared.others, shared.held, shared.secret
        self._pending_calls, self._weighing = shared.calls, shared.weighings
        self._trials: dict[int, _Trial] = {}  # by shard, the oldest first
        self._batches, self._next_batch = 0, -inf
        self._is_weighing = False
        self._asking: set[Peer] = set()  # owners with a question in flight
        self._rests: dict[int, Backoff] = {}
        self._next: dict[Peer, float] = {}
        self._liar_backoff = LiarBackoff()
        self._wrong: dict[tuple[Peer, int], float] = {}  # after a wrong proof: end of the pause

    def __repr__(self) -> str:
        return (
            f"<HandoverProof: {len(self._trials)} on trial, {len(self._liar_backoff)} found wrong>"
        )

    def fetches(self, shard: int) -> bool:
        """Return whether this peer fetches missing chunks for a shard that it holds.

        A shard that this peer no longer owns is kept up to date as long as it is held, except
        during its trial. If it was never ready here, chunks are fetched only after a failed trial.
        """
        if self._replicas.wanted(shard):
            return True
        if shard in self._trials:
            return False
        return self._replicas.state(shard) is ReplicaState.DRAINING or shard in self._rests

    def shown(self, shard: int, mine: Applied, now: float) -> Set[Peer]:
        """Return the peers that have proved that they hold the chunks `mine` of a shard."""
        trial = self._trials.get(shard)
        if trial is None or now - trial.begun >= TRIAL:
            return frozenset()
        if trial.weight is None or trial.weight.chunks != mine:
            return frozenset()
        return trial.shown

    def restarted(self, peer: Peer) -> None:
        """Discard the proofs of a peer without a disk that restarted: it has lost what it held."""
        if not self._others.keeps(peer):
            for trial in self._trials.values():
                trial.shown.discard(peer)

    def due(self, spare: Mapping[int, Spare], now: float) -> list[Action]:
        """Continue the trials, and begin others; `spare` are the shards that may be on trial."""
        self._forget(now)
        for shard, trial in list(self._trials.items()):
            self._look(shard, trial, spare.get(shard), now)
        if not self._trials or now >= self._next_batch:
            self._begin(spare, now)
        return self._weigh() + self._questions(now)

    def _forget(self, now: float) -> None:
        """Forget pauses that are over, and backoffs of shards that are gone or owned here again."""
        if self._rests:
            self._rests = {n: rest for n, rest in self._rests.items() if self._is_unwanted(n)}
        if self._next:
            self._next = {peer: when for peer, when in self._next.items() if now < when}
        if self._wrong:
            self._wrong = {told: until for told, until in self._wrong.items() if now < until}

    def _is_unwanted(self, shard: int) -> bool:
        return self._replicas.holds(shard) and not self._replicas.wanted(shard)

    def _look(self, shard: int, trial: _Trial, spare: Spare | None, now: float) -> None:
        """End a shard's trial if it may not be dropped now, has changed, or took too long."""
        if spare is None or (trial.weight and trial.weight.chunks != spare.mine):
            del self._trials[shard]
        elif now - trial.begun >= TRIAL:
            self._in_vain(shard, now)
        else:
            trial.spare = spare

    def _begin(self, spare: Mapping[int, Spare], now: float) -> None:
        """Put more shards on trial, first those that most peers report with every chunk."""
        ready = [n for n, one in spare.items() if one.may_begin and self._may_try(n, one, now)]
        ready.sort(key=lambda shard: -len(spare[shard].covering))
        if not (chosen := ready[: self._room_for(ready)]):
            return
        self._batches += 1
        self._next_batch = now + BATCH_EVERY
        data = self._batches.to_bytes(8, "little") + repr(now).encode()
        salt = hashlib.blake2b(data, digest_size=SALT_BYTES, key=self._secret).digest()
        self._trials.update({shard: _Trial(salt, now, spare[shard]) for shard in chosen})

    def _room_for(self, shards: Sequence[int]) -> int:
        """Return how many of some shards may be put on trial in addition to the present ones."""
        there = len(self._trials)
        sizes = np.cumsum([self._held.size_of(shard) for shard in [*self._trials, *shards]])
        small = int(np.searchsorted(sizes, MOST_WEIGHED, side="right"))
        return max(0, max(AT_ONCE, min(small, SMALL_AT_ONCE)) - there)

    def _may_try(self, shard: int, spare: Spare, now: float) -> bool:
        if shard in self._trials or (shard in self._rests and self._rests[shard].holds(now)):
            return False
        return not any(
            self._liar_backoff.holds(peer, now) or (peer, shard) in self._wrong
            for peer in spare.owners
        )

    def _in_vain(self, shard: int, now: float) -> None:
        del self._trials[shard]
        self._rests[shard] = self._rests.get(shard, Backoff(REST, LONGEST_REST)).failed(now)

    def _weigh(self) -> list[Action]:
        """Order the fingerprints of a batch of shards on trial that some peer can prove to hold."""
        if self._is_weighing:
            return []
        waiting = {n: t for n, t in self._trials.items() if not t.weight and t.spare.covering}
        if not waiting:
            return []
        self._is_weighing = True
        salt = next(iter(waiting.values())).salt
        shards = sorted(shard for shard, trial in waiting.items() if trial.salt == salt)
        number = self._weighing.number(partial(self._were_weighed, salt))
        return [TakeFingerprints(number, np.array(shards, np.uint16), salt)]

    def _were_weighed(self, salt: bytes, weights: ShardFingerprints, now: float) -> list[Action]:
        self._is_weighing = False
        for shard, weight in weights.items():
            trial = self._trials.get(shard)
            if trial and trial.salt == salt:
                trial.weight = weight
        return self._questions(now)

    def _questions(self, now: float) -> list[Action]:
        """Ask each owner for the proofs that it owes and can give: at most one call for each."""
        owed: dict[Peer, list[int]] = {}
        for shard, trial in self._trials.items():
            for peer in trial.owing if trial.weight else ():
                owed.setdefault(peer, []).append(shard)
        return [
            self._question(peer, shards)
            for peer, shards in owed.items()
            if peer not in self._asking and now >= self._next.get(peer, now)
        ]

    def _question(self, peer: Peer, shards: list[int]) -> Call:
        """Ask for proofs of the oldest shard, and of those with the same salt and chunks."""
        salt = self._trials[shards[0]].salt
        weights = {
            shard: trial.weight
            for shard in sorted(shards)
            if (trial := self._trials[shard]).weight and trial.salt == salt
        }
        chunks = weights[shards[0]].chunks
        asked = {shard: weight for shard, weight in weights.items() if weight.chunks == chunks}
        self._asking.add(peer)
        number = self._pending_calls.number(partial(self._on_answer, peer, asked))
        some = packed(np.array(list(asked), np.uint16), self._replicas.shards)
        return Call(number, peer, AskProof(some, chunks.to_bytes(), salt), PROOF_TIMEOUT)

    def _on_answer(
        self, peer: Peer, asked: ShardFingerprints, answer: Message | None, now: float
    ) -> list[Action]:
        self._asking.discard(peer)
        if isinstance(answer, Refusal):
            self._others.heard(peer)
            self._next[peer] = now + self._settings.hurry_every
            return []
        try:
            found = proofs_in(answer, list(asked), self._replicas.shards)
        except MessageError:
            self._others.suspect(peer, now)
            self._next[peer] = now + self._settings.hurry_every
            return []
        self._others.heard(peer)
        for shard, proof in found.items():
            self._judge(peer, shard, asked[shard], proof, now)
        return self._questions(now)

    def _judge(
        self, peer: Peer, shard: int, weight: ShardFingerprint, proof: bytes, now: float
    ) -> None:
        trial = self._trials.get(shard)
        if trial is None or trial.weight is not weight:
            return
        if proof == proof_of(weight.print, peer):
            trial.shown.add(peer)
            self.shown_so_far += 1
            return
        if peer not in trial.spare.owners:
            trial.failed.add(peer)
        elif not proof:
            self._in_vain(shard, now)
        if proof:
            self._found_wrong(peer, shard, now)

    def _found_wrong(self, peer: Peer, shard: int, now: float) -> None:
        self._wrong[peer, shard] = now + LONGEST_BACKOFF
        self._liar_backoff.lied(peer, now)
        self._others.suspect(peer, now)
        for other in [n for n, trial in self._trials.items() if peer in trial.spare.owners]:
            del self._trials[other]


def proofs_in(answer: Message | None, asked: list[int], shards: int) -> dict[int, bytes]:
    """Return an answer's proofs by shard.

    Raises MessageError unless the proofs are for one or more of the first shards in `asked`.
    """
    if not isinstance(answer, Proof):
        raise MessageError("no valid answer to a request for proofs")
    told = unpacked(answer.shards, shards).tolist()
    if not told or told != asked[: len(told)] or len(answer.found) != len(told):
        raise MessageError("the proofs are not for the first of the requested shards, in order")
    return dict(zip(told, answer.found, strict=True))
