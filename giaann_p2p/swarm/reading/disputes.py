"""Disputes: find the peer that returned wrong rows, by asking all voters of the shard repeatedly.

1. Replicas may honestly differ while an update is in flight to one of them, but soon each has
   everything that any of them had. So two peers *agree* if the first answer of each is contained in
   a later answer of the other. A row that has only grown is not a lie.
2. While any two peers disagree, all are asked again, with exponential backoff.
3. Suppose that a majority of the shard's owners agrees, and a peer does not agree with a majority.
   After SURE seconds, three times as long as anti-entropy between owners takes, this peer is
   *blamed*, and avoided for a while. If its rows merely lack something, it may be cut off from the
   others through no fault of its own, so it is blamed only after LATEST seconds.
4. Without such a majority no peer is blamed, because either side may be wrong.
5. When the founder withdraws chunks, rows shrink, first at one owner, then at another. So for
   RETRACTING seconds after this peer got a list with more chunks, a peer is not blamed for what it
   has taken back, if in the end it answers as the majority does; one that does not is blamed after
   LATEST seconds at most. A liar could use that time to lie once and then tell the truth. At any
   other time that does not help it: only a new list excuses a wrong first answer, and only the
   founder can sign one.

A single wrong answer is enough to find a liar, even if it answers correctly or not at all when it
is asked again, because its first answer stays on record. A peer that once held something back is
not found, because it looks like a peer that was late.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from math import inf
from typing import NamedTuple

from giaann_p2p.backoff import Backoff
from giaann_p2p.model.rows import Answer, Neuron, Row
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members.majority import majority
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.members.voters import Voters
from giaann_p2p.swarm.reading.row_calls import RowAnswer, RowCalls
from giaann_p2p.swarm.reading.row_match import alone, grown, same
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.withdrawn import Parts

SURE, LATEST = 15.0, 60.0
"""Seconds after which a dispute blames a peer: for wrong rows, and for rows that lack something."""
RETRACTING = 300.0
"""Seconds after a new list of withdrawn chunks in which rows may shrink. An owner gets the list
within seconds, but may have to look through all deltas that it remembers."""
_FIRST_PAUSE = 1.0
"""Seconds before the second round of a dispute; the pause doubles with each round."""
MOST_DISPUTES = 16
"""Maximum number of open disputes, to bound the memory for answers."""
MOST_ROWS = 8
"""Maximum number of rows in one dispute, to bound the memory for answers."""


class Lied(NamedTuple):
    """The outcome of a dispute that blames a peer: it returned wrong rows, and is avoided now."""

    peer: Peer
    shard: int
    neuron: Neuron
    """A neuron for which the peer returned a wrong row."""
    behind: bool
    """Whether the peer's rows merely lack something."""
    seconds: float
    """Seconds for which the peer is avoided."""
    told: Row | None
    """The row in the blamed peer's first answer; None if it returned no row for the neuron."""
    true: Row | None
    """The row of a peer with which a majority agrees; None if that peer has no row."""


class _Dispute:
    """One dispute: some rows of a shard, and the answers of the shard's voters."""

    def __init__(self, shard: int, neurons: list[Neuron], now: float) -> None:
        self.shard, self.neurons, self.begun = shard, neurons, now
        self.first: dict[Peer, Answer] = {}
        """The first answer of each peer, which stays on record."""
        self.last: dict[Peer, Answer] = {}
        """The answer of each peer in the latest round."""
        self.asked: set[Peer] = set()
        """The peers that have not answered yet in the latest round."""
        self.backoff = Backoff(_FIRST_PAUSE, since=now)
        """The pause before the next round."""

    def divided(self, layout: Layout) -> list["_Dispute"]:
        """Return a dispute for each shard of a layout that has some of the rows."""
        parts = []
        for shard, where in _by_shard(self.neurons, layout).items():
            part = _Dispute(shard, [self.neurons[at] for at in where], self.begun)
            part.first = {peer: [rows[at] for at in where] for peer, rows in self.first.items()}
            parts.append(part)
        return parts


