"""Readers among liars: who puts rows to the vote, and who compares a sample."""

import random
from collections import Counter

import numpy as np
import pytest
from msgspec.structs import replace

from giaann_p2p.model.rows import Answer, Neuron, Row
from giaann_p2p.swarm.reading.disputes import MOST_DISPUTES
from giaann_p2p.swarm.reading.row_match import same
from giaann_p2p.swarm.reading.row_vote import NOTHING, Verify
from giaann_p2p.swarm.wire.identity import Peer
from tests.helpers_swarm import LAYOUT, NOW, SHARDS, A, B, C, D
from tests.unit.swarm.reading.helpers_row_vote import (
    ALL,
    CHUNKS,
    NEURONS,
    SALT,
    SOME,
    Mouth,
    World,
    adds,
    bends,
    changed,
    hides,
    honest,
    in_turn,
    knows,
    learning,
    silent,
    takes,
)

LIARS = {"adds": adds, "hides": hides, "takes": takes, "bends": bends}
E = Peer(b"E" * 32)
PEERS = [A, B, C]
QUICK = 0.001
TIMES = (1, 8, 22, 50, 110)
"""How many times as long each peer takes: no two share the reads."""


def right(rows: Answer | None, neurons: list[Neuron], about: Mouth = honest) -> bool:
    true = about(neurons, NOW)
    assert rows is not None
    assert true is not None
    return all(map(same, rows, true))


def world(*mouths: Mouth, verify: Verify = ALL) -> World:
    """Return a world in which each peer is quicker than the next, by far."""
    peers = [A, B, C, D, E][: len(mouths)]
    made = World(dict(zip(peers, mouths, strict=True)), verify)
    for number, peer in enumerate(peers):
        made.took[peer] = QUICK * TIMES[number]
        made.reader.latencies.took(peer, made.took[peer] + QUICK / 2, NOW)  # so it is never late
    return made


# Rows that are put to the vote.


@pytest.mark.parametrize("liar", LIARS)
def test_unchecked_a_lie_comes_through(liar: str) -> None:
    one = world(LIARS[liar], honest, honest, verify=NOTHING)
    assert not right(one.read(NEURONS), NEURONS)
    one.run(200)
    assert one.lied == []
    assert (one.reader.compared, one.reader.disputes.opened) == (0, 0)


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("liar", LIARS)
def test_of_three_one_liar_is_bypassed_and_found(liar: str, place: int) -> None:
    mouths: list[Mouth] = [honest, honest, honest]
    mouths[place] = LIARS[liar]
    one = world(*mouths)
    for _ in range(20):
        assert right(one.read(NEURONS), NEURONS)
        one.took[PEERS[place]] = 0.0005  # it will be asked
        one.reader.latencies.took(PEERS[place], 0.0, one.now)
        one.run(5)
    assert {said.peer for said in one.lied} == {PEERS[place]}
    (said, *_) = one.lied
    assert said.neuron in NEURONS
    assert LAYOUT.shard_of(*said.neuron) == said.shard
    assert said.behind == (liar in ("hides", "takes"))
    assert said.seconds == 60.0
    assert one.around.suspected == []


def test_a_vote_is_as_quick_as_the_second_of_two() -> None:
    one = world(honest, honest, honest)
    assert right(one.read(NEURONS), NEURONS)
    assert one.now == pytest.approx(NOW + QUICK * TIMES[1])
    assert [peer for peer, _ in one.asked] == [A, B]
    assert one.reader.compared == 2 * len(NEURONS)
    one.run(100)
    assert len(one.asked) == 2


def test_when_two_differ_the_third_decides_at_once() -> None:
    one = world(adds, honest, honest)
    assert right(one.read(NEURONS), NEURONS)
    assert one.now == pytest.approx(NOW + QUICK * (TIMES[1] + TIMES[2]))


def test_two_liars_of_three_cannot_be_told_from_honest_ones() -> None:
    one = world(adds, adds, honest)
    assert not right(one.read(NEURONS), NEURONS)


def test_of_two_that_differ_none_is_believed_and_none_blamed() -> None:
    one = world(adds, honest)
    assert one.read(NEURONS) is None
    (said,) = one.told.values()
    assert said.disputed
    assert said.missing == sorted({LAYOUT.shard_of(*neuron) for neuron in NEURONS})
    one.run(200)
    assert one.lied == []
    assert one.reader.disputes.undecided > 0
    assert one.reader.idle


