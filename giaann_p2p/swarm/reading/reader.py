"""The reader: hedged reads of rows from storage peers.

One of the quickest peers is asked first, and a second one if the first one is late. For each shard,
peers are asked in this order:
1. owners that announce the shard as ready;
2. other peers that announce the shard as ready: their rows may be outdated, because these peers get
   no more updates;
3. owners that do not announce the shard as ready: such an owner may have just come back, and be the
   only peer left, because announcements are some seconds old; if it lacks the shard, it says so;
4. peers that failed to answer: they may be back when all others are gone.
Peers that returned wrong rows are not asked at all until their backoff ends. Peers of one kind that
are about equally quick share the reads (see `load`).

A question is split by shard, and the parts for one peer are batched. An answer counts if it is
complete and contains only what was asked for. If a peer fails, is late or lacks the rows, the next
one is asked. When none is left, all are retried until the question's timeout.

If the answer would be too long, half as many neurons are asked for at once, and in the end halves
of one neuron's row. A peer may falsely claim that, so a second one is asked first.

Rows that the reader has cached are confirmed by marks where they have not changed; a confirmed row
counts as if it had been sent. Only comparisons and disputes always ask for the rows themselves, and
so find a peer that confirms every mark.

Rows may be compared with those of other owners: `row_vote` decides which rows, and when a row is
accepted; `disputes` decides which peer is blamed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from giaann_p2p.model.row_slice import EVERYTHING, RowSlice, whole
from giaann_p2p.model.rows import Answer, Neuron, Question, Row
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.members.voters import Voters
from giaann_p2p.swarm.reading.disputes import Disputes, Lied
from giaann_p2p.swarm.reading.known_rows import NO_MARKS, NOTHING_KNOWN, Known, Marking
from giaann_p2p.swarm.reading.open_question import Part, Reading
from giaann_p2p.swarm.reading.row_calls import RowAnswer, RowCalls
from giaann_p2p.swarm.reading.row_vote import (
    NOTHING,
    Ballot,
    Verify,
    checked,
    differing,
    partner,
    sample,
)
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.row_messages import MOST_READ

_MOST_SLICES = 256
"""Maximum number of slices of one question that are not read yet. Once there are as many, a peer
that refuses a slice as too long is suspected instead."""
_PAUSE = 0.2
"""Seconds until the peers of a shard are retried, after all of them were asked in vain."""


class Answered(NamedTuple):
    """The outcome of a question for rows; `rows` is None if the question failed."""

    number: int
    rows: Answer | None
    missing: list[int]
    """The shards whose rows could not be read in time."""
    disputed: bool = False
    """Whether the question failed in a vote: peers answered, but some row got no majority."""


ReadAction = Call | Answered | Lied


class _Check(NamedTuple):
    """Rows that one peer returned, to be compared with those of another peer."""

    neurons: list[Neuron]
    rows: Answer


class Reader:
    """Reads rows from storage peers; several questions may be open at once."""

    def __init__(
        self,
        limits: Limits,
        others: PeersView,
        timeout: float,
        patience: float,
        verify: Verify = NOTHING,
        marking: Marking = NO_MARKS,
    ) -> None:
        self._others = others
        self._shards = others.rules.shards
        self._patience, self._verify = patience, checked(verify)
        self._calls = RowCalls(limits, others, timeout, marking)
        self._voters = Voters(others)
        self._readings: dict[int, Reading] = {}
        self._numbers = 0
        self._checks: list[Call] = []
        """Calls to a second peer, for comparison, that are still to be started."""
        self._comparing = 0
        """Number of comparisons that are not finished."""
        self.latencies = self._calls.latencies
        self.disputes = Disputes(self._calls, self._voters, others)
        self.compared = 0
        """Number of rows that were received for a comparison or a vote."""

    def __len__(self) -> int:
        return len(self._readings)

    @property
    def idle(self) -> bool:
        """Whether no question, comparison or dispute is left, so that `tick` has nothing to do."""
        return not (self._readings or self._checks or self.disputes)

    @property
    def settled(self) -> bool:
        """Whether no comparison or dispute is open."""
        return not (self._checks or self._comparing or self.disputes)

    def read(
        self, question: Question, now: float, known: Known = NOTHING_KNOWN
    ) -> tuple[int, list[ReadAction]]:
        """Open a question for rows; return its number and the first calls.

        The outcome will be an `Answered` with this number. `known`: rows that were read before;
        peers need not send them again if they have not changed.
        """
        self._numbers += 1
        neurons = dict.fromkeys(question.neurons)
        parts = self._parts(neurons, self._numbers, known, now, MOST_READ)
        reading = Reading(self._numbers, question, parts, now + self._patience)
        self._readings[self._numbers] = reading
        return self._numbers, self.tick(now)

    def _parts(
        self,
        neurons: Iterable[Neuron],
        number: int,
        known: Known,
        now: float,
        most: int,
        within: RowSlice = EVERYTHING,
    ) -> list[Part]:
        """Divide neurons by shard, and those of each shard into batches, to be read anew."""
        by_shard: dict[int, list[Neuron]] = {}
        shard_of = self._others.rules.layout.shard_of
        for neuron in neurons:
            by_shard.setdefault(shard_of(*neuron), []).append(neuron)
        parts = [
            Part(shard, some[at : at + most], number, known, within)
            for shard, some in sorted(by_shard.items())
            for at in range(0, len(some), most)
        ]
        if self._verify.all:
            for part in parts:
                self._put_to_the_vote(part, now)
        return parts

    def _follow(self, now: float) -> None:
        """If the number of shards doubled, divide the unread parts by the present shards.

        Peers that were called before need not serve all children of a shard.
        """
        if self._shards == self._others.rules.shards:
            return
        self._shards = self._others.rules.shards
        self.disputes.divide()
        for reading in self._readings.values():
            open_parts = [part for part in reading.parts if part.rows is None]
            self._divide(reading, open_parts, now)

    def _ask_for_less(self, reading: Reading, now: float) -> None:
        """Ask for less at once where answers would be too long."""
        refused = [part for part in reading.parts if part.rows is None and part.is_too_long]
        for part in refused if len(reading.slices) >= _MOST_SLICES else []:
            for peer in part.refused:
                self._others.suspect(peer, now)
            part.ask_again(now + _PAUSE)
        refused = [part for part in refused if part.is_too_long]
        if refused:
            least = min(part.least_refused for part in refused)
            reading.most = min(reading.most, max(1, least // 2))
            self._divide(reading, refused, now)

    def _divide(self, reading: Reading, parts: Sequence[Part], now: float) -> None:
        """Divide some parts anew, by shard and by the number of neurons to ask for at once.

        Answers to earlier calls are ignored.
        """
        again = set(parts)
        reading.parts = [part for part in reading.parts if part not in again]
        for part in parts:
            is_cut = part.is_too_long and part.least_refused == 1
            for within in part.within.halves if is_cut else [part.within]:
                reading.parts += self._parts(
                    part.neurons, part.number, part.known, now, reading.most, within
                )

    def give_up(self, number: int) -> None:
        """Cancel a question, if it is still open.

        The answers to its calls in flight are still used to measure latencies.
        """
        self._readings.pop(number, None)

    def answered(self, number: int, answer: Message | None, now: float) -> list[ReadAction]:
        """Handle the answer to a call; None means that no answer came in time."""
        self._follow(now)
        self._calls.answered(number, answer, now)
        return self.tick(now)

    def tick(self, now: float) -> list[ReadAction]:
        """Return calls that are due and outcomes of questions; call it again at `next_tick`."""
        self._follow(now)
        acts: list[ReadAction] = [*self._checks]
        self._checks = []
        acts += self.disputes.tick(now)
        for reading in list(self._readings.values()):
            acts += self._due(reading, now)
        return acts

    def next_tick(self, now: float) -> float:
        """Return when to call `tick`, if nothing happens before."""
        times = [
            min(part.late, reading.end)
            for reading in self._readings.values()
            for part in reading.parts
            if part.rows is None and part.has_begun
        ]
        if (due := self.disputes.next_tick(now)) is not None:
            times.append(due)
        return min(times, default=now + self._patience)

    def _due(self, reading: Reading, now: float) -> list[ReadAction]:
        self._ask_for_less(reading, now)
        reading.begin_slices()
        open_parts = [part for part in reading.parts if part.rows is None]
        if not open_parts or now >= reading.end:
            del self._readings[reading.number]
            return [_outcome(reading)]
        asked: dict[Peer, list[Part]] = {}
        for part in open_parts:
            for peer in self._choices(part, now) if part.has_begun else ():
                asked.setdefault(peer, []).append(part)
        calls: list[ReadAction] = []
        for peer, wanted in asked.items():
            calls += [self._call(peer, parts, now) for parts in _in_turns(wanted, reading.most)]
        if any(part.is_too_long for part in open_parts):
            calls += self._due(reading, now)
        return calls

    def _choices(self, part: Part, now: float) -> list[Peer]:
        """Return the peers to ask next for a part of a question, perhaps none.

        These are one more peer if another one is late, or as many as a vote still needs.
        """
        chosen = list[Peer]()
        known = len(part.asked) + len(part.heard)
        while now >= part.late or (part.tried and known + len(chosen) < part.need):
            peer = self._choice(part, now)
            if peer is None:
                break
            chosen.append(peer)
        return chosen

    def _choice(self, part: Part, now: float) -> Peer | None:
        """Return the peer to ask next for a part of a question; None if all have been asked.

        It also sets the time at which to ask another peer, or all peers again.
        """
        ready = self._others.ready(part.shard, now)
        owners = self._others.placement(now).owners(part.shard)
        known = dict.fromkeys([*ready, *owners])
        left = [peer for peer in known if peer not in part.tried and peer not in part.asked]
        left = [peer for peer in left if not self._voters.liar_backoff.holds(peer, now)]
        if not left:
            is_too_long = bool(part.refused) and not part.asked
            part.ask_again(now + _PAUSE)
            part.is_too_long = is_too_long
            return None
        ranks = {peer: self._rank(peer, ready, owners, now) for peer in left}
        first = min(ranks.values())
        alike = [peer for peer in left if ranks[peer] == first]
        peer = self._calls.loads.choice(alike, part.number, now)
        part.tried.add(peer)
        part.late = now + self.latencies.late(peer, now)
        return peer

    def _rank(
        self, peer: Peer, ready: Sequence[Peer], owners: Sequence[Peer], now: float
    ) -> tuple[bool, bool, bool]:
        """Return a peer's sort key: the peers with the smallest key are asked first."""
        in_doubt = not self._others.not_suspected(peer, now)
        return in_doubt, peer not in ready, peer not in owners

    def _call(self, peer: Peer, parts: list[Part], now: float) -> Call:
        for part in parts:
            part.asked.add(peer)
        neurons = [neuron for part in parts for neuron in part.neurons]
        then, known = partial(self._on_answer, peer, parts), parts[0].known
        return self._calls.ask(peer, neurons, then, now, known, parts[0].within)

    def _on_answer(self, peer: Peer, parts: list[Part], told: RowAnswer, now: float) -> None:
        news = list[Part]()
        for part in parts:
            part.asked.discard(peer)
            rows = told.of(part.neurons)
            if told.too_long:
                part.add_refusal(peer, told.too_long)
            if part.ballot is not None:
                self._vote(part, part.ballot, peer, told, now)
            elif rows is None:
                part.late = now  # ask the next one at once
            elif part.rows is None:
                part.rows = rows
                news.append(part)
        if news and self._verify.sampled:
            self._compare(peer, news, told, now)

    # Rows that are put to a vote.

    def _put_to_the_vote(self, part: Part, now: float) -> None:
        voters = self._voters.voters(part.shard, now)
        doubted = [peer for peer in voters if not self._others.not_suspected(peer, now)]
        is_avoided = self._voters.liar_backoff.holds
        serving = [
            peer
            for peer in self._others.ready(part.shard, now)
            if self._others.stands(peer) and not is_avoided(peer, now)
        ]
        part.ballot = Ballot(voters, doubted, self._voters.replicas(now), serving)

    def _vote(self, part: Part, ballot: Ballot, peer: Peer, told: RowAnswer, now: float) -> None:
        rows = told.of(part.neurons)
        if rows is not None:
            ballot.heard(peer, rows)
            part.heard.add(peer)
            self.compared += len(rows)
        elif told.lacks(part.neurons):
            ballot.moved(peer)
        else:
            ballot.silent(peer)
        if part.rows is None:
            part.rows = ballot.result()
            if part.rows is None and (rows is None or len(part.heard) >= ballot.need):
                part.late = now  # ask the next one at once
        if not part.disputed and not part.within.halvings and (at := ballot.disputed()):
            part.disputed = True
            self._dispute(part.neurons, at, ballot.first, now)

    def _dispute(
        self, neurons: list[Neuron], where: list[int], said: Mapping[Peer, Answer], now: float
    ) -> None:
        """Open a dispute on the rows in which peers differ."""
        told = {peer: [rows[at] for at in where] for peer, rows in said.items()}
        self.disputes.open([neurons[at] for at in where], told, now)

    # Rows that are sampled.

    def _compare(self, peer: Peer, parts: list[Part], told: RowAnswer, now: float) -> None:
        """Ask a second peer for a sample of the rows that a peer returned."""
        checks: dict[Peer, list[_Check]] = {}
        for part in parts:
            if part.within.halvings:
                continue  # a dispute would ask for the whole row
            neurons = sample(self._verify, part.number, part.neurons)
            ready = self._voters.ready(part.shard, now) if neurons else []
            rows = told.of(neurons)
            others = [one for one in ready if one != peer and self._others.not_suspected(one, now)]
            second = partner(self._verify, part.number, part.shard, others)
            if second is not None and peer in ready and rows is not None:
                checks.setdefault(second, []).append(_Check(neurons, rows))
        for second, some in checks.items():
            neurons = [neuron for check in some for neuron in check.neurons]
            then = partial(self._compared, peer, second, some)
            self._checks.append(self._calls.ask(second, neurons, then, now))
            self._comparing += 1

    def _compared(
        self, peer: Peer, second: Peer, checks: list[_Check], told: RowAnswer, now: float
    ) -> None:
        self._comparing -= 1
        for check in checks:
            rows = told.of(check.neurons)
            if rows is None:
                continue
            self.compared += len(rows)
            if where := differing(check.rows, rows):
                said = {peer: check.rows, second: rows}
                self._dispute(check.neurons, where, said, now)


def _in_turns(parts: list[Part], most: int) -> Iterator[list[Part]]:
    """Group the parts of a question into batches of at most `most` neurons."""
    some, size = list[Part](), 0
    for part in parts:
        is_alone = part.within.halvings or (some and some[-1].within.halvings)
        if some and (is_alone or size + len(part.neurons) > most):
            yield some
            some, size = [], 0
        some.append(part)
        size += len(part.neurons)
    yield some


def _outcome(reading: Reading) -> Answered:
    missing = sorted({part.shard for part in reading.parts if part.rows is None})
    if missing:
        untold = [part.ballot for part in reading.parts if part.rows is None]
        disputed = any(ballot is not None and ballot.said for ballot in untold)
        return Answered(reading.number, None, missing, disputed)
    rows: dict[Neuron, Row | None] = {}
    slices: dict[Neuron, list[Row | None]] = {}
    for part in reading.parts:
        rows.update(zip(part.neurons, part.rows or [], strict=True))
        if part.within.halvings:
            slices.setdefault(part.neurons[0], []).extend(part.rows or [])
    rows |= {neuron: whole(some) for neuron, some in slices.items()}
    return Answered(reading.number, [rows[neuron] for neuron in reading.question.neurons], [])
