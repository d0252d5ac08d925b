"""A compute peer at work, between coordinators and storage peers of every temper."""

import pytest

from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Pushed, Refusal
from giaann_p2p.swarm.wire.training_messages import Beat, BeatAck, LearnAck
from tests.helpers_swarm import JOB, MESSAGES, NOW, OTHER_JOB, A, B, C, D
from tests.unit.swarm.training.helpers_worker import (
    ALL,
    FULL,
    TEXT,
    Working,
    beat,
    brings,
    push,
    pushed,
)


def test_a_chunk_is_learned_brought_to_its_owners_and_told_of() -> None:
    one = Working()
    assert one.order(7) == LearnAck()
    assert one.learning == [(JOB, 7)]
    assert one.texts == [TEXT]
    assert one.calls == []
    one.computed(7)
    assert one.of(A) == one.of(B) == [push(7)]
    one.answer(A, Pushed(ALL))
    assert one.of(C) == []
    one.answer(B, Pushed(ALL))
    assert one.of(C) == [beat([], [7])]  # at once
    one.heard(C)
    one.tick(NOW + 100)
    assert one.calls == []  # C has no more to be told


def test_it_takes_as_many_chunks_as_it_has_slots() -> None:
    one = Working(slots=2)
    assert one.worker.free == 2
    assert [one.order(1), one.order(2, D, OTHER_JOB), one.order(3)] == [
        LearnAck(),
        LearnAck(),
        FULL,
    ]
    assert one.worker.free == 0
    one.computed(1)
    assert one.order(3) == FULL  # it is being pushed
    one.stored()
    assert one.worker.free == 1
    assert one.order(3) == LearnAck()
    assert one.learning == [(JOB, 1), (OTHER_JOB, 2), (JOB, 3)]


def test_nothing_is_kept_of_orders_that_are_refused() -> None:
    one = Working(slots=1)
    one.order(1)
    for number in range(20):
        assert one.order(2, D, bytes([number]) * 16) == FULL
    one.tick(NOW + 3)
    assert [call.peer for call in one.calls] == [C]


def test_an_order_that_comes_twice_is_one() -> None:
    one = Working(slots=1)
    assert [one.order(1), one.order(1)] == [LearnAck(), LearnAck()]
    one.computed(1)
    assert one.order(1) == LearnAck()
    one.stored()
    assert one.order(1) == LearnAck()  # C has not heard yet that it is done
    assert one.learning == [(JOB, 1)]
    assert one.of(C) == [beat([], [1])]
    one.heard(C)
    assert one.order(1) == LearnAck()
    assert one.learning == [(JOB, 1), (JOB, 1)]  # C has heard, and wants it all the same


def test_two_that_want_the_same_chunk_get_it_for_one_slot() -> None:
    one = Working(slots=1)
    assert [one.order(1, C), one.order(1, D), one.order(2, D)] == [LearnAck(), LearnAck(), FULL]
    one.computed(1)
    assert one.order(1, D) == LearnAck()
    one.stored()
    assert one.of(C) == one.of(D) == [beat([], [1])]
    assert one.learning == [(JOB, 1)]
    assert one.worker.free == 1


def test_the_same_number_of_two_jobs_is_two_chunks() -> None:
    one = Working()
    one.order(1, C)
    one.order(1, C, OTHER_JOB)
    assert one.learning == [(JOB, 1), (OTHER_JOB, 1)]
    one.computed(1)
    one.stored()
    assert one.of(C) == [beat([], [1])]
    one.tick(NOW + 3)
    assert one.of(C) == [beat([], [1]), Beat(OTHER_JOB, [1], [], [])]


def test_who_comes_to_a_chunk_that_is_pushed_waits_for_it() -> None:
    one = Working()
    one.order(1, C)
    one.computed(1)
    assert one.order(1, D) == LearnAck()
    one.stored()
    assert one.of(D) == [beat([], [1])]
    assert one.learning == [(JOB, 1)]


