"""Owners try each other: who is asked what, who is named, and who never is."""

from collections.abc import Iterable

import pytest

from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.replication import replica_audit as module
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.replication.handover_proof import PROOF_TIMEOUT
from giaann_p2p.swarm.replication.peer_reports import PeerReport
from giaann_p2p.swarm.replication.replica_audit import (
    AT_ONCE,
    EVASIONS,
    KEEPS,
    LAG,
    LASTS,
    TRIES,
    ReplicaAudit,
)
from giaann_p2p.swarm.replication.replicas import Replicas
from giaann_p2p.swarm.replication.shard_fingerprint import proof_of, weighed
from giaann_p2p.swarm.wire.actions import Action, Call, TakeFingerprints
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import BUSY, AskProof, Proof, Pushed, Refusal
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.helpers_swarm import (
    NOW,
    SETTINGS,
    SHARDS,
    A,
    Around,
    B,
    C,
    D,
    applied,
    sent,
    shards,
    shared_by,
    store,
    update,
)

ALL = list(range(SHARDS))
EVERY = SETTINGS.audit_every
BUSILY = Refusal(f"{BUSY}: not now")


class Auditor:
    """One who owns all shards with two others."""

    def __init__(self, *chunks: int) -> None:
        self.around, self.store = Around(A, B, C), store(ALL, chunks)
        self.reported = dict.fromkeys((B, C, D), applied(*chunks))
        self.around.ready_at = {shard: [A, B, C] for shard in ALL}
        self.replicas = Replicas(A, SHARDS, ALL)
        for shard in ALL:
            self.replicas.caught_up(shard, NOW)
        self.replicas.place(Placement.of(self.around.capacities, SHARDS, 3), NOW)
        shared = shared_by(self.replicas, self.around, self.store)
        self.reports, self.auditing = shared.reports, ReplicaAudit(shared)
        self.pending_calls, self.weighing = shared.calls, shared.weighings
        self.calls: list[Call] = []
        self.weighings: list[TakeFingerprints] = []
        self.weighs_at_once = SHARDS

    def audit(self, now: float, peers: Iterable[Peer] = (B, C)) -> None:
        """Begin an audit, with words of just now."""
        for peer in peers:
            self.reports_now(peer, now)
        self.tick(now)

    def reports_now(self, peer: Peer, now: float) -> None:
        """Let a peer say that it is ready, with the chunks in `reported`."""
        word = PeerReport(ReplicaState.READY, self.reported[peer], now)
        for shard in ALL:
            self.reports.heard(peer, shard, word)

    def tick(self, now: float) -> None:
        self.do(self.auditing.due(now), now)

    def do(self, actions: list[Action], now: float) -> None:
        for action in actions:
            if isinstance(action, Call):
                self.calls.append(action)
            elif isinstance(action, TakeFingerprints):
                self.weighings.append(action)
                some = action.shards.tolist()[: self.weighs_at_once]
                found = weighed(self.store, some, action.salt)
                self.do(self.weighing.done(action.number, found, now), now)

    def to(self, peer: Peer) -> list[Call]:
        return [call for call in self.calls if call.peer == peer]

    def answer(self, call: Call, answer: Message | None, now: float) -> None:
        self.calls.remove(call)
        self.do(self.pending_calls.done(call.number, answer, now), now)

    def shows(self, peer: Peer, now: float, *chunks: int) -> None:
        """Let somebody who holds what some chunks come to answer all that it is asked."""
        held = Answers(store(ALL, chunks), lambda shard: ReplicaState.READY, peer)
        while mine := self.to(peer):
            self.answer(mine[0], sent(held.to(sent(mine[0].message))), now)

    def makes_up(self, peer: Peer, now: float) -> None:
        while mine := self.to(peer):
            question = mine[0].message
            assert isinstance(question, AskProof)
            many = len(unpacked(question.shards, SHARDS))
            self.answer(mine[0], Proof(question.shards, [b"?" * 32] * many), now)

    def says(self, peer: Peer, answer: Message | None, now: float) -> None:
        """Let a peer answer what it is asked, and what it is asked again, with the same."""
        while mine := self.to(peer):
            self.answer(mine[0], answer, now)
            now += SETTINGS.hurry_every
            self.tick(now)

    @property
    def wrong(self) -> dict[Peer, list[int]]:
        return {peer: some.tolist() for peer, some in self.auditing.wrong().items()}