def test_of_five_two_that_lie_alike_are_found() -> None:
    one = world(adds, adds, honest, honest, honest)
    one.around.replicas = 5
    assert right(one.read(NEURONS), NEURONS)
    one.run(16)
    assert {said.peer for said in one.lied} == {A, B}


def test_one_replica_is_believed() -> None:
    one = world(honest)
    one.around.replicas = 1
    assert right(one.read(NEURONS), NEURONS)


def test_who_knows_no_majority_of_the_replicas_believes_none() -> None:
    """It may be cut off from all others, among liars."""
    for mouths in ([honest], [adds], [adds, adds, honest]):
        one = world(*mouths)
        one.around.replicas = 2 * len(mouths) + 1
        assert one.read(NEURONS) is None
        one.run(200)
        assert one.lied == []


def test_also_who_does_not_say_that_it_has_a_shard_is_waited_for() -> None:
    for mouth in (honest, adds):
        one = world(mouth, silent, silent)
        one.around.ready_at = {shard: [A] for shard in range(SHARDS)}
        assert one.read(NEURONS) is None
        one = world(mouth, honest, honest)
        one.around.ready_at = {shard: [A] for shard in range(SHARDS)}
        assert right(one.read(NEURONS), NEURONS)


@pytest.mark.parametrize("mouth", [honest, bends])
def test_one_of_three_is_not_believed_because_the_others_are_silent(mouth: Mouth) -> None:
    one = world(mouth, silent, silent)
    assert one.read(NEURONS) is None
    assert one.around.suspected.count(B) >= 2


@pytest.mark.parametrize("place", range(3))
def test_one_silent_peer_of_three_holds_up_little(place: int) -> None:
    mouths: list[Mouth] = [honest, honest, honest]
    mouths[place] = silent
    one = world(*mouths)
    assert right(one.read(NEURONS), NEURONS)
    assert one.now < NOW + 0.5


def test_a_lie_is_not_believed_while_the_honest_may_only_be_late() -> None:
    late = in_turn((0, silent), (1, honest))
    one = world(adds, late, late)
    assert right(one.read(NEURONS), NEURONS)


def test_who_has_not_got_a_shard_any_more_has_no_vote() -> None:
    one = world(adds, honest, honest)
    one.moved = {A}
    assert right(one.read(NEURONS), NEURONS)
    assert one.now < NOW + 0.1


def test_while_two_of_three_fetch_a_shard_the_third_is_not_believed_alone() -> None:
    one = world(adds, honest, honest)
    one.moved = {B, C}
    assert one.read(NEURONS) is None


@pytest.mark.parametrize("strangers", [set(), {D, E}])
def test_who_has_no_standing_does_not_vote_in_place_of_owners(strangers: set[Peer]) -> None:
    one = world(adds, honest, honest, adds, adds)
    one.around.capacities = dict.fromkeys([A, B, C], 1 << 30)
    one.moved, one.around.newcomers = {B, C}, strangers
    assert (one.read(NEURONS) is None) == bool(strangers)


def test_who_was_in_doubt_before_holds_up_little() -> None:
    one = world(honest, silent, honest)
    one.around.unreachable = {B}
    assert right(one.read(NEURONS), NEURONS)
    assert one.now < NOW + 0.5


def test_who_is_no_owner_has_no_vote_and_is_not_blamed() -> None:
    stale = knows(0)
    one = world(stale, stale, honest)
    one.around.capacities, one.around.replicas = {C: 1 << 30}, 1
    assert right(one.read(NEURONS), NEURONS)
    one.run(200)
    assert one.lied == []


def test_where_only_former_owners_are_left_they_are_believed() -> None:
    stale = knows(0)
    one = world(stale, stale, silent)
    one.around.capacities = {C: 1 << 30}
    assert right(one.read(NEURONS), NEURONS, stale)


def test_the_same_chunks_in_any_order_are_the_same() -> None:
    shuffled = changed(_shuffled)
    one = world(honest, shuffled, honest)
    assert right(one.read(NEURONS), NEURONS)
    one.run(100)
    assert (one.lied, one.reader.disputes.opened) == ([], 0)