def test_what_fails_is_told_at_once_with_the_reason_to_all_that_want_it() -> None:
    one = Working(slots=2)
    one.order(1, C)
    one.order(1, D)
    one.order(2, D)
    one.computed(1, "out of memory")
    assert one.of(C) == [beat([], [], {1: "out of memory"})]
    assert one.of(D) == [beat([2], [], {1: "out of memory"})]
    assert one.worker.free == 1
    one.heard(C)
    one.heard(D)
    assert one.calls == []
    assert one.order(1) == LearnAck()
    assert one.learning == [(JOB, 1), (JOB, 2), (JOB, 1)]


def test_a_long_reason_is_cut_so_that_it_can_be_told() -> None:
    one = Working()
    one.order(1)
    one.computed(1, "w" * 10_000)
    assert one.of(C) == [beat([], [], {1: "w" * 200})]


def test_what_is_ordered_again_has_not_failed_any_longer() -> None:
    one = Working()
    one.order(1)
    one.computed(1, "no")
    one.answer(C, None)
    one.order(1)
    one.tick(NOW + 3)
    assert one.of(C) == [beat([1])]


@pytest.mark.parametrize("answer", [None, *(m for m in MESSAGES if not isinstance(m, BeatAck))])
def test_it_is_told_again_until_it_is_heard(answer: Message | None) -> None:
    one = Working()
    for chunk in (1, 2):
        one.order(chunk)
    one.computed(1)
    one.stored()
    one.computed(2, "no")
    told = [beat([2], [1]), beat([], [1], {2: "no"})]
    for turn in range(5):
        assert one.of(C) == [told[min(turn, 1)]]
        one.answer(C, answer, NOW + 3 * turn)
        one.tick(NOW + 3 * turn + 2.9)
        assert one.calls == []
        one.tick(NOW + 3 * turn + 3)
    one.heard(C, now=NOW + 15)
    one.tick(NOW + 99)
    assert one.calls == []


def test_it_tells_every_few_seconds_what_it_is_at() -> None:
    one = Working()
    one.order(2)
    one.order(1)
    one.tick(NOW + 2.9)
    assert one.calls == []
    for turn in range(1, 4):
        one.tick(NOW + 3 * turn)
        assert one.of(C) == [beat([1, 2])]
        assert one.calls[0].timeout == 4.0
        one.tick(NOW + 3 * turn + 0.1)
        assert len(one.calls) == 1
        one.heard(C, now=NOW + 3 * turn + 1)
        assert one.calls == []


def test_what_happens_while_it_tells_is_told_behind_it() -> None:
    one = Working(slots=3)
    one.brings = False
    for chunk in (1, 2, 3):
        one.order(chunk)
    one.tick(NOW + 3)
    one.computed(1)
    one.computed(2, "no")
    assert one.of(C) == [beat([1, 2, 3])]  # one at a time
    one.tick(NOW + 9)
    assert len(one.calls) == 1
    one.heard(C)
    assert one.of(C) == [beat([1, 3], [], {2: "no"}, [1])]
    one.answer(C, brings(1))
    assert one.of(A) == [push(1)]
    one.stored()
    assert one.of(C) == [beat([3], [1])]
    one.heard(C)
    one.tick(NOW + 9)
    assert one.of(C) == [beat([3])]


def test_what_fails_while_it_tells_is_told_behind_it() -> None:
    one = Working()
    one.order(1)
    one.tick(NOW + 3)
    one.computed(1, "no")
    one.heard(C)
    assert one.of(C) == [beat([], [], {1: "no"})]


def test_a_chunk_that_is_left_is_pushed_no_further() -> None:
    one = Working(slots=1)
    one.order(1)
    one.computed(1)
    one.tick(NOW + 3)
    one.heard(C, 1, 5, now=NOW + 3)
    assert one.worker.free == 1
    assert one.stopped == []  # it was learned by then
    one.answer(A, Pushed(ALL))
    one.answer(B, None)
    one.tick(NOW + 50)
    assert one.calls == []


