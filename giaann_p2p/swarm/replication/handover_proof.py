"""Proof of possession: before a peer drops a shard, its owners must prove that they hold it.

1. A few shards at a time are on *trial*. All owners of such a shard report it ready, and must soon
   also report every chunk that the dropping peer has. Meanwhile the dropping peer fetches nothing
   for the shard, so its own content stands still and the owners' content only grows beyond it.
2. The dropping peer fingerprints its content under an unpredictable salt (see `shard_fingerprint`),
   and asks each owner for its own fingerprint as soon as that owner reports every chunk. It does
   not wait until all do: under churn, all owners are rarely up to date at the same time. A proof
   contains its owner's name, so a peer that holds nothing cannot relay another peer's proof.
3. An owner that has more chunks subtracts their deltas. If it has released these deltas, it cannot
   answer, and is asked again later with another salt; by then the dropping peer has fetched the
   chunks. If the dropping peer's content changes, it is fingerprinted again.
4. An owner whose proof is wrong is put on backoff, longer each time, and is not asked about that
   shard for an hour. The shard is kept, and kept up to date, until other owners take it over.
"""

import hashlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from giaann_p2p.backoff import Backoff
from giaann_p2p.errors import MessageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.members.liar_backoff import LONGEST_BACKOFF, LiarBackoff
from giaann_p2p.swarm.replication.shard_fingerprint import (
    ShardFingerprint,
    ShardFingerprints,
    proof_of,
)
from giaann_p2p.swarm.replication.shared import Shared
from giaann_p2p.swarm.wire.actions import Action, Call, TakeFingerprints
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import SALT_BYTES, AskProof, Message, Proof, Refusal
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed, unpacked

AT_ONCE = 64
"""Maximum number of shards on trial at the same time."""
TRIAL = 30.0
"""Duration of a trial in seconds; proofs given in a trial are valid only until it ends."""
PROOF_TIMEOUT = 15.0
"""Timeout in seconds of a question for proofs. They may take a busy peer long, and all its work is
wasted if nobody waits for the answer."""
SETTLING = 10.0
"""Seconds from the start of a trial by which the owners must report every chunk of the shard. An
owner that is restarted needs about as long. The more chunks come meanwhile, the more an owner must
subtract for its proof."""
REST, LONGEST_REST = 2.0, 30.0
"""Backoff of a shard whose trial failed, in seconds: the first pause, and the longest. The pause
doubles with each failed trial."""


class Spare(NamedTuple):
    """A shard that this peer may drop as soon as its owners prove that they hold it.

    All the owners report the shard ready already.
    """

    mine: Applied
    """The chunks that this peer has applied to the shard."""
    owners: Sequence[Peer]
    covering: Set[Peer]
    """The owners that report every chunk in `mine`."""


@dataclass
class _Case:
    """A shard on trial, and the owners that have proved that they hold it."""

    owners: Sequence[Peer]
    covering: Set[Peer]
    """The owners that report every chunk of the shard, as of the last look."""
    weight: ShardFingerprint | None = None
    """This peer's own fingerprint of the shard; None until it is computed."""
    shown: set[Peer] = field(default_factory=set)
    """Owners that have proved that they hold the shard."""


@dataclass
class _Trial:
    """A trial: shards whose owners are asked for proofs under the same salt."""

    salt: bytes
    begun: float
    """Time at which the trial began."""
    cases: dict[int, _Case]
    weighing: bool = False
    """Whether this peer's own fingerprints are being computed."""
    asking: set[Peer] = field(default_factory=set)
    """Owners with a question in flight."""


