"""Whether those that own a shard hold the same: owners try each other, now and then, in turn.

1. Some shards that are ready here are weighed under a salt that nobody can foresee (see
   `weighing`), and each other owner is asked what they come to. Who has more meanwhile can tell
   all the same; who holds nothing cannot tell, nor pass on what another says.
2. Of a shard, those that come to the same as this peer are with it in a majority of all replicas
   that there should be, or nothing follows: then perhaps it is this peer that is wrong.
3. With a majority behind it, it names who came to something else, in its own record; and who did
   not tell, though others did, EVASIONS times in a row. What follows from names: see `barring`.
4. Who is named is tried again with the others, and named until it comes to the same; or until it
   has had nothing of the shard for a while, as when it begins anew with an empty disk.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np

from giaann_p2p.errors import MessageError
from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm import comparing
from giaann_p2p.swarm.actions import Action, Call, Weigh
from giaann_p2p.swarm.desk import Desk
from giaann_p2p.swarm.electors import majority
from giaann_p2p.swarm.evidence import Evidence
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import SALT_BYTES, AskProof, Message, Refused
from giaann_p2p.swarm.proving import proofs_in
from giaann_p2p.swarm.replica import State
from giaann_p2p.swarm.replicas import Replicas
from giaann_p2p.swarm.settings import Settings
from giaann_p2p.swarm.shardset import packed
from giaann_p2p.swarm.weighing import Weight, Weights, proof_of

AT_ONCE = 64
"""Shards that are tried at the same time, unless they are too large for that."""
LASTS = 30.0
"""Seconds after which who has not told yet has not told."""
EVASIONS = 10
"""How often in a row a peer need not tell what a shard comes to with it. An honest one may be
behind, or busy, once or twice."""
KEEPS = 600.0
"""Seconds for which who has nothing of a shard any more is named still: whoever could have itself
forgotten at once would own the shard again at once."""


class Others(comparing.Others, Protocol):
    """What is known of the other peers; see `Surroundings`."""

    def witnesses(self, shard: int, now: float) -> Sequence[Peer]:
        """Return those that hold a shard, or may come back and hold it."""
        ...


@dataclass
class _Case:
    """A shard that is tried."""

    weight: Weight
    same: set[Peer] = field(default_factory=set)
    other: set[Peer] = field(default_factory=set)
    untold: set[Peer] = field(default_factory=set)


@dataclass
class _Audit:
    salt: bytes
    begun: float
    cases: dict[int, _Case] = field(default_factory=dict)
    left: dict[Peer, list[int]] = field(default_factory=dict)
    """Shards that each is still to be asked for."""


class Auditing:
    """One audit at a time; in it, one question at a time to each owner."""

    def __init__(
        self,
        settings: Settings,
        copies: int,
        replicas: Replicas,
        others: Others,
        evidence: Evidence,
        desk: Desk[Message | None, Action],
        weighing: Desk[Weights, Action],
        secret: bytes,
        now: float,
    ) -> None:
        self.changes = 0
        """How often somebody was named, or is no longer."""
        self.audits = 0
        """So far."""
        self._settings, self._copies = settings, copies
        self._replicas, self._others = replicas, others
        self._evidence, self._desk, self._weighing = evidence, desk, weighing
        self._secret = secret
        self._audit: _Audit | None = None
        part = int.from_bytes(replicas.me[:2], "little") / (1 << 16)  # not all at the same moment
        self._next = now + settings.audit_every * (0.5 + part / 2)
        self._turn = 0
        self._named: dict[Peer, dict[int, float]] = {}  # when it was last seen to have the shard
        self._evaded = Counter[tuple[Peer, int]]()

    def __repr__(self) -> str:
        return f"<Auditing: {self.audits} audits, {len(self._named)} peers named>"

    def wrong(self) -> dict[Peer, Shards]:
        """Return who holds something wrong of which shards, as far as is known."""
        return {peer: np.array(sorted(shards), np.uint16) for peer, shards in self._named.items()}

    def due(self, now: float) -> list[Action]:
        """Begin another audit if it is time to."""
        self._forget(now)
        if self._audit is not None and now - self._audit.begun >= LASTS:
            self._end(self._audit)
        if now < self._next:
            return []
        self._next = now + self._settings.audit_every
        if self._audit is not None:
            return []
        return self._begin(now)

    def _begin(self, now: float) -> list[Action]:
        owners = self._replicas.owners
        for peer, shard in [key for key in self._evaded if key[0] not in owners(key[1])]:
            del self._evaded[peer, shard]  # it is counted anew if it comes back
        shards = self._chosen(now)
        if not shards:
            return []
        self.audits += 1
        data = b"audit" + self.audits.to_bytes(8, "little") + repr(now).encode()
        salt = hashlib.blake2b(data, digest_size=SALT_BYTES, key=self._secret).digest()
        self._audit = _Audit(salt, now)
        number = self._weighing.number(partial(self._were_weighed, self._audit))
        return [Weigh(number, np.array(shards, np.uint16), salt)]

    def _chosen(self, now: float) -> list[int]:
        """Return the shards whose turn it is, of those that others say they have ready."""
        ready = [n for n in self._replicas.all(State.READY).tolist() if self._replicas.wanted(n)]
        later = [n for n in ready if n >= self._turn]
        earlier = [n for n in ready if n < self._turn]
        chosen = list[int]()
        for shard in later + earlier:
            if len(chosen) == AT_ONCE:
                break
            if self._tried(shard, now):
                chosen.append(shard)
        return chosen

    def _tried(self, shard: int, now: float) -> list[Peer]:
        """Return those that are to tell what a shard comes to with them."""
        since = now - self._settings.word_counts
        named = {peer for peer, shards in self._named.items() if shard in shards}
        asked = named.union(self._replicas.owners(shard)) - {self._replicas.me}
        words = self._evidence.on(shard, since)
        return sorted(peer for peer, word in words if word.state.serves and peer in asked)

    def _were_weighed(self, audit: _Audit, weights: Weights, now: float) -> list[Action]:
        if audit is not self._audit:
            return []
        for shard, weight in sorted(weights.items()):
            audit.cases[shard] = _Case(weight)
            for peer in self._tried(shard, now):
                audit.left.setdefault(peer, []).append(shard)
        self._turn = [*weights][-1] + 1 if weights else 0
        if not audit.left:
            self._audit = None
            return []
        return [self._question(audit, peer) for peer in sorted(audit.left)]

    def _question(self, audit: _Audit, peer: Peer) -> Call:
        """Ask for those shards at once that have the same chunks."""
        left = audit.left[peer]
        chunks = audit.cases[left[0]].weight.chunks
        asked = [shard for shard in left if audit.cases[shard].weight.chunks == chunks]
        number = self._desk.number(partial(self._told, audit, peer, asked))
        some = packed(np.array(asked, np.uint16), self._replicas.shards)
        question = AskProof(some, chunks.to_bytes(), audit.salt)
        return Call(number, peer, question, self._settings.call_timeout)

    def _told(
        self, audit: _Audit, peer: Peer, asked: list[int], answer: Message | None, now: float
    ) -> list[Action]:
        try:
            found = proofs_in(answer, asked, self._replicas.shards)
            self._others.heard(peer)
        except MessageError:
            found = dict.fromkeys(asked, b"")
            if isinstance(answer, Refused):
                self._others.heard(peer)
            else:
                self._others.suspect(peer, now)
        if audit is not self._audit:
            return []
        for shard, proof in found.items():
            self._judge(audit.cases[shard], peer, proof)
            self._settle(shard, audit.cases[shard], now)
        left = audit.left[peer] = [n for n in audit.left[peer] if n not in found]
        if left:
            return [self._question(audit, peer)]
        del audit.left[peer]
        if not audit.left:
            self._end(audit)
        return []

    def _judge(self, case: _Case, peer: Peer, proof: bytes) -> None:
        if not proof:
            case.untold.add(peer)
        elif proof == proof_of(case.weight.print, peer):
            case.same.add(peer)
        else:
            case.other.add(peer)

    def _settle(self, shard: int, case: _Case, now: float) -> None:
        """Name who is wrong, once a majority is behind what is here."""
        if not self._is_backed(case):
            return
        for peer in case.same:
            self._evaded.pop((peer, shard), None)
            self._unname(peer, shard)
        for peer in case.other:
            self._name(peer, shard, now)

    def _end(self, audit: _Audit) -> None:
        """Note who did not tell what others told."""
        self._audit = None
        for shard, case in audit.cases.items():
            for peer in case.untold if self._is_backed(case) else ():
                self._evaded[peer, shard] += 1
                if self._evaded[peer, shard] >= EVASIONS:
                    self._name(peer, shard, audit.begun)

    def _is_backed(self, case: _Case) -> bool:
        return 1 + len(case.same) >= majority(self._copies)

    def _name(self, peer: Peer, shard: int, now: float) -> None:
        shards = self._named.setdefault(peer, {})
        self.changes += shard not in shards
        shards[shard] = now

    def _unname(self, peer: Peer, shard: int) -> None:
        shards = self._named.get(peer, {})
        if shard in shards:
            self.changes += 1
            del shards[shard]
            if not shards:
                del self._named[peer]

    def _forget(self, now: float) -> None:
        """Forget what does not matter any more."""
        for peer, shards in list(self._named.items()):
            for shard in list(shards):
                if peer in self._others.witnesses(shard, now):
                    shards[shard] = now
                if now - shards[shard] >= KEEPS or not self._replicas.wanted(shard):
                    self._unname(peer, shard)