class Disputes:
    """The disputes that are not settled yet. Invariant: a neuron is in at most one of them."""

    def __init__(self, calls: RowCalls, electors: Voters, others: PeersView) -> None:
        self._calls, self._voters, self._others = calls, electors, others
        self._open: list[_Dispute] = []
        self._found: list[Lied] = []
        self._listed: Parts | None = None
        """The withdrawn chunks by the newest list that was seen; None before the first look."""
        self._listed_at = -inf
        """Time at which a list with other chunks than before was seen last."""
        self.opened = self.undecided = 0

    def __len__(self) -> int:
        return len(self._open)

    def open(self, neurons: list[Neuron], said: Mapping[Peer, Answer], now: float) -> None:
        """Open a dispute, for each shard, on the rows in which the answers `said` differ.

        Rows that are already disputed are left out, and so are rows beyond the limits.
        """
        known = {neuron for dispute in self._open for neuron in dispute.neurons}
        for shard, some in _by_shard(neurons, self._others.rules.layout).items():
            new = [at for at in some if neurons[at] not in known][:MOST_ROWS]
            if not new or len(self._open) >= MOST_DISPUTES:
                continue
            dispute = _Dispute(shard, [neurons[at] for at in new], now)
            for peer, rows in said.items():
                dispute.first[peer] = [alone(rows[at]) for at in new]
            self._open.append(dispute)
            self.opened += 1

    def divide(self) -> None:
        """Divide all disputes by the present shards, because their number has doubled.

        The present round begins anew: voters of a shard need not vote on all of its children.
        """
        layout = self._others.rules.layout
        self._open = [part for one in self._open for part in one.divided(layout)]

    def tick(self, now: float) -> list[Call | Lied]:
        """Start the rounds of disputes that are due; report the liars found since the last call."""
        self._look_at_list(now)
        acts: list[Call | Lied] = [*self._found]
        self._found = []
        for dispute in self._open:
            if not dispute.asked and not dispute.backoff.holds(now):
                acts += self._ask(dispute, now)
        return acts

    def next_tick(self, now: float) -> float | None:
        """Return when to call `tick`, if nothing happens before; None if there is no need to."""
        if self._found:
            return now
        return min((one.backoff.until for one in self._open if not one.asked), default=None)

    def _look_at_list(self, now: float) -> None:
        """Note when the founder's list of withdrawn chunks changes."""
        admission = self._others.admission
        listed = () if admission is None else admission.revoked.withdrawn
        if listed is self._listed:  # the common case
            return
        if self._listed is not None and listed != self._listed:
            self._listed_at = now
        self._listed = listed

    def _ask(self, dispute: _Dispute, now: float) -> list[Call]:
        voters = self._voters.voters(dispute.shard, now)
        dispute.last = {}
        dispute.asked = set(voters)
        dispute.backoff = dispute.backoff.failed(now)
        if not voters:
            self._open = [other for other in self._open if other is not dispute]
        return [
            self._calls.ask(peer, dispute.neurons, partial(self._on_answer, dispute, peer), now)
            for peer in voters
        ]

    def _on_answer(self, dispute: _Dispute, peer: Peer, told: RowAnswer, now: float) -> None:
        rows = told.of(dispute.neurons)
        dispute.asked.discard(peer)
        if rows is not None:
            dispute.last[peer] = [alone(row) for row in rows]
            if now - dispute.begun < SURE / 4:  # later answers may be too new for the others
                dispute.first.setdefault(peer, dispute.last[peer])
        if not dispute.asked and dispute in self._open:
            self._judge(dispute, now)

    def _judge(self, dispute: _Dispute, now: float) -> None:
        """Settle a dispute after a round, or leave it open for the next one."""
        self._look_at_list(now)
        voters = self._voters.voters(dispute.shard, now)
        judged = [peer for peer in voters if peer in dispute.first]
        enough, age = majority(self._voters.replicas(now)), now - dispute.begun
        standing = {peer: sum(_agree(dispute, peer, one) for one in judged) for peer in judged}
        united = all(count == len(judged) for count in standing.values())
        settled = united and len(dispute.last) >= enough
        trusted = [peer for peer in dispute.last if standing.get(peer, 0) >= enough]
        blamed = False
        if trusted and age >= SURE:
            for peer in judged:
                behind = _behind(dispute, peer, trusted[0])
                if standing[peer] >= enough:
                    continue
                if self._has_withdrawn(dispute, peer, trusted[0], age):
                    dispute.first[peer] = dispute.last[peer]  # as if it had begun with this
                elif not behind or age >= LATEST:
                    self._blame(dispute, peer, trusted[0], behind, now)
                    blamed = True
        if blamed or settled or age >= LATEST:
            self._open.remove(dispute)
            self.undecided += not (blamed or settled)

    def _has_withdrawn(self, dispute: _Dispute, peer: Peer, trusted: Peer, age: float) -> bool:
        """Return whether a peer may only have withdrawn chunks, and answers rightly by now.

        Its last answer must be that of a trusted peer. Before LATEST, one of the two may still have
        more: the peer may have yet to withdraw a chunk, or one of them has just got another.
        """
        if dispute.begun - self._listed_at >= RETRACTING or peer not in dispute.last:
            return False
        one, other = dispute.last[peer], dispute.last[trusted]
        if all(map(same, one, other)):
            return True
        return age < LATEST and (_all_grown(one, other) or _all_grown(other, one))

    def _blame(
        self, dispute: _Dispute, peer: Peer, trusted: Peer, behind: bool, now: float
    ) -> None:
        pairs = zip(dispute.first[peer], dispute.last[trusted], strict=True)
        wrong = [(at, *pair) for at, pair in enumerate(pairs) if not same(*pair)]
        at, told, true = (
            wrong[0] if wrong else (0, dispute.first[peer][0], dispute.last[trusted][0])
        )
        seconds, neuron = self._voters.liar_backoff.lied(peer, now), dispute.neurons[at]
        self._found.append(Lied(peer, dispute.shard, neuron, behind, seconds, told, true))


def _by_shard(neurons: Sequence[Neuron], layout: Layout) -> dict[int, list[int]]:
    """Return the positions of neurons by the shards of their rows."""
    found: dict[int, list[int]] = {}
    for at, neuron in enumerate(neurons):
        found.setdefault(layout.shard_of(*neuron), []).append(at)
    return found


def _agree(dispute: _Dispute, one: Peer, other: Peer) -> bool:
    """Return whether two peers agree: the first answer of each is contained in the other's last.

    A peer is also compared with itself, and must not have taken anything back. The first answer of
    a peer that fell silent still counts.
    """
    pairs = (one, other), (other, one)
    return all(
        _all_grown(dispute.first[early], dispute.last[late])
        for early, late in pairs
        if late in dispute.last
    )


def _behind(dispute: _Dispute, peer: Peer, trusted: Peer) -> bool:
    """Return whether a peer's rows are correct but merely lack some of what a trusted peer has."""
    first, last = dispute.first[peer], dispute.last.get(peer, dispute.first[peer])
    return _all_grown(first, last) and _all_grown(last, dispute.last[trusted])


def _all_grown(old: Answer, new: Answer) -> bool:
    return all(grown(*pair) for pair in zip(old, new, strict=True))
