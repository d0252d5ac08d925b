"""Audits of replicas: the owners of a shard periodically check that they hold the same content.

1. The auditor fingerprints some of its ready shards under an unpredictable salt (see
   `shard_fingerprint`) and asks each other owner for its own fingerprint. An owner that has more
   chunks by now can still answer. An owner that holds nothing cannot answer, and cannot relay
   another owner's answer.
2. A finding needs a majority: the auditor and the owners that agree with it must be more than half
   of the replicas that a shard should have. Otherwise the auditor may be the one that is wrong.
3. With a majority, the auditor accuses in its own record each peer that disagreed, and each peer
   that evaded EVASIONS audits in a row. A peer that most owners accuse is excluded from the shard
   (see `exclusion`).
4. A peer evades an audit if it is asked after it has reported every chunk that the audit covers,
   and gives no proof although others do. A peer that lacks a chunk cannot give one: the author may
   have left it out, or it may be a little slower than the others. It is asked again once it reports
   every chunk, and without such a report the audit says nothing about it. But if it has lacked some
   chunk at each audit for LAG seconds, that is an evasion, too: otherwise a peer could report one
   chunk less, or each one late, for ever, and never be found.
5. A refusal and a timeout are evasions like an empty proof, because a peer that holds nothing can
   choose between them. But a busy peer has several chances: it is asked up to TRIES times, and
   evades the audit only if it answers none of these questions.
6. An accused peer is still audited. It stays accused until it agrees, or until it has held nothing
   of the shard for KEEPS seconds, as after a fresh start with an empty disk.
"""

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from giaann_p2p.errors import MessageError
from giaann_p2p.store.applied import Applied
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
"""Number of audits of a shard in a row that a peer must evade before it is accused. An honest peer
may be busy once or twice."""
TRIES = 3
"""Number of questions in a row that a peer may leave unanswered in one audit."""
LAG = 600.0
"""Seconds for which an owner may lack a chunk at each audit before missing proofs count as evasions
all the same. Anti-entropy brings an owner whatever it lacks within seconds, so it can give a proof
before an audit ends."""
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
    """Peers that were asked after they reported every chunk, and have given no proof."""
    lacking: set[Peer] = field(default_factory=set)
    """Peers that were asked before they reported every chunk, and have given no proof."""


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
    asking: set[Peer] = field(default_factory=set)
    """The peers with a question in flight."""
    failures: Counter[Peer] = field(default_factory=Counter)
    """How many questions each peer has left unanswered since its last answer."""
    again: dict[Peer, float] = field(default_factory=dict)
    """When a peer that left a question unanswered may be asked again."""


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
        self._behind: dict[tuple[Peer, int], float] = {}
        """Since when a peer that lacks chunks has given no proof, by peer and shard."""

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
            self._end(self._audit, now)
        actions = self._questions(self._audit, now) if self._audit is not None else []
        if now < self._next:
            return actions
        self._next = now + self._settings.audit_every
        return actions if self._audit is not None else self._begin(now)

    def _begin(self, now: float) -> list[Action]:
        owners = self._replicas.owners
        for peer, shard in [key for key in self._evaded if key[0] not in owners(key[1])]:
            del self._evaded[peer, shard]  # a peer that owns the shard again starts from zero
        for peer, shard in [key for key in self._behind if key[0] not in owners(key[1])]:
            del self._behind[peer, shard]
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
        named = {peer for peer, shards in self._named.items() if shard in shards}
        asked = named.union(self._replicas.owners(shard)) - {self._replicas.me}
        words = self._reports.on(shard, self._since(now))
        return sorted(peer for peer, word in words if word.state.serves and peer in asked)

    def _covers(self, peer: Peer, shard: int, chunks: Applied, now: float) -> bool:
        """Return whether a peer has reported lately that it has some chunks of a shard."""
        word = self._reports.of(peer, shard)
        return word is not None and word.asked >= self._since(now) and chunks <= word.chunks

    def _since(self, now: float) -> float:
        return now - max(self._settings.word_counts, 2 * self._settings.calm_every)

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
        return self._questions(audit, now)

    def _questions(self, audit: _Audit, now: float) -> list[Action]:
        """Ask each peer for the next proofs that it can give: at most one call for each."""
        ready = [
            peer
            for peer in sorted(audit.left.keys() - audit.asking)
            if now >= audit.again.get(peer, now)
        ]
        asked = {peer: self._next_of(audit, peer, now) for peer in ready}
        return [self._question(audit, peer, some, now) for peer, some in asked.items() if some]

    def _next_of(self, audit: _Audit, peer: Peer, now: float) -> list[int]:
        """Return the shards that a peer is to prove next, all with the same set of chunks.

        A shard of which the peer lacked a chunk waits until the peer reports every chunk.
        """
        cases = audit.cases
        able = [
            shard
            for shard in audit.left[peer]
            if peer not in cases[shard].lacking
            or self._covers(peer, shard, cases[shard].weight.chunks, now)
        ]
        return [n for n in able if cases[n].weight.chunks == cases[able[0]].weight.chunks]

    def _question(self, audit: _Audit, peer: Peer, asked: list[int], now: float) -> Call:
        """Ask a peer for proofs of some shards with the same set of chunks."""
        owed = {
            shard
            for shard in audit.left[peer]
            if self._covers(peer, shard, audit.cases[shard].weight.chunks, now)
        }
        audit.asking.add(peer)
        number = self._pending_calls.number(partial(self._on_answer, audit, peer, asked, owed))
        some = packed(np.array(asked, np.uint16), self._replicas.shards)
        chunks = audit.cases[asked[0]].weight.chunks
        return Call(number, peer, AskProof(some, chunks.to_bytes(), audit.salt), PROOF_TIMEOUT)

    def _on_answer(
        self,
        audit: _Audit,
        peer: Peer,
        asked: list[int],
        owed: set[int],
        answer: Message | None,
        now: float,
    ) -> list[Action]:
        """Take a peer's answer; `owed` are the shards of which it had reported every chunk."""
        audit.asking.discard(peer)
        try:
            found = proofs_in(answer, asked, self._replicas.shards)
            self._others.heard(peer)
        except MessageError:
            found = {}
            if isinstance(answer, Refusal):
                self._others.heard(peer)
            else:
                self._others.suspect(peer, now)
        if audit is not self._audit:
            return []
        if found:
            self._take(audit, peer, found, owed, now)
        else:
            self._unanswered(audit, peer, owed, now)
        if not audit.left.get(peer):
            audit.left.pop(peer, None)
        if not audit.left:
            self._end(audit, now)
            return []
        return self._questions(audit, now)

    def _take(
        self, audit: _Audit, peer: Peer, found: dict[int, bytes], owed: set[int], now: float
    ) -> None:
        """Judge a peer's proofs; a shard of which it lacks a chunk is left for later."""
        del audit.failures[peer]
        for shard in audit.left[peer]:
            audit.cases[shard].untold.discard(peer)
        for shard, proof in found.items():
            self._judge(audit.cases[shard], peer, proof, shard in owed)
            self._settle(shard, audit.cases[shard], now)
        over = {shard for shard, proof in found.items() if proof or shard in owed}
        audit.left[peer] = [shard for shard in audit.left[peer] if shard not in over]

    def _unanswered(self, audit: _Audit, peer: Peer, owed: set[int], now: float) -> None:
        """Ask a peer again a little later, or give it up for this audit."""
        for shard in audit.left[peer]:
            self._judge(audit.cases[shard], peer, b"", shard in owed)
        audit.failures[peer] += 1
        audit.again[peer] = now + self._settings.hurry_every
        if audit.failures[peer] >= TRIES:
            del audit.left[peer]

    def _judge(self, case: _Case, peer: Peer, proof: bytes, is_owed: bool) -> None:
        """Sort a peer by its proof; `is_owed`: whether it had reported every chunk before."""
        case.untold.discard(peer)
        case.lacking.discard(peer)
        if not proof:
            (case.untold if is_owed else case.lacking).add(peer)
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
            self._behind.pop((peer, shard), None)
            self._unname(peer, shard)
        for peer in case.other:
            self._name(peer, shard, now)

    def _end(self, audit: _Audit, now: float) -> None:
        """End an audit; count an evasion for each peer that owed a proof which a majority gave.

        A peer with EVASIONS evasions of a shard in a row is accused.
        """
        self._audit = None
        for shard, case in audit.cases.items():
            if not self._is_backed(case):
                continue
            late = {one for one in case.lacking if self._lags(one, shard, now)}
            for peer in case.untold | late:
                self._evaded[peer, shard] += 1
                if self._evaded[peer, shard] >= EVASIONS:
                    self._name(peer, shard, audit.begun)

    def _lags(self, peer: Peer, shard: int, now: float) -> bool:
        """Return whether a peer has lacked some chunk at each audit for LAG seconds."""
        return now - self._behind.setdefault((peer, shard), now) >= LAG

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
