"""When a storage peer divides its shards, their children inherit what it knows of them."""

import msgspec
import numpy as np
import pytest

from giaann_p2p.errors import MessageError, UsageError
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.replication.known_sets import (
    DAY,
    KEEPS,
    NOTE,
    NOTED_EVERY,
    NOTHING,
    KnownSets,
)
from giaann_p2p.swarm.replication.peer_reports import PeerReport, PeerReports
from giaann_p2p.swarm.replication.replicas import Replicas
from giaann_p2p.swarm.wire.actions import Announce, Apply, Reply
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.messages import Carried, Carry, Pushed
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import children, packed
from tests.helpers_swarm import (
    JOB,
    LESSONS,
    NOW,
    SHARDS,
    SPEC,
    A,
    B,
    C,
    D,
    Side,
    applied,
    make_ready,
    shards,
    states,
)
from tests.unit.swarm.replication.helpers_storage import push, reply, side_of, word
from tests.unit.swarm.replication.test_replicas import Told

MORE = 4 * SHARDS


def changed() -> Replicas:
    """Return replicas of all states, that were changed at different times."""
    replicas = Replicas(A, 4, [0, 1])
    replicas.place(Told("AB", "AB", "BC", "BC"), NOW)
    make_ready(replicas)
    replicas.place(Told("AB", "BC", "AC", "BC"), NOW + 5, frozenset({3}))
    assert states(replicas) == "rdss"
    return replicas


def test_children_inherit_all_of_their_parent() -> None:
    before = changed()
    after = before.doubled(16)
    assert states(after) == 4 * "rdss"
    assert after.changes > before.changes
    assert after.held.tolist() == list(range(16))
    for shard in range(16):
        parent = shard % 4
        assert after.owners(shard) == before.owners(parent)
        assert after.excluded(shard) == before.excluded(parent)
        assert after.wanted(shard) == before.wanted(parent)
        assert after.held_since(shard) == before.held_since(parent)
        assert after.unchanged_for(shard, NOW + 9) == before.unchanged_for(parent, NOW + 9)
    for state in ReplicaState:
        held = before.all(state).tolist()
        assert after.all(state).tolist() == sorted(children(held, 4, 16))
    assert after.disputed == sorted(children(before.disputed, 4, 16))


def test_no_child_moves_before_it_is_placed_elsewhere() -> None:
    after = changed().doubled(8)
    assert after.place(Told("AB", "BC", "AC", "BC", "BC", "BC", "AC", "AC"), NOW + 6).tolist() == []
    assert states(after) == "rdssddss"


def test_reports_count_for_the_children() -> None:
    reports = PeerReports()
    word = PeerReport(ReplicaState.READY, applied(1, 2), NOW)
    reports.heard(B, 3, word)
    after = reports.doubled(4, 16)
    for shard in range(16):
        assert after.of(B, shard) == (word if shard % 4 == 3 else None)
    later = word._replace(asked=NOW + 1)
    after.heard(B, 7, later)
    assert (after.of(B, 7), after.of(B, 3), reports.of(B, 3)) == (later, word, word)


def known_of_eight() -> KnownSets:
    known = KnownSets()
    known.saw(3, applied(1, 2), 10, NOW)
    known.saw(5, applied(1), 3, NOW + 1)
    return known


def test_known_sets_are_those_of_the_children() -> None:
    known = known_of_eight()
    assert known.note(NOW + 2) == []
    after = known.doubled(8, 32)
    assert sorted(after.of()) == [3, 5, 11, 13, 19, 21, 27, 29]
    assert after.missing is NOTHING
    assert after.note(NOW + 1 + NOTED_EVERY) == []
    (note,) = after.note(NOW + 2 + NOTED_EVERY)
    assert (note.key, note.value) == (NOTE, after.packed())
    known.note(NOW + 2 + NOTED_EVERY)
    assert known.doubled(8, 16).note(NOW + DAY) == []  # nothing has grown


@pytest.mark.parametrize("counted", [8, 16, 32])
def test_a_note_says_how_many_shards_it_counts(counted: int) -> None:
    known = known_of_eight()
    note = (known if counted == 8 else known.doubled(8, counted)).packed()
    again = KnownSets(32)
    again.restore(note, 8, 32, NOW + 3)
    assert again.packed() == known.doubled(8, 32).packed()
    again.compare({shard: [] for shard in range(32)}, NOW + 4)
    assert again.missing.shards.tolist() == [3, 5, 11, 13, 19, 21, 27, 29]
    assert again.missing.connections == 13
    again.compare({}, NOW + 2 + KEEPS)
    assert not list(again.of())


def test_the_note_of_before_a_doubling_is_that_of_releases_that_know_none() -> None:
    known, found = known_of_eight(), msgspec.msgpack.decode(known_of_eight().packed())
    assert [shards for _, shards in found] == [[[3, 10, NOW]], [[5, 3, NOW + 1]]]
    assert KnownSets(8).packed() != known.packed()


def test_a_note_says_nothing_of_shards_that_it_does_not_count() -> None:
    again, note = KnownSets(32), [(applied(1).to_bytes(), [(3, 1, 1), (9, 1, 1)])]
    again.restore(msgspec.msgpack.encode(note), 8, 32, NOW)
    assert sorted(again.of()) == [3, 11, 19, 27]


