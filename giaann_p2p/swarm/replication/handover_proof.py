"""Whether the owners of what is to be let go hold it: none is believed that cannot show it.

1. Some shards at a time are on *trial*: all their owners say that they are ready, and a moment
   later that they have every chunk that is here. Meanwhile nothing is fetched for these shards, so
   that what is here stands still and what the owners have only grows beyond it.
2. What is here is weighed under a salt that nobody can foresee (see `weighing`), and each owner is
   asked what it comes to with it. An owner answers in its own name: who holds nothing cannot pass
   on what another says.
3. Who cannot tell, for it has let go of what it would have to take away, is asked again later, with
   another salt; by then this peer has fetched what it lacks. What changed here is weighed anew.
4. Who tells it wrong is in doubt: it is asked nothing of the kind for a while, longer each time,
   and of that shard not for an hour. What it owns stays here, kept up with the others, until other
   owners come.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import MessageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.actions import Action, Call, Weigh
from giaann_p2p.swarm.comparing import Others
from giaann_p2p.swarm.desk import Desk
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import SALT_BYTES, AskProof, Message, Proof, Refused
from giaann_p2p.swarm.replica import State
from giaann_p2p.swarm.replicas import Replicas
from giaann_p2p.swarm.settings import Settings
from giaann_p2p.swarm.shardset import packed, unpacked
from giaann_p2p.swarm.shunned import MOST_SHUN, Shunned
from giaann_p2p.swarm.weighing import Weight, Weights, proof_of

AT_ONCE = 64
"""Shards on trial at the same time."""
TRIAL = 30.0
"""Seconds after which a trial is over. No proof counts for longer."""
SETTLING = 5.0
"""Seconds in which the owners of a shard on trial must have come to have all that is here."""
REST, LONGEST_REST = 2.0, 60.0
"""Seconds from a trial in vain to the next one of the same shard: twice as long each time."""


class Spare(NamedTuple):
    """What may be let go as far as time is concerned, and as all its owners say they are ready."""

    mine: Applied
    owners: Sequence[Peer]
    covered: bool
    """Whether they also say that they have all that is here."""


class _Rest(NamedTuple):
    until: float
    seconds: float


@dataclass
class _Case:
    """A shard on trial."""

    owners: Sequence[Peer]
    weight: Weight | None = None
    shown: set[Peer] = field(default_factory=set)


@dataclass
class _Trial:
    """Shards that are tried together."""

    salt: bytes
    begun: float
    cases: dict[int, _Case]
    weighing: bool = False
    asking: set[Peer] = field(default_factory=set)


class Proving:
    """One trial at a time; in it, one question at a time to each owner."""

    def __init__(
        self,
        settings: Settings,
        replicas: Replicas,
        others: Others,
        desk: Desk[Message | None, Action],
        weighing: Desk[Weights, Action],
        secret: bytes,
    ) -> None:
        self.shown_so_far = 0
        """Proofs that were right."""
        self._settings, self._replicas, self._others = settings, replicas, others
        self._desk, self._weighing = desk, weighing
        self._secret = secret
        self._trials = 0
        self._trial: _Trial | None = None
        self._rests: dict[int, _Rest] = {}
        self._next: dict[Peer, float] = {}
        self._shunned = Shunned()
        self._wrong: dict[tuple[Peer, int], float] = {}  # until when it is not asked again

    def __repr__(self) -> str:
        cases = self._trial.cases if self._trial else {}
        return f"<Proving: {len(cases)} shards on trial, {len(self._shunned)} peers found wrong>"

    def fetches(self, shard: int) -> bool:
        """Tell whether what a shard lacks is to be fetched.

        What others should hold is kept up with them as long as it is here, but for the time of a
        trial. What never was ready is worth it only when it could not be let go of as it is.
        """
        if self._replicas.wanted(shard):
            return True
        if self._trial and shard in self._trial.cases:
            return False
        return self._replicas.state(shard) is State.DRAINING or shard in self._rests

    def shown(self, shard: int, mine: Applied, owners: Sequence[Peer], now: float) -> bool:
        """Tell whether all owners have shown that they hold what is here now."""
        if self._trial is None or now - self._trial.begun >= TRIAL:
            return False
        case = self._trial.cases.get(shard)
        if case is None or case.weight is None or case.weight.chunks != mine:
            return False
        return case.shown.issuperset(owners)

    def restarted(self, peer: Peer) -> None:
        """A peer began anew: what it held then, it may have lost."""
        for case in self._trial.cases.values() if self._trial else ():
            case.shown.discard(peer)

    def due(self, spare: Mapping[int, Spare], now: float) -> list[Action]:
        """Go on with the trial, or begin another; this is all that may be let go now."""
        self._forget(now)
        if self._trial:
            self._look(self._trial, spare, now)
        if not (self._trial and self._trial.cases):
            self._trial = self._new(spare, now)
        return self._go_on(self._trial, spare, now) if self._trial else []

    def _forget(self, now: float) -> None:
        """Forget what is over, and rests of what is not here any more, or is wanted again."""
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
        if shard in self._rests and now < self._rests[shard].until:
            return False
        return not any(
            self._shunned.holds(peer, now) or (peer, shard) in self._wrong for peer in owners
        )

    def _look(self, trial: _Trial, spare: Mapping[int, Spare], now: float) -> None:
        """Leave out what need not be tried any more, or cannot be as it is now."""
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
        old = self._rests.get(shard)
        seconds = min(2 * old.seconds, LONGEST_REST) if old else REST
        self._rests[shard] = _Rest(now + seconds, seconds)

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
        """Ask each owner for what it has yet to show, those shards at once with the same chunks."""
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
        number = self._desk.number(partial(self._told, trial, peer, asked))
        some = packed(np.array(list(asked), np.uint16), self._replicas.shards)
        question = AskProof(some, chunks.to_bytes(), trial.salt)
        return Call(number, peer, question, self._settings.call_timeout)

    def _told(
        self, trial: _Trial, peer: Peer, asked: Weights, answer: Message | None, now: float
    ) -> list[Action]:
        trial.asking.discard(peer)
        if trial is not self._trial:
            return []
        if isinstance(answer, Refused):
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
        self._shunned.lied(peer, now)
        self._others.suspect(peer, now)
        for other in [n for n, case in trial.cases.items() if peer in case.owners]:
            del trial.cases[other]


def proofs_in(answer: Message | None, asked: list[int], shards: int) -> dict[int, bytes]:
    """Return the proofs by shard; MessageError if there is none, or not what was asked for."""
    if not isinstance(answer, Proof):
        raise MessageError("no answer to a wish for a proof")
    told = unpacked(answer.shards, shards).tolist()
    if not told or told != asked[: len(told)] or len(answer.found) != len(told):
        raise MessageError("shards: not those that were asked for, from the first on")
    return dict(zip(told, answer.found, strict=True))