def test_all_owners_are_asked_at_once_and_who_comes_to_the_same_is_not_named() -> None:
    one = Auditor(1, 2)
    one.audit(NOW + EVERY)
    assert [weigh.shards.tolist() for weigh in one.weighings] == [ALL]
    assert sorted(call.peer for call in one.calls) == [B, C]
    assert {call.timeout for call in one.calls} == {PROOF_TIMEOUT}
    one.shows(B, NOW + EVERY, 1, 2)
    one.shows(C, NOW + EVERY, 1, 2, 3)  # it has more meanwhile
    assert one.wrong == {}
    assert one.auditing.changes == 0
    assert repr(one.auditing) == "<ReplicaAudit: 1 audits, 0 peers accused>"


@pytest.mark.parametrize("order", [(B, C), (C, B)])
def test_with_a_majority_behind_it_it_names_who_comes_to_something_else(
    order: tuple[Peer, Peer],
) -> None:
    one = Auditor(1)
    one.audit(NOW + EVERY)
    for peer in order:
        if peer == B:
            one.shows(B, NOW + EVERY, 1)
        else:
            one.makes_up(C, NOW + EVERY)
    assert one.wrong == {C: ALL}
    assert one.auditing.changes == SHARDS
    assert one.around.suspected == []  # it is there


def test_who_is_alone_with_what_it_holds_names_nobody() -> None:
    one = Auditor(1)
    one.audit(NOW + EVERY)
    one.makes_up(B, NOW + EVERY)
    one.makes_up(C, NOW + EVERY)
    assert one.wrong == {}


def test_who_comes_to_the_same_again_is_named_no_longer() -> None:
    one = Auditor(1)
    for audit, wrong in ((1, {C: ALL}), (2, {})):
        now = NOW + audit * EVERY
        one.audit(now)
        one.shows(B, now, 1)
        one.shows(C, now, 1) if audit == 2 else one.makes_up(C, now)
        assert one.wrong == wrong


def test_who_is_named_is_asked_also_when_others_own_the_shard() -> None:
    one = Auditor(1)
    one.audit(NOW + EVERY)
    one.shows(B, NOW + EVERY, 1)
    one.makes_up(C, NOW + EVERY)
    one.around.capacities = dict.fromkeys((A, B, D), 1 << 30)
    one.replicas.place(Placement.of(one.around.capacities, SHARDS, 3), NOW)
    one.audit(NOW + 2 * EVERY, (B, C, D))
    assert sorted(call.peer for call in one.calls) == [B, C, D]


@pytest.mark.parametrize("answer", [BUSILY, None, Pushed(b"\0")])
def test_who_never_tells_is_named_after_a_while_but_not_where_nobody_tells(
    answer: Message | None,
) -> None:
    one = Auditor(1)
    for audit in range(1, EVASIONS + 1):
        now = NOW + audit * EVERY
        assert one.wrong == {}
        one.audit(now)
        one.says(C, answer, now)
        one.shows(B, now, 1)
    assert one.wrong == {C: ALL}
    alone = Auditor(1)
    for audit in range(1, 3 * EVASIONS):
        now = NOW + audit * EVERY
        alone.audit(now)
        alone.says(C, answer, now)
        alone.says(B, answer, now)
    assert alone.wrong == {}


def test_what_a_peer_did_not_tell_is_forgotten_with_the_peer() -> None:
    one = Auditor(1)
    for audit in range(1, EVASIONS):
        now = NOW + audit * EVERY
        one.audit(now)
        one.says(C, BUSILY, now)
        one.shows(B, now, 1)
    assert len(one.auditing._evaded) == SHARDS
    one.around.capacities = dict.fromkeys((A, B, D), 1 << 30)
    one.replicas.place(Placement.of(one.around.capacities, SHARDS, 3), NOW)
    one.audit(NOW + EVASIONS * EVERY, (B, D))
    assert not one.auditing._evaded


def test_who_tells_once_may_fail_as_often_again() -> None:
    one = Auditor(1)
    for audit in range(1, 2 * EVASIONS):
        now = NOW + audit * EVERY
        one.audit(now)
        one.shows(B, now, 1)
        one.shows(C, now, 1) if audit == EVASIONS else one.says(C, BUSILY, now)
    assert one.wrong == {}


def test_who_lacks_what_is_here_cannot_tell_and_is_not_wrong() -> None:
    one = Auditor(1, 2)
    one.audit(NOW + EVERY)
    one.shows(B, NOW + EVERY, 1, 2)
    one.shows(C, NOW + EVERY, 1)
    assert one.wrong == {}


