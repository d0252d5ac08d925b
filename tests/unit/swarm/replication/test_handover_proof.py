"""Trials of what is to be let go: who is asked, what counts, and who is found wrong."""

import pytest

from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.members.liar_backoff import FIRST_BACKOFF, LONGEST_BACKOFF
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.replication import handover_proof as module
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.replication.handover_proof import (
    BATCH_EVERY,
    LONGEST_REST,
    REST,
    TRIAL,
    HandoverProof,
    Spare,
)
from giaann_p2p.swarm.replication.replicas import Replicas
from giaann_p2p.swarm.replication.shard_fingerprint import ShardFingerprints, weighed
from giaann_p2p.swarm.wire.actions import Action, Call, TakeFingerprints
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import AskProof, Proof, Pushed, Refusal
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
E = Peer(b"E" * 32)
HURRY = SETTINGS.hurry_every


class Trier:
    """One who drains all shards, which are three others' from now on."""

    def __init__(self, *chunks: int, secret: bytes = b"secret") -> None:
        self.around, self.store = Around(B, C, D), store(ALL, chunks)
        self.replicas = Replicas(A, SHARDS, ALL)
        for shard in ALL:
            self.replicas.caught_up(shard, NOW)
        self.replicas.place(Placement.of(self.around.capacities, SHARDS, 3), NOW)
        shared = shared_by(self.replicas, self.around, self.store, secret=secret)
        self.pending_calls, self.weighing = shared.calls, shared.weighings
        self.handover = HandoverProof(shared)
        self.calls: list[Call] = []
        self.weighings: list[TakeFingerprints] = []
        self.late: set[int] = set()
        """Shards of which no owner reports all chunks."""
        self.behind: set[Peer] = set()
        """Owners that report all chunks of no shard."""
        self.beside: list[Peer] = []
        """Peers that hold all shards beside the owners."""
        self.never_ready: set[int] = set()
        """Shards that some owner has not reported ready."""

    def spare(self, *numbers: int) -> dict[int, Spare]:
        sets = self.store.sets(numbers or ALL)
        owners = self.replicas.owners
        covering = {
            n: [p for p in (*owners(n), *self.beside) if p not in self.behind] for n in sets
        }
        covering |= {n: [] for n in self.late.intersection(sets)}
        return {
            n: Spare(mine, owners(n), covering[n], n not in self.never_ready)
            for n, mine in sets.items()
        }

    def due(self, now: float, *numbers: int) -> None:
        self.do(self.handover.due(self.spare(*numbers), now), now)

    def do(self, actions: list[Action], now: float) -> None:
        for action in actions:
            if isinstance(action, Call):
                self.calls.append(action)
            elif isinstance(action, TakeFingerprints):
                self.weighings.append(action)
                found = self.weights(action)
                self.do(self.weighing.done(action.number, found, now), now)

    def weights(self, action: TakeFingerprints) -> ShardFingerprints:
        return weighed(self.store, action.shards.tolist(), action.salt)

    def to(self, peer: Peer) -> list[Call]:
        return [call for call in self.calls if call.peer == peer]

    def answer(self, call: Call, answer: Message | None, now: float = NOW) -> None:
        self.calls.remove(call)
        self.do(self.pending_calls.done(call.number, answer, now), now)

    def show(self, *chunks: int, peers: tuple[Peer, ...] = (B, C, D), now: float = NOW) -> None:
        """Let some who hold what some chunks come to answer all that they are asked."""
        for peer in peers:
            held = Answers(store(ALL, chunks), lambda shard: ReplicaState.READY, peer)
            while mine := self.to(peer):
                self.answer(mine[0], sent(held.to(sent(mine[0].message))), now)

    def shown(self, now: float = NOW) -> list[int]:
        return [
            shard
            for shard, mine in self.store.sets(ALL).items()
            if self.handover.shown(shard, mine, now) >= {*self.replicas.owners(shard)}
        ]


def question(call: Call) -> AskProof:
    assert isinstance(call.message, AskProof)
    return call.message


def test_all_owners_show_that_they_hold_what_is_here() -> None:
    one = Trier(1, 2)
    one.due(NOW)
    assert [weigh.shards.tolist() for weigh in one.weighings] == [ALL]
    assert sorted(call.peer for call in one.calls) == [B, C, D]
    asked = question(one.calls[0])
    assert unpacked(asked.shards, SHARDS).tolist() == ALL
    assert Applied.from_bytes(asked.chunks) == applied(1, 2)
    assert asked.salt == one.weighings[0].salt
    one.show(1, 2, peers=(B, C))
    assert one.shown() == []
    one.show(1, 2, 3, peers=(D,))  # it has more meanwhile
    assert one.shown() == ALL
    assert one.handover.shown_so_far == 3 * SHARDS
    assert one.shown(NOW + TRIAL - 0.1) == ALL
    assert one.shown(NOW + TRIAL) == []
    assert repr(one.handover) == "<HandoverProof: 4 on trial, 0 found wrong>"


