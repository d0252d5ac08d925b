"""Audits of replicas: the owners of a shard periodically check that they hold the same content.

1. The auditor fingerprints some of its ready shards under an unpredictable salt (see
   `shard_fingerprint`) and asks each other owner for its own fingerprint. An owner that has more
   chunks by now can still answer. An owner that holds nothing cannot answer, and cannot relay
   another owner's answer.
2. A finding needs a majority: the auditor and the owners that agree with it must be more than half
   of the replicas that a shard should have. Otherwise the auditor may be the one that is wrong.
3. With a majority, the auditor accuses in its own record each peer that disagreed, and each peer
   that failed to answer EVASIONS times in a row although others answered. A peer that most owners
   accuse is excluded from the shard (see `exclusion`).
4. An accused peer is still audited. It stays accused until it agrees, or until it has held nothing
   of the shard for KEEPS seconds, as after a fresh start with an empty disk.
"""

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from giaann_p2p.errors import MessageError
from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.members.majority import majority
from giaann_p2p.swarm.replication.handover_proof import PROOF_TIMEOUT, proofs_in
from giaann_p2p.swarm.replication.shard_fingerprint import (
    ShardFingerprint,
    ShardFingerprints,
    proof_of,
)
from giaann_p2p.swarm.replication.shared import Shared
from giaann_p2p.swarm.wire.actions import Action, Call, TakeFingerprints
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import SALT_BYTES, AskProof, Refusal
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import children, packed

AT_ONCE = 64
"""Maximum number of shards in one audit; fewer if the shards are large."""
LASTS = 30.0
"""Maximum duration of an audit, in seconds. Questions that are unanswered by then are ignored."""
EVASIONS = 10
"""Number of audits of a shard in a row that a peer must fail to answer before it is accused. An
honest peer may be behind or busy once or twice."""
KEEPS = 600.0
"""Seconds for which a peer stays accused after it has dropped the shard. Without this delay, an
accused peer could drop the shard, be cleared at once, and own the shard again."""


@dataclass
class _Case:
    """One shard of an audit, with the audited peers sorted by their answers."""

    weight: ShardFingerprint
    """The auditor's own fingerprint of the shard."""
    same: set[Peer] = field(default_factory=set)
    """Peers whose fingerprint equals the auditor's."""
    other: set[Peer] = field(default_factory=set)
    """Peers whose fingerprint differs from the auditor's."""
    untold: set[Peer] = field(default_factory=set)
    """Peers that could not, or would not, prove what they hold."""


@dataclass
class _Audit:
    """An audit in progress: fingerprints of some shards under one salt."""

    salt: bytes
    begun: float
    """Time at which the audit began."""
    cases: dict[int, _Case] = field(default_factory=dict)
    """The findings so far, by shard."""
    left: dict[Peer, list[int]] = field(default_factory=dict)
    """The shards that each audited peer has yet to prove."""