@pytest.mark.parametrize(("first", "shards"), [(8, 16), (8, 8)])
def test_a_note_that_counts_more_shards_than_there_are_says_nothing(
    first: int, shards: int
) -> None:
    again = KnownSets(shards)
    with pytest.raises(UsageError, match="cannot be read: it counts 32 shards"):
        again.restore(known_of_eight().doubled(8, 32).packed(), first, shards, NOW)
    assert not list(again.of())


def test_a_loss_is_one_of_all_children() -> None:
    known = KnownSets()
    known.saw(3, applied(1, 2), 10, NOW)
    known.compare({3: [applied(1)]}, NOW)
    after = known.doubled(8, 16)
    assert after.missing.shards.tolist() == [3, 11]
    assert (after.missing.connections, after.missing.seen) == (10, NOW)
    assert after.changes > known.changes
    after.compare({3: [applied(1, 2)], 11: [applied(1)]}, NOW)  # one half came back
    assert after.missing.shards.tolist() == [11]


def divided(side: Side, *chunks: int) -> None:
    """Let a peer know an edition, and divide its store by it."""
    side.around.rules = Rules(MORE, 3, founding_shards=SHARDS)
    side.around.changes += 1
    every = np.arange(MORE, dtype=np.uint16)
    side.store = Store.in_memory(SPEC, Layout(shards=MORE), retain=True)
    side.store.hold(every.tolist())
    side.store.apply([Update(JOB, chunk, every, LESSONS.delta(chunk)) for chunk in chunks])
    side.core._held = side.core._shared.held = side.store
    side.core = side.core.doubled()


def ready_side() -> Side:
    side = side_of(A, B, C, chunks=(0, 1))
    side.tick(NOW)
    make_ready(side.core.replicas)
    return side


def test_a_peer_announces_the_children_of_what_it_has_ready() -> None:
    side = ready_side()
    side.done.clear()
    divided(side, 0, 1)
    side.tick(NOW + 1)
    said = side.told(Announce)[-1]
    assert said.ready.tolist() == list(range(MORE))
    assert states(side.core.replicas) == MORE * "r"
    for shard in range(MORE):
        assert set(side.core.replicas.owners(shard)) == {A, B, C}


def test_whoever_pushed_before_is_answered_in_the_shards_of_the_push() -> None:
    side = ready_side()
    past = side.core
    (apply,) = past.asked(7, B, push(2, 0, 1), NOW)
    assert isinstance(apply, Apply)
    divided(side, 0, 1, 2)
    (said,) = [act for act in past.stored(apply.number, None, NOW) if isinstance(act, Reply)]
    assert said == Reply(7, Pushed(packed(shards(0, 1), SHARDS)))


def test_what_others_said_and_what_was_known_stays() -> None:
    side = ready_side()
    word(side, B, "r01", NOW)
    side.core.known.saw(1, applied(0, 1), 10, NOW)
    divided(side, 0, 1)
    assert [side.core.reports.of(B, n) is not None for n in range(MORE)] == [True] * MORE
    assert sorted(side.core.known.of()) == [1, 5, 9, 13]


def test_known_sets_of_a_peer_say_how_many_shards_they_count() -> None:
    side = ready_side()
    assert side.core.known._counted == 0
    divided(side, 0, 1)
    assert side.core.known._counted == MORE
    again = Side(A, side.around, side.store, rules=side.around.rules)  # it is restarted
    assert again.core.known._counted == MORE


def test_nothing_is_placed_until_the_shards_are_divided() -> None:
    side = side_of(A, chunks=(0, 1))
    side.tick(NOW)
    make_ready(side.core.replicas)
    side.around.capacities = dict.fromkeys([B, C, D], 1 << 30)
    side.around.rules = Rules(MORE, 3, founding_shards=SHARDS)
    side.around.changes += 1
    side.tick(NOW + 1)
    assert states(side.core.replicas) == SHARDS * "r"
    divided(side, 0, 1)
    side.tick(NOW + 2)
    assert {*states(side.core.replicas)} == {"r", "d"}  # it owns some with these others


def test_what_is_carried_is_forgotten() -> None:
    """Its author sends it anew, because the holders of its shards are others now."""
    side = ready_side()
    tree = LESSONS.tree(1)
    seal = tree.seal(b"", list(range(SHARDS)))
    every = np.arange(SHARDS, dtype=np.uint16)
    carry = Carry(JOB, 1, packed(every, SHARDS), LESSONS.parcel(1, every), seal)
    assert isinstance(side.core.carry(B, carry, NOW), Carried)
    assert side.core.carried.piece(B, JOB, 1, shards(0, 2))
    divided(side, 0, 1)
    with pytest.raises(MessageError, match="does not carry these rows"):
        side.core.carried.piece(B, JOB, 1, shards(0, 2))


def test_accusations_and_budgets_stay() -> None:
    side = ready_side()
    assert isinstance(reply(side, push(2, 0, 1)), Pushed)
    budget, said = side.core.budget, repr(side.core.budget)
    side.core.auditing._name(B, 1, NOW)
    divided(side, 0, 1, 2)
    wrong = {peer: some.tolist() for peer, some in side.core.auditing.wrong().items()}
    assert wrong == {B: [1, 5, 9, 13]}
    assert side.core.budget is budget
    assert repr(side.core._pushes.budget) == said


def test_a_peer_that_leaves_goes_on_leaving() -> None:
    side = ready_side()
    side.do(side.core.leave(NOW), NOW)
    assert states(side.core.replicas) == SHARDS * "d"
    divided(side, 0, 1)
    side.tick(NOW + 1)
    assert side.core.leaving
    assert states(side.core.replicas) == MORE * "d"
