"""Chunks that several workers learn, and workers whose word is not believed."""

from giaann_p2p.swarm.training.chunks import ChunkState
from giaann_p2p.swarm.wire.messages import Refusal
from giaann_p2p.swarm.wire.training_messages import (
    Beat,
    Result,
)
from giaann_p2p.swarm.wire.voucher import vouched
from tests.helpers_swarm import (
    AUTHORS,
    JOB,
    NOW,
    SWARM_ID,
    A,
    B,
    C,
)
from tests.unit.swarm.training.test_coordinator import EACH, FALSE, STRANGER, TRUE, Leading, P


def test_a_chunk_that_is_checked_goes_to_another() -> None:
    one = Leading(1, share=1.0)
    assert one.seen({P[0]: 1, P[1]: 1}) == [(min(P[:2]), 0)]
    first = P.index(min(P[:2]))
    assert one.came(first) == ([], [(P[1 - first], 0)])
    assert one.came(1 - first) == ([0], [])
    one.beat(P[1 - first], done=[0])
    assert len(one.over) == 1
    assert one.liars == []


def test_who_is_alone_needs_no_check_and_gets_its_chunk_again_if_others_went() -> None:
    one = Leading(1, share=1.0)
    one.seen({P[0]: 1})
    assert one.came(0) == ([0], [])
    one = Leading(1, share=1.0)
    one.seen({P[0]: 1})
    one.seen({P[0]: 1, P[1]: 1})
    assert one.came(0) == ([], [(P[1], 0)])
    assert one.seen({P[0]: 1}) == [(P[0], 0)]
    assert one.came(0) == ([0], [])


def test_where_more_have_to_agree_one_alone_waits_for_others() -> None:
    one = Leading(1, redundancy=2)
    one.seen({P[0]: 2})
    assert one.came(0) == ([], [])
    assert one.tick(NOW + 50) == []
    assert one.seen({P[0]: 2, P[1]: 1}, NOW + 50) == [(P[1], 0)]
    assert one.came(1, now=NOW + 51) == ([0], [])


def test_a_liar_is_found_and_learns_no_more() -> None:
    one = Leading(1, redundancy=2)
    ((peer, _),) = one.seen(EACH)
    liar = P.index(peer)
    ((peer, _),) = one.came(liar, root=FALSE)[1]
    ((third, _),) = one.came(P.index(peer))[1]
    assert {P[liar], peer, third} == {*EACH}
    assert one.came(P.index(third)) == ([0], [])
    assert one.liars == [P[liar]]
    assert one.seen(EACH, NOW + 1) == []
    assert one.beat(P[liar], working=[0]) == (STRANGER, [])
    one.beat(third, done=[0])
    assert len(one.over) == 1


def test_it_is_noted_who_said_first_that_a_chunk_is_with_its_owners() -> None:
    one = Leading(5, committed=[4])
    one.seen({A: 2, B: 2})
    one.beat(A, done=[0, 3])
    one.beat(B, done=[0, 1, 4])
    one.beat(C, done=[2])
    assert {peer: list(done) for peer, done in one.coordinator.done.items()} == {A: [0, 3], B: [1]}


def test_who_brought_nothing_learns_no_more() -> None:
    one = Leading(3)
    one.trust.brought_nothing(A)
    assert one.seen({A: 1, B: 1}) == [(B, 0)]
    one.trust.brought_nothing(B)
    assert one.seen({A: 1, B: 1, C: 1}) == [(C, 0)]
    assert one.beat(B, working=[0]) == (STRANGER, [])
    assert B not in one.trust.liars


def test_two_who_do_not_agree_are_not_believed_and_it_is_told() -> None:
    one = Leading(1, share=1.0)
    orders = one.seen({P[0]: 1, P[1]: 1})
    now, tried = NOW, 0
    while not one.over:
        for peer, _ in orders:
            number, tried = P.index(peer), tried + 1
            bring, orders = one.came(number, root=(TRUE, FALSE)[number], now=now)
            assert bring == []
        now += 1
        orders = orders or one.tick(now)
        assert now < NOW + 100
    assert 4 <= tried <= 10
    assert "different results" in one.over[0].given_up[0][0]
    assert one.liars == []


def test_a_word_that_is_not_signed_is_refused() -> None:
    one = Leading(1)
    one.seen({P[0]: 1})
    told = Result(0, TRUE, vouched(AUTHORS[1], SWARM_ID, JOB, 0, TRUE))
    answer, acts = one.coordinator.beat(P[0], Beat(JOB, [0], [], [], [told]), NOW)
    assert answer == Refusal("voucher: this result is not signed by the peer that reports it")
    assert acts == []
    assert one.all(ChunkState.LEASED) == [0]


def test_a_word_on_a_chunk_that_is_anothers_is_left() -> None:
    one = Leading(2)
    one.seen({P[0]: 1, P[1]: 1})
    first = P.index(min(P[:2]))
    assert one.came(first, 1) == ([], [])
    assert one.came(first, 0) == ([0], [])