def _shuffled(row: Row) -> Row:
    """Return the same row, its targets in the other order."""
    count = len(row.target_concept)
    order = np.argsort(count - 1 - row.target, kind="stable")
    return replace(
        row,
        target_concept=row.target_concept[::-1],
        target_feature=row.target_feature[::-1],
        target=(count - 1 - row.target)[order],
        branch=row.branch[order],
        segment=row.segment[order],
        strength=row.strength[order],
    )


# Honest replicas that differ for a while.


@pytest.mark.parametrize("verify", [ALL, Verify(0.9, SALT)])
@pytest.mark.parametrize("seed", range(8))
def test_honest_peers_that_lag_are_never_blamed(seed: int, verify: Verify) -> None:
    rng = random.Random(seed)
    lags = [rng.choice([0.0, 0.05, 1.0, 6.0]) for _ in PEERS]
    pace = rng.choice([0.1, 0.5, 3.0])
    one = world(*(learning(lag, pace) for lag in lags), verify=verify)
    for _ in range(30):
        rows = one.read(rng.sample(NEURONS, 8), within=20)
        assert rows is not None
        one.run(rng.random() * 3)
    one.run(200)
    assert one.lied == []
    assert one.reader.disputes.undecided == 0
    assert one.reader.idle


def test_honest_peers_with_other_chunks_each_are_not_blamed() -> None:
    every = [knows(0, 1, 2), knows(1, 2, 3), knows(0, 3)]
    one = world(*(in_turn((0, some), (9, knows(*range(4)))) for some in every))
    assert right(one.read(NEURONS), NEURONS, knows(*range(4)))
    assert NOW + 9 < one.now < NOW + 9.5
    assert one.reader.disputes.opened > 0
    one.run(200)
    assert one.lied == []


def test_a_further_round_asks_as_many_at_once_as_the_first() -> None:
    home = [neuron for neuron in NEURONS if neuron.concept == NEURONS[0].concept][:1]
    one = world(honest, hides, takes)
    one.read(home)
    vote = [at for at, (_, neurons) in zip(one.asked_at, one.asked, strict=True) if neurons == home]
    rounds = sorted(Counter(vote).items())
    assert rounds[0] == (NOW, 2)
    again = [asked for at, asked in rounds if NOW + 0.1 < at < NOW + 0.4]
    assert again[0] == 2


def test_a_row_that_changes_all_the_time_is_returned_all_the_same() -> None:
    lags = (0.0, 0.02, 0.04)
    many = [*CHUNKS] * 10
    mouths = [learning(lag, 0.05, many) for lag in lags]
    one = world(*mouths)
    for _ in range(5):
        assert one.read(NEURONS[:20]) is not None
        one.run(0.2)
    assert one.now < NOW + 3
    one.run(200)
    assert one.lied == []


def test_who_is_cut_off_for_long_is_called_behind_and_only_late() -> None:
    one = world(knows(0), honest, honest)
    assert right(one.read(NEURONS), NEURONS)
    one.run(58)
    assert one.lied == []
    one.run(10)
    assert {(said.peer, said.behind) for said in one.lied} == {(A, True)}


def test_who_said_something_old_and_then_nothing_is_not_blamed() -> None:
    one = world(in_turn((0, knows(0)), (0.1, silent)), honest, honest)
    assert right(one.read(NEURONS), NEURONS)
    assert one.reader.disputes.opened > 0
    one.run(200)
    assert one.lied == []


def test_who_is_heard_late_with_news_is_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    others = in_turn((0, knows(0)), (25, knows(0, 1)))
    news = in_turn((0, silent), (10, knows(0, 1)))
    one = world(adds, others, others, others, news)
    one.around.replicas = 5
    assert right(one.read(NEURONS), NEURONS, knows(0))
    one.run(200)
    assert {said.peer for said in one.lied} == {A}


# Who was found out.


def test_who_was_found_out_is_not_asked_until_its_time_is_over_and_then_for_longer() -> None:
    one = world(adds, honest, honest, verify=Verify(0.9, SALT))
    one.read(NEURONS)
    one.run(16)
    assert [said.seconds for said in one.lied[:1]] == [60.0]
    found = one.now
    one.asked.clear()
    one.moved = {B, C}
    assert one.read(NEURONS) is None  # rather nothing than what it says
    assert A not in {peer for peer, _ in one.asked}
    one.moved = set()
    assert right(one.read(NEURONS), NEURONS)
    one.run(NOW + 76 - one.now)
    assert one.now > found
    one.lied.clear()
    one.took[A] = 0.0
    one.reader.latencies.took(A, 0.0, one.now)
    assert not right(one.read(NEURONS), NEURONS)  # it is believed again
    one.run(20)
    assert [said.seconds for said in one.lied][:1] == [120.0]