def test_nothing_is_fetched_while_shards_are_on_trial() -> None:
    one = Trier(1)
    assert all(map(one.handover.fetches, ALL))  # what drains is kept up
    one.due(NOW, 1, 2)
    assert [one.handover.fetches(shard) for shard in ALL] == [True, False, False, True]
    one.due(NOW + TRIAL, 0)  # only shard 0 may still be dropped
    assert [one.handover.fetches(shard) for shard in ALL] == [False, True, True, True]
    one.around.capacities = {A: 1 << 30}
    one.replicas.place(Placement.of(one.around.capacities, SHARDS, 3), NOW)
    assert all(map(one.handover.fetches, ALL))  # it is wanted again


def test_what_was_never_ready_is_kept_up_only_when_it_could_not_go() -> None:
    one = Trier(1)
    one.replicas = Replicas(A, SHARDS, ALL)
    one.replicas.place(Placement.of(one.around.capacities, SHARDS, 3), NOW)
    shared = shared_by(one.replicas, one.around, one.store, secret=b"")
    one.pending_calls, one.weighing = shared.calls, shared.weighings
    one.handover = HandoverProof(shared)
    assert not any(map(one.handover.fetches, ALL))
    one.due(NOW)
    one.answer(one.to(B)[0], Proof(packed(shards(*ALL), SHARDS), [b""] * SHARDS))
    assert all(map(one.handover.fetches, ALL))


def test_each_trial_has_a_salt_that_only_its_peer_can_foresee() -> None:
    salts = set()
    for secret in (b"secret", b"another"):
        one = Trier(1, secret=secret)
        for trial in range(3):
            one.due(NOW + trial * (TRIAL + LONGEST_REST))
            one.due(NOW + trial * (TRIAL + LONGEST_REST) + LONGEST_REST)
            salts.add(one.weighings[-1].salt)
    assert len(salts) == 6


def test_so_many_shards_are_on_trial_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 3)
    monkeypatch.setattr(module, "MOST_WEIGHED", 0)
    one = Trier(1)
    monkeypatch.setattr(one.store, "size_of", lambda shard: 1)
    one.late = {0, 1}
    one.due(NOW)
    assert one.weighings[0].shards.tolist() == [2, 3]  # those first that may go soonest
    assert not one.handover.fetches(0)
    assert one.handover.fetches(1)


@pytest.mark.parametrize(
    ("sizes", "connections", "most", "count"),
    [
        ((10, 10, 10, 10), 30, 9, 3),
        ((10, 10, 10, 10), 39, 9, 3),
        ((10, 10, 10, 10), 99, 2, 2),
        ((30, 1, 1, 1), 30, 9, 1),
    ],
)
def test_more_small_shards_are_on_trial_at_once(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], connections: int, most: int, count: int
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 1)
    monkeypatch.setattr(module, "SMALL_AT_ONCE", most)
    monkeypatch.setattr(module, "MOST_WEIGHED", connections)
    one = Trier(1)
    monkeypatch.setattr(one.store, "size_of", sizes.__getitem__)
    for now in (NOW, NOW + BATCH_EVERY):  # those on trial count, too
        one.due(now)
        assert sum(map(one.handover.fetches, ALL)) == SHARDS - count


def test_shards_with_other_chunks_are_asked_for_one_after_the_other() -> None:
    one = Trier(1)
    one.store.apply([update(2, 1, 3)])
    one.due(NOW)
    (first,) = one.to(B)
    assert unpacked(question(first).shards, SHARDS).tolist() == [0, 2]
    one.show(1, 2)
    assert one.shown() == ALL


def test_who_shows_only_some_is_asked_for_the_rest() -> None:
    one = Trier(1)
    one.due(NOW)
    for peer in (B, C, D):
        held = Answers(store(ALL, [1]), lambda shard: ReplicaState.READY, peer)
        while calls := one.to(peer):
            told = held.to(calls[0].message)
            assert isinstance(told, Proof)
            first = unpacked(told.shards, SHARDS)[:1]
            one.answer(calls[0], Proof(packed(first, SHARDS), told.found[:1]))
    assert one.shown() == ALL


