"""Reading rows from whoever has them ready: the quickest owner first, a second one if it is late.

Who still has a shard that is no longer its own gets no updates for it: its rows are those of then.
So it is asked after the owners. Then come owners that do not say they have it ready: what they say
is some seconds old, and who has come back may be the only one left by now; who has it not tells so
at once. Last of all comes who is in doubt: it may be back, and all others gone. Who was found to
tell wrong rows is not asked at all for a while.

A question is cut by shard and put together by peer. An answer counts if it is whole and holds
nothing but what was asked for. A peer that fails, is late or has not what it was asked for makes
the next one be asked; nobody being left, all are tried anew until the time is up.

What is read may be compared with what other owners say: see `verifying` for what, and for when a
row is believed, `disputes` for who is blamed.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from giaann_p2p.model.rows import Answer, Neuron, Question, Row
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.disputes import Disputes, Lied
from giaann_p2p.swarm.electors import Electors, Others
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import MOST_READ, Message
from giaann_p2p.swarm.row_calls import RowCalls, Told
from giaann_p2p.swarm.verifying import (
    NOTHING,
    Ballot,
    Verify,
    checked,
    differing,
    partner,
    sample,
)

_PAUSE = 0.2
"""Before all are tried anew."""


class Answered(NamedTuple):
    """What was asked for; `rows` is None if nobody could tell in time, and `missing` says whose."""

    number: int
    rows: Answer | None
    missing: list[int]
    disputed: bool = False
    """Whether some could tell, but no majority stood behind it."""


Act = Call | Answered | Lied


class _Part:
    """The neurons of one shard that somebody wants to know."""

    def __init__(self, shard: int, neurons: list[Neuron], number: int) -> None:
        self.shard, self.neurons, self.number = shard, neurons, number
        self.rows: list[Row | None] | None = None
        self.tried: set[Peer] = set()
        self.asked: set[Peer] = set()
        """Those who may still answer: to ask them again would only keep them longer."""
        self.heard: set[Peer] = set()
        """Those of the tried who have answered."""
        self.late = 0.0
        """When another peer is to be asked."""
        self.ballot: Ballot | None = None
        """Where rows are put to the vote: who said what."""
        self.disputed = False
        """Whether some told it differently."""

    @property
    def need(self) -> int:
        """How many are to be asked at once."""
        return 1 if self.ballot is None else self.ballot.need


class _Check(NamedTuple):
    """Rows of one shard, as one peer told them, for which another is asked."""

    shard: int
    neurons: list[Neuron]
    rows: Answer


class _Reading:
    """One question."""

    def __init__(self, number: int, question: Question, parts: list[_Part], end: float) -> None:
        self.number, self.question, self.parts, self.end = number, question, parts, end


class Reader:
    """Asks storage peers; several questions may be open."""

    def __init__(
        self,
        layout: Layout,
        limits: Limits,
        others: Others,
        timeout: float,
        patience: float,
        verify: Verify = NOTHING,
    ) -> None:
        self._layout, self._others = layout, others
        self._patience, self._verify = patience, checked(verify)
        self._calls = RowCalls(layout, limits, others, timeout)
        self._electors = Electors(others)
        self._readings: dict[int, _Reading] = {}
        self._numbers = 0
        self._checks: list[Call] = []
        """Comparisons that are to be begun."""
        self._comparing = 0
        """Those that have been, and are not answered yet."""
        self.latencies = self._calls.latencies
        self.disputes = Disputes(self._calls, self._electors)
        self.compared = 0
        """Rows that a second peer was asked for."""

    def __len__(self) -> int:
        return len(self._readings)

    @property
    def idle(self) -> bool:
        """Whether there is nothing that `tick` might do."""
        return not (self._readings or self._checks or self.disputes)

    @property
    def settled(self) -> bool:
        """Whether nobody is being asked any more if what was told is so."""
        return not (self._checks or self._comparing or self.disputes)

    def read(self, question: Question, now: float) -> tuple[int, list[Act]]:
        """Begin to ask; `Answered` will have the number that is returned."""
        self._numbers += 1
        by_shard: dict[int, list[Neuron]] = {}
        for neuron in dict.fromkeys(question.neurons):
            by_shard.setdefault(self._layout.shard_of(*neuron), []).append(neuron)
        parts = [
            _Part(shard, neurons[at : at + MOST_READ], self._numbers)
            for shard, neurons in sorted(by_shard.items())
            for at in range(0, len(neurons), MOST_READ)
        ]
        if self._verify.all:
            for part in parts:
                self._put_to_the_vote(part, now)
        reading = _Reading(self._numbers, question, parts, now + self._patience)
        self._readings[self._numbers] = reading
        return self._numbers, self.tick(now)

    def give_up(self, number: int) -> None:
        """Ask no further for a question, for nobody waits; nothing if it is done.

        Answers that are on their way are still taken in: they tell how quick a peer is.
        """
        self._readings.pop(number, None)

    def answered(self, number: int, answer: Message | None, now: float) -> list[Act]:
        """Go on with an answer, or with None when there was none in time."""
        self._calls.answered(number, answer, now)
        return self.tick(now)

    def tick(self, now: float) -> list[Act]:
        """Ask those whose turn it is, and tell what is done; often enough to see who is late."""
        acts: list[Act] = [*self._checks]
        self._checks = []
        acts += self.disputes.tick(now)
        for reading in list(self._readings.values()):
            acts += self._due(reading, now)
        return acts

    def next_tick(self, now: float) -> float:
        """Return when `tick` has something to do, if nothing happens before."""
        times = [
            min(part.late, reading.end)
            for reading in self._readings.values()
            for part in reading.parts
            if part.rows is None
        ]
        if (due := self.disputes.next_tick(now)) is not None:
            times.append(due)
        return min(times, default=now + self._patience)

    def _due(self, reading: _Reading, now: float) -> list[Act]:
        open_parts = [part for part in reading.parts if part.rows is None]
        if not open_parts or now >= reading.end:
            del self._readings[reading.number]
            return [_outcome(reading)]
        asked: dict[Peer, list[_Part]] = {}
        for part in open_parts:
            for peer in self._choices(part, now):
                asked.setdefault(peer, []).append(part)
        calls: list[Act] = []
        for peer, wanted in asked.items():
            calls += [self._call(peer, parts, now) for parts in _in_turns(wanted)]
        return calls

    def _choices(self, part: _Part, now: float) -> list[Peer]:
        """Return whom to ask next: one more if somebody is late, and as many as a vote needs."""
        chosen = list[Peer]()
        known = len(part.asked) + len(part.heard)
        while now >= part.late or (part.tried and known + len(chosen) < part.need):
            peer = self._choice(part, now)
            if peer is None:
                break
            chosen.append(peer)
        return chosen

    def _choice(self, part: _Part, now: float) -> Peer | None:
        """Return whom to ask next, and note when another one is to be asked."""
        ready = self._others.ready(part.shard, now)
        owners = self._others.placement(now).owners(part.shard)
        known = dict.fromkeys([*ready, *owners])
        left = [peer for peer in known if peer not in part.tried and peer not in part.asked]
        left = [peer for peer in left if not self._electors.shunned.holds(peer, now)]
        if not left:
            part.tried.clear()
            part.heard.clear()
            part.late = now + _PAUSE
            return None
        peer = min(left, key=lambda peer: self._rank(peer, ready, owners, now))
        part.tried.add(peer)
        part.late = now + self.latencies.late(peer, now)
        return peer

    def _rank(
        self, peer: Peer, ready: Sequence[Peer], owners: Sequence[Peer], now: float
    ) -> tuple[bool, bool, bool, float, Peer]:
        """Return what is the less, the sooner a peer is to be asked."""
        in_doubt, usual = not self._others.reachable(peer, now), self.latencies.usual(peer, now)
        return in_doubt, peer not in ready, peer not in owners, usual, peer

    def _call(self, peer: Peer, parts: list[_Part], now: float) -> Call:
        for part in parts:
            part.asked.add(peer)
        neurons = [neuron for part in parts for neuron in part.neurons]
        return self._calls.ask(peer, neurons, partial(self._told, peer, parts), now)

    def _told(self, peer: Peer, parts: list[_Part], told: Told, now: float) -> None:
        news = list[_Part]()
        for part in parts:
            part.asked.discard(peer)
            rows = told.of(part.shard, part.neurons)
            if part.ballot is not None:
                self._vote(part, part.ballot, peer, told, now)
            elif rows is None:
                part.late = now  # ask the next one at once
            elif part.rows is None:
                part.rows = rows
                news.append(part)
        if news and self._verify.sampled:
            self._compare(peer, news, told, now)

    # Rows that are put to the vote.

    def _put_to_the_vote(self, part: _Part, now: float) -> None:
        voters = self._electors.voters(part.shard, now)
        doubted = [peer for peer in voters if not self._others.reachable(peer, now)]
        part.ballot = Ballot(voters, doubted, self._electors.replicas(now))

    def _vote(self, part: _Part, ballot: Ballot, peer: Peer, told: Told, now: float) -> None:
        rows = told.of(part.shard, part.neurons)
        if rows is not None:
            ballot.heard(peer, rows)
            part.heard.add(peer)
            self.compared += len(rows)
        elif part.shard in told.moved:
            ballot.moved(peer)
        else:
            ballot.silent(peer)
        if part.rows is None:
            part.rows = ballot.result()
            if part.rows is None and (rows is None or len(part.heard) >= ballot.need):
                part.late = now  # ask the next one at once
        if not part.disputed and (at := ballot.disputed()):
            part.disputed = True
            self._dispute(part.shard, part.neurons, at, ballot.first, now)

    def _dispute(
        self,
        shard: int,
        neurons: list[Neuron],
        where: list[int],
        said: Mapping[Peer, Answer],
        now: float,
    ) -> None:
        """Have it looked into who of some is wrong, for they differ."""
        told = {peer: [rows[at] for at in where] for peer, rows in said.items()}
        self.disputes.open(shard, [neurons[at] for at in where], told, now)

    # Rows that are sampled.

    def _compare(self, peer: Peer, parts: list[_Part], told: Told, now: float) -> None:
        """Ask others for some of the rows that a peer told."""
        checks: dict[Peer, list[_Check]] = {}
        for part in parts:
            neurons = sample(self._verify, part.number, part.neurons)
            ready = self._electors.ready(part.shard, now) if neurons else []
            rows = told.of(part.shard, neurons)
            others = [one for one in ready if one != peer and self._others.reachable(one, now)]
            second = partner(self._verify, part.number, part.shard, others)
            if second is not None and peer in ready and rows is not None:
                checks.setdefault(second, []).append(_Check(part.shard, neurons, rows))
        for second, some in checks.items():
            neurons = [neuron for check in some for neuron in check.neurons]
            then = partial(self._compared, peer, second, some)
            self._checks.append(self._calls.ask(second, neurons, then, now))
            self._comparing += 1

    def _compared(
        self, peer: Peer, second: Peer, checks: list[_Check], told: Told, now: float
    ) -> None:
        self._comparing -= 1
        for check in checks:
            rows = told.of(check.shard, check.neurons)
            if rows is None:
                continue
            self.compared += len(rows)
            if where := differing(check.rows, rows):
                said = {peer: check.rows, second: rows}
                self._dispute(check.shard, check.neurons, where, said, now)


def _in_turns(parts: list[_Part]) -> Iterator[list[_Part]]:
    """Put together as many parts as one question may ask for."""
    some, size = list[_Part](), 0
    for part in parts:
        if some and size + len(part.neurons) > MOST_READ:
            yield some
            some, size = [], 0
        some.append(part)
        size += len(part.neurons)
    yield some


def _outcome(reading: _Reading) -> Answered:
    missing = sorted({part.shard for part in reading.parts if part.rows is None})
    if missing:
        untold = [part.ballot for part in reading.parts if part.rows is None]
        disputed = any(ballot is not None and ballot.said for ballot in untold)
        return Answered(reading.number, None, missing, disputed)
    rows: dict[Neuron, Row | None] = {}
    for part in reading.parts:
        rows.update(zip(part.neurons, part.rows or [], strict=True))
    return Answered(reading.number, [rows[neuron] for neuron in reading.question.neurons], [])
