"""Rows that peers told differently: who was wrong, found by asking all of them again for a while.

1. Replicas may honestly differ: an update is on its way to one of them. But whatever one of them
   had, all of them have soon. So two peers *agree* if what each said first is contained, some time
   later, in what the other says then. A row that has only grown is no lie.
2. While anybody disagrees with anybody, all are asked again, each time after twice as long.
3. After SURE seconds, three times as long as it takes owners to compare what they have, a peer that
   a majority of the shard's owners does not agree with is *shunned*, if there is a majority
   that agrees among itself. One whose rows merely lack something may be cut off from the others,
   and through no fault of its own: it is given until LATEST.
4. Without such a majority nobody is blamed: of two that differ, either may be wrong.

Who said something wrong to a reader once is found, even if it tells the truth, or nothing at all,
when asked again: what it said first stays on record. Not so who merely held something back once:
that looks as if it had been late.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from giaann_p2p.model.rows import Answer, Neuron, Row
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.electors import Electors, majority
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.likeness import alone, grown, same
from giaann_p2p.swarm.row_calls import RowCalls, Told

SURE, LATEST = 15.0, 60.0
_FIRST_PAUSE = 1.0
MOST_DISPUTES = 16
MOST_ROWS = 8
"""Of one dispute. There are only so many, and their rows are few, for all of them are kept."""


class Lied(NamedTuple):
    """A peer told rows that are not so, and is not asked for a while."""

    peer: Peer
    shard: int
    neuron: Neuron
    """One whose row it told wrong."""
    behind: bool
    """Whether all that is wrong is that something is missing."""
    seconds: float
    """For how long it is not asked."""
    told: Row | None
    """What it said of that one at first."""
    true: Row | None
    """What the others say."""


class _Dispute:
    """Rows of one shard, and what was said of them."""

    def __init__(self, shard: int, neurons: list[Neuron], now: float) -> None:
        self.shard, self.neurons, self.begun = shard, neurons, now
        self.first: dict[Peer, Answer] = {}
        self.last: dict[Peer, Answer] = {}
        """What was said when all were asked last."""
        self.asked: set[Peer] = set()
        """Those who have yet to answer."""
        self.due, self.pause = now, _FIRST_PAUSE


class Disputes:
    """The disputes that are not settled yet."""

    def __init__(self, calls: RowCalls, electors: Electors) -> None:
        self._calls, self._electors = calls, electors
        self._open: list[_Dispute] = []
        self._found: list[Lied] = []
        self.opened = self.undecided = 0

    def __len__(self) -> int:
        return len(self._open)

    def open(
        self, shard: int, neurons: list[Neuron], said: Mapping[Peer, Answer], now: float
    ) -> None:
        """Look into rows that were told differently; nothing if that is done, or too much is."""
        known = {neuron for dispute in self._open for neuron in dispute.neurons}
        new = [at for at, neuron in enumerate(neurons) if neuron not in known][:MOST_ROWS]
        if not new or len(self._open) == MOST_DISPUTES:
            return
        dispute = _Dispute(shard, [neurons[at] for at in new], now)
        for peer, rows in said.items():
            dispute.first[peer] = [alone(rows[at]) for at in new]
        self._open.append(dispute)
        self.opened += 1

    def tick(self, now: float) -> list[Call | Lied]:
        """Ask those whose turn it is, and tell who was found out."""
        acts: list[Call | Lied] = [*self._found]
        self._found = []
        for dispute in self._open:
            if not dispute.asked and now >= dispute.due:
                acts += self._ask(dispute, now)
        return acts

    def next_tick(self, now: float) -> float | None:
        """Return when `tick` has something to do, if nothing happens before; None if never."""
        if self._found:
            return now
        return min((dispute.due for dispute in self._open if not dispute.asked), default=None)

    def _ask(self, dispute: _Dispute, now: float) -> list[Call]:
        voters = self._electors.voters(dispute.shard, now)
        dispute.last = {}
        dispute.asked = set(voters)
        dispute.due, dispute.pause = now + dispute.pause, 2 * dispute.pause
        if not voters:
            self._open = [other for other in self._open if other is not dispute]
        return [
            self._calls.ask(peer, dispute.neurons, partial(self._told, dispute, peer), now)
            for peer in voters
        ]

    def _told(self, dispute: _Dispute, peer: Peer, told: Told, now: float) -> None:
        rows = told.of(dispute.shard, dispute.neurons)
        dispute.asked.discard(peer)
        if rows is not None:
            dispute.last[peer] = [alone(row) for row in rows]
            if now - dispute.begun < SURE / 4:  # later, others might need more time to follow
                dispute.first.setdefault(peer, dispute.last[peer])
        if not dispute.asked and dispute in self._open:
            self._judge(dispute, now)

    def _judge(self, dispute: _Dispute, now: float) -> None:
        """Settle a dispute, or leave it until it is due again."""
        voters = self._electors.voters(dispute.shard, now)
        judged = [peer for peer in voters if peer in dispute.first]
        enough, age = majority(self._electors.replicas(now)), now - dispute.begun
        standing = {peer: sum(_agree(dispute, peer, one) for one in judged) for peer in judged}
        united = all(count == len(judged) for count in standing.values())
        settled = united and len(dispute.last) >= enough
        trusted = [peer for peer in dispute.last if standing.get(peer, 0) >= enough]
        blamed = False
        if trusted and age >= SURE:
            for peer in judged:
                behind = _behind(dispute, peer, trusted[0])
                if standing[peer] < enough and (not behind or age >= LATEST):
                    self._blame(dispute, peer, trusted[0], behind, now)
                    blamed = True
        if blamed or settled or age >= LATEST:
            self._open.remove(dispute)
            self.undecided += not (blamed or settled)

    def _blame(
        self, dispute: _Dispute, peer: Peer, trusted: Peer, behind: bool, now: float
    ) -> None:
        pairs = zip(dispute.first[peer], dispute.last[trusted], strict=True)
        wrong = [(at, *pair) for at, pair in enumerate(pairs) if not same(*pair)]
        at, told, true = (
            wrong[0] if wrong else (0, dispute.first[peer][0], dispute.last[trusted][0])
        )
        seconds, neuron = self._electors.shunned.lied(peer, now), dispute.neurons[at]
        self._found.append(Lied(peer, dispute.shard, neuron, behind, seconds, told, true))


def _agree(dispute: _Dispute, one: Peer, other: Peer) -> bool:
    """Tell whether nothing shows that one of two is wrong; with itself, that it took nothing back.

    Who is silent when asked again has still said something.
    """
    pairs = (one, other), (other, one)
    return all(
        _all_grown(dispute.first[early], dispute.last[late])
        for early, late in pairs
        if late in dispute.last
    )


def _behind(dispute: _Dispute, peer: Peer, trusted: Peer) -> bool:
    """Tell whether a peer's rows are true, as far as they go."""
    first, last = dispute.first[peer], dispute.last.get(peer, dispute.first[peer])
    return _all_grown(first, last) and _all_grown(last, dispute.last[trusted])


def _all_grown(old: Answer, new: Answer) -> bool:
    return all(grown(*pair) for pair in zip(old, new, strict=True))