def test_who_lies_once_and_then_tells_the_truth_is_found() -> None:
    one = world(in_turn((0, adds), (0.5 * QUICK, honest)), honest, honest)
    assert right(one.read(NEURONS), NEURONS)
    one.run(20)
    assert {said.peer for said in one.lied} == {A}


def test_who_lies_once_and_then_is_silent_is_found() -> None:
    one = world(in_turn((0, adds), (0.5 * QUICK, silent)), honest, honest)
    assert right(one.read(NEURONS), NEURONS)
    one.run(200)
    assert {(said.peer, said.behind) for said in one.lied} == {(A, False)}


def test_silence_of_all_settles_nothing() -> None:
    alive = 0.5 * QUICK
    late = in_turn((0, honest), (alive, silent))
    one = world(in_turn((0, adds), (alive, silent)), late, silent)
    one.read(NEURONS)
    one.run(200)
    assert one.lied == []
    assert one.reader.disputes.undecided > 0


# Rows that are sampled.


@pytest.mark.parametrize("liar", LIARS)
def test_a_sample_finds_a_liar_after_some_reads_and_then_it_is_bypassed(liar: str) -> None:
    one = world(LIARS[liar], honest, honest, verify=SOME)
    assert not right(one.read(NEURONS), NEURONS)
    for _ in range(10):
        one.read(NEURONS)
        one.run(0.5)
    one.run(64)
    assert {said.peer for said in one.lied} == {A}
    assert right(one.read(NEURONS), NEURONS)


def test_a_liar_is_found_too_when_it_is_asked_second() -> None:
    one = world(honest, honest, adds, verify=SOME)
    for _ in range(10):
        assert right(one.read(NEURONS), NEURONS)
        one.run(0.5)
    one.run(20)
    assert {said.peer for said in one.lied} == {C}


def test_an_answer_does_not_wait_for_the_sample() -> None:
    one = world(honest, honest, honest, verify=Verify(0.5, SALT))
    one.took[B] = one.took[C] = 1.0
    assert right(one.read(NEURONS), NEURONS)
    assert one.now == pytest.approx(NOW + QUICK)
    assert one.reader.compared == 0
    one.run(2)
    assert 0.3 < one.reader.compared / len(NEURONS) < 0.7
    assert sum(len(neurons) for _, neurons in one.asked) == len(NEURONS) + one.reader.compared
    assert len(one.asked) <= 3  # one question a peer, for all shards
    for _ in range(9):
        one.read(NEURONS)
    assert {peer for peer, _ in one.asked} == {A, B, C}


def test_a_sample_costs_its_share() -> None:
    one = world(honest, honest, honest, verify=Verify(0.05, SALT))
    for _ in range(40):
        one.read(NEURONS)
    one.run(5)
    assert 0.03 < one.reader.compared / (40 * len(NEURONS)) < 0.07


def test_alone_nobody_is_compared() -> None:
    one = world(honest, verify=Verify(0.9, SALT))
    assert right(one.read(NEURONS), NEURONS)
    one = world(knows(0), honest, verify=Verify(0.9, SALT))
    one.around.capacities = {B: 1 << 30}
    one.moved = {B}
    assert right(one.read(NEURONS), NEURONS, knows(0))  # a former owner
    assert [peer for peer, _ in one.asked] == [B, A]
    assert one.reader.compared == 0
    one.around.capacities = {A: 1 << 30, B: 1 << 30}
    one.around.unreachable = {B}
    assert right(one.read(NEURONS), NEURONS, knows(0))
    assert one.reader.compared == 0


def test_who_has_no_answer_to_a_comparison_is_not_blamed() -> None:
    one = world(honest, silent, silent, verify=Verify(0.9, SALT))
    assert right(one.read(NEURONS), NEURONS)
    one.run(100)
    assert (one.lied, one.reader.disputes.opened) == ([], 0)


def test_there_are_only_so_many_disputes() -> None:
    one = world(adds, honest, honest)
    for neuron in NEURONS[: 2 * MOST_DISPUTES]:
        one.read([neuron])
    assert len(one.reader.disputes) <= MOST_DISPUTES
    one.run(200)
    assert one.reader.idle