NOTHING_SHOWN = Proof(packed(shards(*ALL), SHARDS), [b""] * SHARDS)


def grow(one: Auditor, audit: int) -> float:
    """Begin an audit right after a new chunk has come to A and B, which C does not report yet."""
    now, held = NOW + audit * EVERY, range(1, 2 + audit)
    one.store.apply([update(1 + audit, *ALL)])
    one.reported[B] = applied(*held)
    one.audit(now)
    one.shows(B, now, *held)
    return now


@pytest.mark.parametrize("answer", [NOTHING_SHOWN, BUSILY])
@pytest.mark.parametrize("shows", [False, True])
def test_who_lacks_each_time_what_has_just_come_is_named_if_it_never_shows_anything(
    answer: Message, shows: bool
) -> None:
    one, often = Auditor(1), int(LAG / EVERY)
    named_at = 1 + often + EVASIONS + 2 * often * shows
    for audit in range(1, named_at):
        assert one.wrong == {}
        now = grow(one, audit)
        if shows and audit % (often + 2) == 0:  # between two proofs it lags, but not for long
            one.shows(C, now, *range(1, 2 + audit))
        else:
            one.says(C, answer, now)
        one.tick(now + LASTS)
        one.reported[C] = one.reported[B]
    assert one.auditing.audits == named_at - 1
    assert one.wrong == ({} if shows else {C: ALL})


@pytest.mark.parametrize("answer", [NOTHING_SHOWN, BUSILY])
def test_who_soon_says_that_it_has_all_and_never_shows_it_is_named(answer: Message) -> None:
    one = Auditor(1)
    for audit in range(1, EVASIONS + 1):
        assert one.wrong == {}
        now = grow(one, audit)
        one.answer(one.to(C)[0], answer, now)
        one.reported[C] = one.reported[B]
        one.reports_now(C, now + 5)
        one.tick(now + 5)
        one.says(C, answer, now + 5)
    assert one.wrong == {C: ALL}


def test_who_lacks_the_same_for_long_and_shows_nothing_is_named() -> None:
    one = Auditor(1, 2)
    one.reported[C] = applied(1)
    named_at = 1 + int(LAG / EVERY) + EVASIONS
    for audit in range(1, named_at):
        now = NOW + audit * EVERY
        one.audit(now)
        one.shows(B, now, 1, 2)
        one.shows(C, now, 1)
        assert one.wrong == {}
        one.tick(now + LASTS)
    assert one.wrong == {C: ALL}


def test_who_lacks_something_shows_it_as_soon_as_it_says_that_it_has_it() -> None:
    one = Auditor(1, 2)
    one.reported[C] = applied(1)
    now = NOW + EVERY
    one.audit(now)
    one.shows(B, now, 1, 2)
    one.shows(C, now, 1)
    for seconds in range(1, 4):
        one.tick(now + seconds)
    assert one.to(C) == []
    one.reported[C] = applied(1, 2)
    one.reports_now(C, now + 4)
    one.tick(now + 4)
    assert len(one.to(C)) == 1
    one.makes_up(C, now + 4)
    assert one.wrong == {C: ALL}


def test_who_was_busy_once_may_show_all_in_the_same_audit() -> None:
    one = Auditor(1)
    for audit in range(1, 2 * EVASIONS):
        now = NOW + audit * EVERY
        one.audit(now)
        one.shows(B, now, 1)
        one.answer(one.to(C)[0], BUSILY, now)
        assert one.to(C) == []
        one.tick(now + SETTINGS.hurry_every)
        one.shows(C, now + SETTINGS.hurry_every, 1)
    assert one.wrong == {}
    assert not one.auditing._evaded


def test_silence_counts_for_all_shards_whatever_chunks_they_have() -> None:
    one = Auditor(1)
    one.store.apply([update(2, 3)])
    one.reported = dict.fromkeys((B, C), applied(1, 2))
    for audit in range(1, EVASIONS + 1):
        now = NOW + audit * EVERY
        one.audit(now)
        while mine := one.to(B):
            same = weighed(one.store, ALL, one.weighings[-1].salt)
            asked = unpacked(mine[0].message.shards, SHARDS).tolist()
            shown = [proof_of(same[shard].print, B) for shard in asked]
            one.answer(mine[0], Proof(mine[0].message.shards, shown), now)
        one.says(C, BUSILY, now)
    assert one.wrong == {C: ALL}