def test_what_cannot_be_weighed_at_once_is_weighed_next(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Trier(1)
    monkeypatch.setattr(one, "weights", lambda w: weighed(one.store, w.shards.tolist()[:2], w.salt))
    one.due(NOW)
    one.due(NOW + 1)
    one.show(1)
    assert [w.shards.tolist() for w in one.weighings] == [[0, 1, 2, 3], [2, 3]]
    assert one.shown() == ALL


def test_what_no_owner_covers_yet_is_not_weighed() -> None:
    one = Trier(1)
    one.late = {1}
    one.due(NOW)
    assert one.weighings[0].shards.tolist() == [0, 2, 3]
    assert not one.handover.fetches(1)
    one.late = set()
    one.due(NOW + 1)
    assert one.weighings[1].shards.tolist() == [1]
    assert one.weighings[1].salt == one.weighings[0].salt
    one.show(1)
    assert one.shown() == ALL


def test_a_trial_begins_when_all_owners_have_been_ready() -> None:
    one = Trier(1)
    one.never_ready = {1}
    one.due(NOW)
    assert one.handover.fetches(1)
    one.never_ready = {0, 2, 3}  # what has begun goes on, whoever fails meanwhile
    one.due(NOW + BATCH_EVERY)
    assert not any(map(one.handover.fetches, ALL))
    one.show(1)
    assert one.shown() == ALL


def test_more_trials_begin_in_batches_beside_those_under_way() -> None:
    one = Trier(1)
    one.due(NOW, 0, 1)
    one.due(NOW + BATCH_EVERY - 0.1)
    assert [one.handover.fetches(shard) for shard in ALL] == [False, False, True, True]
    one.due(NOW + BATCH_EVERY)
    assert not any(map(one.handover.fetches, ALL))
    assert len({weigh.salt for weigh in one.weighings}) == 2
    assert len(one.to(B)) == 1  # one question at a time, of one batch
    one.show(1)
    assert one.shown() == ALL
    assert one.shown(NOW + TRIAL) == [2, 3]


def test_owners_show_it_one_by_one_as_they_come_to_have_it() -> None:
    one = Trier(1)
    one.behind = {D}
    one.due(NOW)
    assert sorted(call.peer for call in one.calls) == [B, C]
    one.show(1)
    one.behind = {B, C}  # they are silent for a while, or busy
    late = NOW + TRIAL - 1
    one.due(late)
    assert [call.peer for call in one.calls] == [D]
    one.show(1, now=late)
    assert one.shown(late) == ALL


def test_a_trial_in_which_an_owner_shows_nothing_ends() -> None:
    one = Trier(1)
    one.behind = {D}
    one.due(NOW)
    one.show(1)
    one.due(NOW + TRIAL - 0.1)
    assert not one.handover.fetches(0)
    one.due(NOW + TRIAL)
    assert one.handover.fetches(0)
    one.due(NOW + TRIAL + REST)
    assert not one.handover.fetches(0)
    assert len({weigh.salt for weigh in one.weighings}) == 2


def test_what_has_changed_is_tried_anew_with_another_salt() -> None:
    one = Trier(1)
    one.due(NOW)
    one.show(1)
    one.store.apply([update(2, *ALL)])
    assert one.shown() == []
    one.due(NOW + 1)
    assert len({weigh.salt for weigh in one.weighings}) == 2
    one.show(1, 2)
    assert one.shown() == ALL


def test_other_owners_must_show_it_themselves() -> None:
    one = Trier(1)
    one.due(NOW)
    one.show(1)
    new = Peer(b"E" * 32)
    one.around.capacities = {B: 1 << 30, C: 1 << 30, new: 1 << 30}
    one.replicas.place(Placement.of(one.around.capacities, SHARDS, 3), NOW)
    assert one.shown() == []
    one.due(NOW + 1)
    assert [call.peer for call in one.calls] == [new]  # what the others have shown still counts
    one.show(1, peers=(new,))
    assert one.shown() == ALL


def test_a_restart_cancels_the_proofs_of_a_peer_without_a_disk() -> None:
    one = Trier(1)
    one.handover.restarted(C)  # with no trial
    one.due(NOW)
    one.show(1)
    one.around.without_disk = {C}
    one.handover.restarted(C)
    assert one.shown() == []
    one.due(NOW + 1)
    assert [call.peer for call in one.calls] == [C]


def test_a_restart_leaves_the_proofs_of_a_peer_with_a_disk() -> None:
    one = Trier(1)
    one.due(NOW)
    one.show(1)
    one.handover.restarted(C)
    assert one.shown() == ALL


def test_who_cannot_tell_is_asked_again_later_and_later() -> None:
    one, now, pauses = Trier(1), NOW, []
    for _ in range(8):
        one.due(now, 0)
        one.answer(one.to(B)[0], Proof(packed(shards(0), SHARDS), [b""]), now)
        one.calls.clear()
        begun = now
        while not one.calls:
            now += 1
            one.due(now, 0)
        pauses.append(now - begun)
    assert pauses == [REST, 4, 8, 16, LONGEST_REST, LONGEST_REST, LONGEST_REST, LONGEST_REST]
    assert one.around.suspected == []


@pytest.mark.parametrize("lie", [bytes(32), b"short"])
def test_who_tells_it_wrong_is_in_doubt_and_lets_nothing_go(lie: bytes) -> None:
    one = Trier(1)
    one.due(NOW)
    one.show(1, peers=(B, C))
    one.answer(one.to(D)[0], Proof(packed(shards(*ALL), SHARDS), [lie] * SHARDS))
    assert one.shown() == []
    assert one.around.suspected == [D]
    assert all(map(one.handover.fetches, ALL))
    one.due(NOW + FIRST_BACKOFF - 0.1)
    assert one.calls == []
    one.due(NOW + FIRST_BACKOFF)  # that one shard not for a long time
    assert unpacked(question(one.to(D)[0]).shards, SHARDS).tolist() == [1, 2, 3]
    one.show(1, now=NOW + FIRST_BACKOFF)
    assert one.shown(NOW + FIRST_BACKOFF) == [1, 2, 3]
    one.due(NOW + LONGEST_BACKOFF)
    assert len(one.to(D)) == 1


def test_who_holds_it_beside_the_owners_may_show_it_too() -> None:
    one = Trier(1)
    one.beside = [E]
    one.due(NOW)
    one.show(1)
    assert one.shown() == ALL
    assert one.handover.shown(0, applied(1), NOW) == {B, C, D}
    one.show(1, peers=(E,))
    assert one.handover.shown(0, applied(1), NOW) == {B, C, D, E}


@pytest.mark.parametrize("lie", [b"", bytes(32)])
def test_who_holds_it_beside_the_owners_and_cannot_show_it_stops_nothing(lie: bytes) -> None:
    one = Trier(1)
    one.beside = [E]
    one.due(NOW)
    one.answer(one.to(E)[0], Proof(packed(shards(*ALL), SHARDS), [lie] * SHARDS))
    assert one.around.suspected == [E] * SHARDS if lie else one.around.suspected == []
    one.show(1)
    assert one.shown() == ALL
    one.due(NOW + 5)
    assert one.calls == []  # not in this trial


def test_what_another_says_is_of_no_use() -> None:
    one = Trier(1)
    one.due(NOW)
    honest = Answers(store(ALL, [1]), lambda shard: ReplicaState.READY, B)
    one.answer(one.to(D)[0], honest.to(question(one.to(D)[0])))
    assert one.around.suspected == [D]


def test_who_holds_something_else_is_found() -> None:
    one = Trier(1)
    one.due(NOW)
    other = store(ALL)
    other.apply([update(2, *ALL)._replace(chunk=1)])
    (call,) = one.to(D)
    one.answer(call, Answers(other, lambda shard: ReplicaState.READY, D).to(call.message))
    assert one.around.suspected == [D]


BAD = {
    "nothing": None,
    "another answer": Pushed(packed(shards(*ALL), SHARDS)),
    "no shards": Proof(packed(shards(), SHARDS), []),
    "shards of another form": Proof(b"\7", [bytes(32)]),
    "other shards": Proof(packed(shards(1), SHARDS), [bytes(32)]),
    "too few proofs": Proof(packed(shards(0, 1), SHARDS), [bytes(32)]),
    "too many proofs": Proof(packed(shards(0), SHARDS), [bytes(32)] * 2),
}


@pytest.mark.parametrize("name", BAD)
def test_who_answers_nonsense_is_asked_again(name: str) -> None:
    one = Trier(1)
    one.due(NOW)
    one.answer(one.to(D)[0], BAD[name])
    assert one.around.suspected == [D]
    one.due(NOW + HURRY - 0.1)
    assert one.to(D) == []
    one.due(NOW + HURRY)
    one.show(1)
    assert one.shown() == ALL


def test_who_is_busy_is_asked_again_and_not_in_doubt() -> None:
    one = Trier(1)
    one.due(NOW)
    one.answer(one.to(D)[0], Refusal("busy: later"))
    assert one.around.suspected == []
    one.due(NOW + HURRY)
    one.show(1)
    assert one.shown() == ALL


def test_what_comes_when_a_trial_is_over_is_nothing() -> None:
    one = Trier(1)
    one.due(NOW)
    (late,) = one.to(D)
    one.calls.remove(late)
    one.show(1)
    one.due(NOW + TRIAL)
    held = Answers(store(ALL, [1]), lambda shard: ReplicaState.READY, D)
    one.due(NOW + TRIAL + REST)
    one.do(one.pending_calls.done(late.number, held.to(late.message), NOW + TRIAL), NOW + TRIAL)
    one.show(1, peers=(B, C))
    assert one.shown(NOW + TRIAL) == []
    assert one.weighing.done(999, {}, NOW) == []
