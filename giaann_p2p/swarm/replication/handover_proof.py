"""Proof of possession before a shard is dropped: its owners must prove that they hold it.

1. Some shards at a time are on *trial*: all their owners report that they are ready, and soon also
   that they have every chunk that is here. Meanwhile nothing is fetched for these shards, so the
   content here stands still and the owners' content only grows beyond it.
2. This peer fingerprints its content under an unpredictable salt (see `shard_fingerprint`), and
   asks each owner for its own fingerprint. A proof contains its owner's name, so a peer that holds
   nothing cannot relay another's.
3. An owner that has released the deltas that it would have to subtract cannot answer. It is asked
   again later with another salt; by then this peer has fetched the missing chunks. Content that
   changed here is fingerprinted again.
4. An owner whose proof is wrong is put on backoff, longer each time, and is not asked about that
   shard for an hour. The shard stays here and is kept up to date until other owners come.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from giaann_p2p.backoff import Backoff
from giaann_p2p.errors import MessageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.members.liar_backoff import MOST_SHUN, LiarBackoff
from giaann_p2p.swarm.replication.shard_fingerprint import Weight, Weights, proof_of
from giaann_p2p.swarm.replication.shared import Shared
from giaann_p2p.swarm.wire.actions import Action, Call, Weigh
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import SALT_BYTES, AskProof, Message, Proof, Refusal
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed, unpacked

AT_ONCE = 64
"""Maximum number of shards on trial at the same time."""
TRIAL = 30.0
"""Seconds until a trial ends, and with it the validity of its proofs."""
SETTLING = 5.0
"""Seconds within which the owners of a shard on trial must have every chunk that is here."""
REST, LONGEST_REST = 2.0, 60.0
"""Seconds from a failed trial to the next trial of the same shard: at first, doubled each time, and
at most."""


class Spare(NamedTuple):
    """A shard that was kept for long enough, and that all its owners report ready."""

    mine: Applied
    owners: Sequence[Peer]
    covered: bool
    """Whether the owners also report that they have every chunk that is here."""


@dataclass
class _Case:
    """A shard on trial, and the owners that have proved that they hold it."""

    owners: Sequence[Peer]
    weight: Weight | None = None
    shown: set[Peer] = field(default_factory=set)


@dataclass
class _Trial:
    """Shards that are tried together, under one salt."""

    salt: bytes
    begun: float
    cases: dict[int, _Case]
    weighing: bool = False
    asking: set[Peer] = field(default_factory=set)


class HandoverProof:
    """Runs one trial at a time, with at most one question in flight to each owner."""

    def __init__(self, shared: Shared) -> None:
        self.shown_so_far = 0
        """Number of valid proofs so far."""
        self._settings, self._replicas = shared.settings, shared.replicas
        self._others, self._secret = shared.others, shared.secret
        self._pending_calls, self._weighing = shared.calls, shared.weighings
        self._trials = 0
        self._trial: _Trial | None = None
        self._rests: dict[int, Backoff] = {}
        self._next: dict[Peer, float] = {}
        self._liar_backoff = LiarBackoff()
        self._wrong: dict[tuple[Peer, int], float] = {}  # after a wrong proof: end of the pause

    def __repr__(self) -> str:
        cases = self._trial.cases if self._trial else {}
        return f"<HandoverProof: {len(cases)} on trial, {len(self._liar_backoff)} found wrong>"

    def fetches(self, shard: int) -> bool:
        """Return whether missing chunks are to be fetched for a shard.

        An unwanted shard is kept up to date as long as it is here, except during its trial. A shard
        that was never ready is worth fetching for only after a trial of it has failed.
        """
        if self._replicas.wanted(shard):
            return True
        if self._trial and shard in self._trial.cases:
            return False
        return self._replicas.state(shard) is ReplicaState.DRAINING or shard in self._rests

    def shown(self, shard: int, mine: Applied, owners: Sequence[Peer], now: float) -> bool:
        """Return whether all owners have proved that they hold exactly what is here now."""
        if self._trial is None or now - self._trial.begun >= TRIAL:
            return False
        case = self._trial.cases.get(shard)
        if case is None or case.weight is None or case.weight.chunks != mine:
            return False
        return case.shown.issuperset(owners)

    def restarted(self, peer: Peer) -> None:
        """Discard the proofs of a peer that restarted: it may have lost what it held."""
        for case in self._trial.cases.values() if self._trial else ():
            case.shown.discard(peer)

    def due(self, spare: Mapping[int, Spare], now: float) -> list[Action]:
        """Continue the trial, or begin another; `spare` holds every shard that may be tried now."""
        self._forget(now)
        if self._trial:
            self._look(self._trial, spare, now)
        if not (self._trial and self._trial.cases):
            self._trial = self._new(spare, now)
        return self._go_on(self._trial, spare, now) if self._trial else []

    def _forget(self, now: float) -> None:
        """Forget expired delays, and delays of shards that are gone or wanted again."""
        if self._rests:
            self._rests = {n: rest for n, rest in self._rests.items() if self._is_unwanted(n)}
        if self._next:
            self._next = {peer: when for peer, when in self._next.items() if now < when}
        if self._wrong:
            self._wrong = {told: until for told, until in self._wrong.items() if now < until}

    def _is_unwanted(self, shard: int) -> bool:
        return self._replicas.holds(shard) and not self._replicas.wanted(shard)

    def _new(self, spare: Mapping[int, Spare], now: float) -> _Trial | None:
        ready = [shard for shard, one in spare.items() if self._may_try(shard, one.owners, now)]
        ready.sort(key=lambda shard: not spare[shard].covered)
        if not ready:
            return None
        self._trials += 1
        data = self._trials.to_bytes(8, "little") + repr(now).encode()
        salt = hashlib.blake2b(data, digest_size=SALT_BYTES, key=self._secret).digest()
        return _Trial(salt, now, {shard: _Case(spare[shard].owners) for shard in ready[:AT_ONCE]})

    def _may_try(self, shard: int, owners: Sequence[Peer], now: float) -> bool:
        if shard in self._rests and self._rests[shard].holds(now):
            return False
        return not any(
            self._liar_backoff.holds(peer, now) or (peer, shard) in self._wrong for peer in owners
        )

    def _look(self, trial: _Trial, spare: Mapping[int, Spare], now: float) -> None:
        """Drop from the trial the shards that need it no more, have changed, or ran out of time."""
        age = now - trial.begun
        for shard, case in list(trial.cases.items()):
            one = spare.get(shard)
            changed = one is None or case.owners != one.owners
            if one and case.weight:
                changed = changed or case.weight.chunks != one.mine
            if one is None or changed or age >= TRIAL:
                del trial.cases[shard]
            elif not case.weight and not one.covered and age >= SETTLING:
                self._in_vain(trial, shard, now)

    def _in_vain(self, trial: _Trial, shard: int, now: float) -> None:
        del trial.cases[shard]
        self._rests[shard] = self._rests.get(shard, Backoff(REST, LONGEST_REST)).failed(now)

    def _go_on(self, trial: _Trial, spare: Mapping[int, Spare], now: float) -> list[Action]:
        actions: list[Action] = []
        open_still = [n for n, case in trial.cases.items() if not case.weight and spare[n].covered]
        if open_still and not trial.weighing:
            trial.weighing = True
            number = self._weighing.number(partial(self._were_weighed, trial))
            actions.append(Weigh(number, np.array(sorted(open_still), np.uint16), trial.salt))
        return actions + self._questions(trial, now)

    def _were_weighed(self, trial: _Trial, weights: Weights, now: float) -> list[Action]:
        trial.weighing = False
        for shard, weight in weights.items():
            if shard in trial.cases:
                trial.cases[shard].weight = weight
        return self._questions(trial, now) if trial is self._trial else []

    def _questions(self, trial: _Trial, now: float) -> list[Action]:
        """Ask each owner for its missing proofs, in one question for shards with equal sets."""
        lacking: dict[Peer, list[int]] = {}
        for shard, case in trial.cases.items():
            for peer in case.owners if case.weight else ():
                if peer not in case.shown:
                    lacking.setdefault(peer, []).append(shard)
        return [
            self._question(trial, peer, shards)
            for peer, shards in lacking.items()
            if peer not in trial.asking and now >= self._next.get(peer, now)
        ]

    def _question(self, trial: _Trial, peer: Peer, shards: list[int]) -> Call:
        weights = {n: weight for n in shards if (weight := trial.cases[n].weight)}
        chunks = weights[shards[0]].chunks
        asked = {n: weight for n, weight in sorted(weights.items()) if weight.chunks == chunks}
        trial.asking.add(peer)
        number = self._pending_calls.number(partial(self._told, trial, peer, asked))
        some = packed(np.array(list(asked), np.uint16), self._replicas.shards)
        question = AskProof(some, chunks.to_bytes(), trial.salt)
        return Call(number, peer, question, self._settings.call_timeout)

    def _told(
        self, trial: _Trial, peer: Peer, asked: Weights, answer: Message | None, now: float
    ) -> list[Action]:
        trial.asking.discard(peer)
        if trial is not self._trial:
            return []
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
            self._judge(trial, peer, shard, asked[shard], proof, now)
        return self._questions(trial, now)

    def _judge(
        self, trial: _Trial, peer: Peer, shard: int, weight: Weight, proof: bytes, now: float
    ) -> None:
        case = trial.cases.get(shard)
        if case is None or case.weight is not weight:
            return
        if not proof:
            self._in_vain(trial, shard, now)
        elif proof == proof_of(weight.print, peer):
            case.shown.add(peer)
            self.shown_so_far += 1
        else:
            self._found_wrong(trial, peer, shard, now)

    def _found_wrong(self, trial: _Trial, peer: Peer, shard: int, now: float) -> None:
        self._wrong[peer, shard] = now + MOST_SHUN
        self._liar_backoff.lied(peer, now)
        self._others.suspect(peer, now)
        for other in [n for n, case in trial.cases.items() if peer in case.owners]:
            del trial.cases[other]


def proofs_in(answer: Message | None, asked: list[int], shards: int) -> dict[int, bytes]:
    """Return the proofs by shard; MessageError unless they are for the first shards of `asked`."""
    if not isinstance(answer, Proof):
        raise MessageError("no answer to a wish for a proof")
    told = unpacked(answer.shards, shards).tolist()
    if not told or told != asked[: len(told)] or len(answer.found) != len(told):
        raise MessageError("shards: not those that were asked for, from the first on")
    return dict(zip(told, answer.found, strict=True))