def test_a_chunk_that_is_left_while_it_is_learned_is_not_pushed() -> None:
    one = Working(slots=1)
    one.order(1)
    one.tick(NOW + 3)
    one.heard(C, 1, now=NOW + 3)
    assert one.worker.free == 1
    assert one.stopped == [(JOB, 1)]
    one.computed(1)  # all the same
    one.computed(1, "no")
    one.tick(NOW + 50)
    assert one.calls == []


def test_a_chunk_that_is_left_and_ordered_again_is_brought_once() -> None:
    one = Working(slots=1)
    one.order(1)
    one.tick(NOW + 3)
    one.heard(C, 1, now=NOW + 3)
    assert one.order(1, now=NOW + 4) == LearnAck()
    one.computed(1)
    one.computed(1)
    assert len(one.of(A)) == 1
    one.stored()
    one.computed(1)
    assert one.of(A) == []
    assert one.of(C) == [beat([], [1])]


def test_a_chunk_that_another_wants_is_not_given_up() -> None:
    one = Working(slots=1)
    one.order(1, C)
    one.order(1, D)
    one.tick(NOW + 3)
    one.heard(C, 1, now=NOW + 3)
    one.heard(D, now=NOW + 3)
    assert one.worker.free == 0
    assert one.stopped == []
    one.computed(1, now=NOW + 4)
    one.tick(NOW + 7)
    assert one.of(C) == []  # it has gone its way
    assert one.of(D) == [beat([1])]
    one.stored(NOW + 6)
    one.heard(D, 1, now=NOW + 6)  # too late
    assert one.of(D) == [beat([], [1])]
    assert one.of(C) == []


def test_what_is_left_is_stopped_also_when_there_is_more_to_tell() -> None:
    one = Working(slots=2)
    one.order(1)
    one.order(2)
    one.tick(NOW + 3)
    one.computed(2, "no", now=NOW + 3)  # while the beat is on its way
    one.heard(C, 1, now=NOW + 3)
    assert one.stopped == [(JOB, 1)]
    assert one.of(C) == [beat([], [], {2: "no"})]


@pytest.mark.parametrize("is_learned", [False, True])
def test_nobody_gets_the_result_of_anothers_text(is_learned: bool) -> None:
    one = Working(slots=2)
    one.order(1, D, text=["Bees make steel."])
    one.brings = False
    if is_learned:
        one.computed(1)
    answer = one.order(1, C)
    assert isinstance(answer, Refusal)
    assert answer.is_busy
    assert one.of(C) == []
    assert one.order(1, D, text=["Bees make steel."]) == LearnAck()


def test_another_text_under_the_same_name_takes_turns_once_it_is_late() -> None:
    one = Working(slots=1)
    one.brings = False  # D does not decide
    one.order(1, D, text=["Bees make steel."])
    one.computed(1)
    assert one.order(1, C, now=NOW + 6) == LearnAck()
    assert one.texts == [["Bees make steel."], TEXT]


def test_nobody_stops_with_another_text_what_is_being_pushed() -> None:
    one = Working(slots=2)
    one.order(1, C)
    one.computed(1)
    pushing = one.of(A)
    assert pushing == [push(1)]
    answer = one.order(1, D, now=NOW + 60, text=["Bees make steel."])
    assert isinstance(answer, Refusal)
    one.answer(A, Pushed(ALL))
    one.answer(B, Pushed(ALL))
    assert one.of(C) == [beat([], [1])]


def test_none_can_leave_what_is_anothers() -> None:
    one = Working(slots=2)
    one.order(1, C)
    one.order(2, D)
    one.tick(NOW + 3)
    one.heard(D, 1, now=NOW + 3)
    one.heard(C, 2, now=NOW + 3)
    one.tick(NOW + 6)
    assert (one.of(C), one.of(D)) == ([beat([1])], [beat([2])])


def test_none_can_leave_what_one_wanted_that_is_gone() -> None:
    one = Working(slots=2)
    one.order(1, C)
    one.tick(NOW + 121)
    one.order(2, D, now=NOW + 121)
    one.tick(NOW + 124)
    one.heard(D, 1, now=NOW + 124)
    assert one.stopped == []