class HandoverProof:
    """Gets proofs from the owners of shards that this peer is to drop.

    One trial runs at a time, with at most one question in flight to each owner.
    """

    def __init__(self, shared: Shared) -> None:
        self.shown_so_far = 0
        """Number of correct proofs received so far."""
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
        """Return whether this peer fetches missing chunks for a shard that it holds.

        A shard that this peer no longer owns is kept up to date as long as it is held, except
        during its trial. If it was never ready here, chunks are fetched only after a failed trial.
        """
        if self._replicas.wanted(shard):
            return True
        if self._trial and shard in self._trial.cases:
            return False
        return self._replicas.state(shard) is ReplicaState.DRAINING or shard in self._rests

    def shown(self, shard: int, mine: Applied, owners: Sequence[Peer], now: float) -> bool:
        """Return whether all owners of a shard have proved that they hold the chunks `mine`."""
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
        """Continue the trial, or begin another; `spare` are the shards that may be on trial now."""
        self._forget(now)
        if self._trial:
            self._look(self._trial, spare, now)
        if not (self._trial and self._trial.cases):
            self._trial = self._new(spare, now)
        return self._go_on(self._trial, now) if self._trial else []

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

    def _new(self, spare: Mapping[int, Spare], now: float) -> _Trial | None:
        ready = [shard for shard, one in spare.items() if self._may_try(shard, one.owners, now)]
        ready.sort(key=lambda shard: -len(spare[shard].covering))
        if not ready:
            return None
        self._trials += 1
        data = self._trials.to_bytes(8, "little") + repr(now).encode()
        salt = hashlib.blake2b(data, digest_size=SALT_BYTES, key=self._secret).digest()
        chosen = ((shard, spare[shard]) for shard in ready[:AT_ONCE])
        return _Trial(salt, now, {n: _Case(one.owners, one.covering) for n, one in chosen})

    def _may_try(self, shard: int, owners: Sequence[Peer], now: float) -> bool:
        if shard in self._rests and self._rests[shard].holds(now):
            return False
        return not any(
            self._liar_backoff.holds(peer, now) or (peer, shard) in self._wrong for peer in owners
        )

    def _look(self, trial: _Trial, spare: Mapping[int, Spare], now: float) -> None:
        """End the trial of shards that may not be dropped now, that changed, or that took too long.

        A shard whose owners do not report all its chunks in time has failed its trial.
        """
        age = now - trial.begun
        for shard, case in list(trial.cases.items()):
            one = spare.get(shard)
            changed = one is None or case.owners != one.owners
            if one and case.weight:
                changed = changed or case.weight.chunks != one.mine
            if one is None or changed or age >= TRIAL:
                del trial.cases[shard]
                continue
            case.covering = one.covering
            if age >= SETTLING and not {*one.owners} <= one.covering | case.shown:
                self._in_vain(trial, shard, now)

    def _in_vain(self, trial: _Trial, shard: int, now: float) -> None:
        del trial.cases[shard]
        self._rests[shard] = self._rests.get(shard, Backoff(REST, LONGEST_REST)).failed(now)

    def _go_on(self, trial: _Trial, now: float) -> list[Action]:
        actions: list[Action] = []
        open_still = [n for n, case in trial.cases.items() if not case.weight and case.covering]
        if open_still and not trial.weighing:
            trial.weighing = True
            number = self._weighing.number(partial(self._were_weighed, trial))
            actions.append(
                TakeFingerprints(number, np.array(sorted(open_still), np.uint16), trial.salt)
            )
        return actions + self._questions(trial, now)

    def _were_weighed(self, trial: _Trial, weights: ShardFingerprints, now: float) -> list[Action]:
        trial.weighing = False
        for shard, weight in weights.items():
            if shard in trial.cases:
                trial.cases[shard].weight = weight
        return self._questions(trial, now) if trial is self._trial else []

    def _questions(self, trial: _Trial, now: float) -> list[Action]:
        """Ask each owner for the proofs that it owes and can give: at most one call for each owner.

        One question covers only shards with equal sets of chunks.
        """
        lacking: dict[Peer, list[int]] = {}
        for shard, case in trial.cases.items():
            for peer in case.owners if case.weight else ():
                if peer in case.covering and peer not in case.shown:
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
        number = self._pending_calls.number(partial(self._on_answer, trial, peer, asked))
        some = packed(np.array(list(asked), np.uint16), self._replicas.shards)
        question = AskProof(some, chunks.to_bytes(), trial.salt)
        return Call(number, peer, question, PROOF_TIMEOUT)

    def _on_answer(
        self,
        trial: _Trial,
        peer: Peer,
        asked: ShardFingerprints,
        answer: Message | None,
        now: float,
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
        self,
        trial: _Trial,
        peer: Peer,
        shard: int,
        weight: ShardFingerprint,
        proof: bytes,
        now: float,
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
        self._wrong[peer, shard] = now + LONGEST_BACKOFF
        self._liar_backoff.lied(peer, now)
        self._others.suspect(peer, now)
        for other in [n for n, case in trial.cases.items() if peer in case.owners]:
            del trial.cases[other]


def proofs_in(answer: Message | None, asked: list[int], shards: int) -> dict[int, bytes]:
    """Return an answer's proofs by shard.

    Raises MessageError unless the proofs are for one or more of the first shards in `asked`.
    """
    if not isinstance(answer, Proof):
        raise MessageError("no answer to a request for proofs")
    told = unpacked(answer.shards, shards).tolist()
    if not told or told != asked[: len(told)] or len(answer.found) != len(told):
        raise MessageError("the proofs are not for the first of the requested shards, in order")
    return dict(zip(told, answer.found, strict=True))