def test_who_leaves_questions_unanswered_is_asked_so_often_and_no_more() -> None:
    one = Auditor(1)
    one.audit(NOW + EVERY)
    one.shows(B, NOW + EVERY, 1)
    one.says(C, None, NOW + EVERY)
    assert one.around.suspected == [C] * TRIES
    one.tick(NOW + EVERY + LASTS - 1)
    assert one.calls == []


def test_nobody_is_named_of_a_shard_that_is_not_wanted_here_any_more() -> None:
    one = Auditor(1)
    one.audit(NOW + EVERY)
    one.shows(B, NOW + EVERY, 1)
    one.makes_up(C, NOW + EVERY)
    one.around.capacities = dict.fromkeys((B, C, D), 1 << 30)
    one.replicas.place(Placement.of(one.around.capacities, SHARDS, 3), NOW)
    one.do(one.auditing.due(NOW + EVERY + 1), NOW + EVERY + 1)
    assert one.wrong == {}


def test_who_has_nothing_of_a_shard_any_more_is_named_for_a_while() -> None:
    one = Auditor(1)
    now = NOW + EVERY
    one.audit(now)
    one.shows(B, now, 1)
    one.makes_up(C, now)
    one.around.ready_at = {shard: [A, B] for shard in ALL}
    one.around.ready_at[2] = [A, B, C]
    one.auditing.due(now + KEEPS - 1)
    assert one.wrong == {C: ALL}
    one.auditing.due(now + KEEPS)
    assert one.wrong == {C: [2]}


def test_an_audit_of_which_nothing_is_heard_ends_and_late_answers_do_not_count() -> None:
    one = Auditor(1)
    one.audit(NOW + EVERY)
    (late,) = one.to(C)
    one.shows(B, NOW + EVERY, 1)
    one.do(one.auditing.due(NOW + EVERY + LASTS), NOW + EVERY + LASTS)
    one.calls.remove(late)
    one.audit(NOW + 2 * EVERY)
    assert one.auditing.audits == 2
    wrong = Proof(packed(shards(*ALL), SHARDS), [b"?" * 32] * SHARDS)
    assert one.pending_calls.done(late.number, wrong, NOW + 2 * EVERY) == []
    assert one.wrong == {}


def test_each_audit_has_a_salt_of_its_own() -> None:
    one = Auditor(1)
    for audit in (1, 2):
        one.audit(NOW + audit * EVERY)
        one.shows(B, NOW + audit * EVERY, 1)
        one.shows(C, NOW + audit * EVERY, 1)
    first, second = one.weighings
    assert first.salt != second.salt


def test_only_those_are_asked_who_say_that_they_serve_just_now() -> None:
    one = Auditor(1)
    for shard in ALL:
        one.reports.heard(C, shard, PeerReport(ReplicaState.SYNCING, applied(), NOW + EVERY))
    one.audit(NOW + EVERY, (B,))
    assert {call.peer for call in one.calls} == {B}
    other = Auditor(1)
    other.audit(NOW + EVERY, ())
    assert other.weighings == []


def test_shards_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 3)
    one = Auditor(1)
    tried = []
    for audit in range(1, 5):
        now = NOW + audit * EVERY
        one.weighs_at_once = 2 if audit == 3 else 3
        one.audit(now)
        one.shows(B, now, 1)
        one.shows(C, now, 1)
        tried.append(one.weighings[-1].shards.tolist())
    assert tried == [[0, 1, 2], [3, 0, 1], [2, 3, 0], [0, 1, 2]]
    assert AT_ONCE == 64


def test_shards_with_other_chunks_are_asked_for_one_after_the_other() -> None:
    one = Auditor(1)
    one.store.apply([update(2, 3)])
    one.audit(NOW + EVERY)
    (call,) = one.to(B)
    assert isinstance(call.message, AskProof)
    assert unpacked(call.message.shards, SHARDS).tolist() == [0, 1, 2]
    one.shows(C, NOW + EVERY, 1)
    held = Answers(store(ALL, [1]), lambda shard: ReplicaState.READY, B)
    one.answer(call, sent(held.to(sent(call.message))), NOW + EVERY)
    (last,) = one.to(B)
    assert isinstance(last.message, AskProof)
    assert unpacked(last.message.shards, SHARDS).tolist() == [3]


def test_what_is_no_proof_is_nobodys() -> None:
    one = Auditor(1)
    one.audit(NOW + EVERY)
    one.shows(B, NOW + EVERY, 1)
    one.says(C, Proof(packed(shards(1), SHARDS), [b"?" * 32]), NOW + EVERY)
    assert one.wrong == {}
    assert one.around.suspected == [C] * TRIES