def test_who_is_silent_for_long_is_forgotten_and_what_it_wanted_is_finished() -> None:
    one = Working(slots=3)
    one.order(1)
    one.order(2)
    one.order(3)
    one.computed(1)
    one.brings = False
    one.computed(3)
    told = 0
    for now in range(1, 121):
        one.tick(NOW + now)
        while one.of(C):
            told += 1
            one.answer(C, None, NOW + now)
    assert told == 41  # every three seconds, and at once what is learned
    one.tick(NOW + 120.5)
    one.tick(NOW + 200)
    assert one.of(C) == []
    assert one.worker.free == 1  # one is learned, one on its way, and one nobody waits for
    one.computed(2, now=NOW + 201)
    assert one.worker.free == 2
    assert one.of(A) == [push(1)]
    one.stored(NOW + 202)
    assert one.calls == []
    assert one.worker.free == 3


def test_who_resumes_the_job_of_one_that_is_gone_finds_its_chunk_on_its_way() -> None:
    one = Working(slots=1)
    one.order(1, C)
    one.tick(NOW + 121)
    assert one.order(1, D, now=NOW + 130) == LearnAck()
    assert one.learning == [(JOB, 1)]
    one.computed(1, now=NOW + 131)
    one.stored(NOW + 131)
    assert (one.of(C), one.of(D)) == ([], [beat([], [1])])


def test_a_word_at_least_every_two_minutes_is_enough() -> None:
    for again in (True, False):
        one = Working(slots=1)
        one.order(1)
        one.tick(NOW + 100)
        if again:
            one.answer(C, None, NOW + 100)
            one.order(1, now=NOW + 100)
        else:
            one.heard(C, now=NOW + 100)
        one.tick(NOW + 219)
        assert one.of(C) == [beat([1])]
        one.answer(C, None, NOW + 219)
        one.tick(NOW + 220.5)
        one.tick(NOW + 230)
        assert one.of(C) == []


def test_an_answer_that_comes_when_its_coordinator_is_forgotten_is_nothing() -> None:
    one = Working(slots=1)
    one.order(1)
    one.tick(NOW + 3)
    one.tick(NOW + 121)
    one.heard(C, 1, now=NOW + 122)
    assert one.calls == []
    assert one.worker.free == 0


def test_if_owners_cannot_be_reached_it_goes_on_trying_and_telling() -> None:
    one = Working(slots=1)
    one.order(1)
    one.computed(1)
    pushes = 0
    for now in range(60):
        one.tick(NOW + now)
        for peer in (A, B):
            while one.of(peer):
                pushes += 1
                one.answer(peer, None, NOW + now)
        while one.of(C):
            assert one.of(C) == [beat([1])]
            one.heard(C, now=NOW + now)
    assert pushes >= 16
    one.tick(NOW + 70)
    one.stored(NOW + 70)
    one.heard(C, now=NOW + 70)
    (told,) = one.of(C)
    assert isinstance(told, Beat)
    assert [learned.chunk for learned in told.done] == [1]
    assert told.done[0].pushed == (pushes + 2) * pushed(1)


def test_who_leaves_takes_no_more_and_is_done_when_all_is_told() -> None:
    one = Working(slots=3)
    one.order(1)
    one.order(2)
    one.worker.leave()
    assert one.order(3) == Refusal("this peer is leaving")
    assert one.order(1, D) == LearnAck()  # it is on its way anyway
    one.computed(1)
    assert (one.worker.busy, one.worker.untold) == (2, False)
    one.stored()
    one.computed(2, "no")
    assert (one.worker.busy, one.worker.untold) == (0, True)
    one.heard(C)
    assert one.worker.untold
    one.heard(C)
    one.heard(D)
    assert not one.worker.untold


def test_answers_to_nothing_are_nothing() -> None:
    one = Working()
    one.order(1)
    for message in (*MESSAGES, None):
        assert one.worker.answered(99, message, NOW) == []
    one.computed(5)  # nobody asked for it
    assert one.calls == []