class ReplicaAudit:
    """Runs one audit at a time, with at most one question in flight to each audited peer."""

    def __init__(self, shared: Shared) -> None:
        self.changes = 0
        """Number of accusations made or withdrawn so far, counting each pair of peer and shard."""
        self.audits = 0
        """Number of audits begun so far."""
        self._settings, self._shared = shared.settings, shared
        self._replicas, self._others, self._reports = shared.replicas, shared.others, shared.reports
        self._pending_calls, self._weighing = shared.calls, shared.weighings
        self._secret = shared.secret
        self._audit: _Audit | None = None
        part = int.from_bytes(self._replicas.me[:2], "little") / (
            1 << 16
        )  # spreads audits over time
        self._next = shared.begun + self._settings.audit_every * (0.5 + part / 2)
        self._turn = 0
        self._named: dict[Peer, dict[int, float]] = {}  # accused peers: when each last had a shard
        self._evaded = Counter[tuple[Peer, int]]()

    def __repr__(self) -> str:
        return f"<ReplicaAudit: {self.audits} audits, {len(self._named)} peers accused>"

    def take_over(self, past: "ReplicaAudit") -> None:
        """Continue the audits from before the shards were divided.

        Accusations stay: otherwise an excluded peer would own its shards again for a while. An
        audit under way is given up.
        """
        before, shards = past._replicas.shards, self._replicas.shards
        self.changes, self.audits, self._next = past.changes + 1, past.audits, past._next
        for peer, named in past._named.items():
            self._named[peer] = {
                child: at
                for shard, at in named.items()
                for child in children([shard], before, shards)
            }
        for (peer, shard), count in past._evaded.items():
            for child in children([shard], before, shards):
                self._evaded[peer, child] = count

    def wrong(self) -> dict[Peer, Shards]:
        """Return the accused peers, each with the shards of which it holds wrong content."""
        return {peer: np.array(sorted(shards), np.uint16) for peer, shards in self._named.items()}

    def due(self, now: float) -> list[Action]:
        """End an audit that has timed out, and begin the next one when it is due."""
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
            del self._evaded[peer, shard]  # a peer that owns the shard again starts from zero
        shards = self._chosen(now)
        if not shards:
            return []
        self.audits += 1
        data = b"audit" + self.audits.to_bytes(8, "little") + repr(now).encode()
        salt = hashlib.blake2b(data, digest_size=SALT_BYTES, key=self._secret).digest()
        self._audit = _Audit(salt, now)
        number = self._weighing.number(partial(self._were_weighed, self._audit))
        return [TakeFingerprints(number, np.array(shards, np.uint16), salt)]

    def _chosen(self, now: float) -> list[int]:
        """Return the next shards, round robin, on which at least one other peer can be audited."""
        ready = [
            n for n in self._replicas.all(ReplicaState.READY).tolist() if self._replicas.wanted(n)
        ]
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
        """Return the peers to audit on a shard: its owners and accused peers that serve it."""
        since = now - max(self._settings.word_counts, 2 * self._settings.calm_every)
        named = {peer for peer, shards in self._named.items() if shard in shards}
        asked = named.union(self._replicas.owners(shard)) - {self._replicas.me}
        words = self._reports.on(shard, since)
        return sorted(peer for peer, word in words if word.state.serves and peer in asked)

    def _were_weighed(self, audit: _Audit, weights: ShardFingerprints, now: float) -> list[Action]:
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
        """Ask a peer for its next missing proofs, all of shards with the same set of chunks."""
        left = audit.left[peer]
        chunks = audit.cases[left[0]].weight.chunks
        asked = [shard for shard in left if audit.cases[shard].weight.chunks == chunks]
        number = self._pending_calls.number(partial(self._on_answer, audit, peer, asked))
        some = packed(np.array(asked, np.uint16), self._replicas.shards)
        question = AskProof(some, chunks.to_bytes(), audit.salt)
        return Call(number, peer, question, PROOF_TIMEOUT)

    def _on_answer(
        self, audit: _Audit, peer: Peer, asked: list[int], answer: Message | None, now: float
    ) -> list[Action]:
        try:
            found = proofs_in(answer, asked, self._replicas.shards)
            self._others.heard(peer)
        except MessageError:
            found = dict.fromkeys(asked, b"")
            if isinstance(answer, Refusal):
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
        """If a majority agrees with this peer, accuse peers that differ and clear those that agree.

        Without a majority, change nothing: this peer may be the one that is wrong.
        """
        if not self._is_backed(case):
            return
        for peer in case.same:
            self._evaded.pop((peer, shard), None)
            self._unname(peer, shard)
        for peer in case.other:
            self._name(peer, shard, now)

    def _end(self, audit: _Audit) -> None:
        """End an audit; count an evasion for each peer that gave no proof although a majority did.

        A peer with EVASIONS evasions of a shard in a row is accused.
        """
        self._audit = None
        for shard, case in audit.cases.items():
            for peer in case.untold if self._is_backed(case) else ():
                self._evaded[peer, shard] += 1
                if self._evaded[peer, shard] >= EVASIONS:
                    self._name(peer, shard, audit.begun)

    def _is_backed(self, case: _Case) -> bool:
        return 1 + len(case.same) >= majority(self._shared.rules.replicas)

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
        """Withdraw accusations that have expired, or whose shard this peer no longer owns."""
        for peer, shards in list(self._named.items()):
            for shard in list(shards):
                if peer in self._others.witnesses(shard, now):
                    shards[shard] = now
                if now - shards[shard] >= KEEPS or not self._replicas.wanted(shard):
                    self._unname(peer, shard)
