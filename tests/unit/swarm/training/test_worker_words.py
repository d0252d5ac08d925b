"""A learned chunk is pushed when its coordinator says so; one that owes that gets no slots."""

import pytest

from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Push, Refusal
from giaann_p2p.swarm.wire.training_messages import BeatAck, LearnAck, PushOrder
from giaann_p2p.swarm.wire.voucher import vouched, words_of
from tests.helpers_swarm import (
    AUTHORS,
    JOB,
    LESSONS,
    MESSAGES,
    NOW,
    OTHER_JOB,
    SWARM_ID,
    A,
    B,
    C,
    D,
)
from tests.unit.swarm.training.helpers_worker import FULL, Working, beat, brings, push


def test_what_is_learned_waits_for_the_word_of_its_coordinator() -> None:
    one = Working()
    one.brings = False
    one.order(1)
    one.computed(1)
    assert one.of(A) == []
    assert one.of(C) == [beat([1], waiting=[1])]
    one.answer(C, brings(1))
    assert one.of(A) == one.of(B) == [push(1)]
    assert one.of(C) == []


def test_it_brings_the_words_of_all_who_came_to_the_same() -> None:
    one = Working()
    one.brings = False
    one.order(1)
    one.computed(1)
    root = LESSONS.tree(1).root
    both = [vouched(author, SWARM_ID, JOB, 1, root) for author in AUTHORS[:2]]
    one.answer(C, BeatAck([], [PushOrder(1, both)]))
    (told,) = one.of(A)
    assert isinstance(told, Push)
    assert told.seal.words == words_of(both)


def test_what_others_are_to_learn_first_is_left_and_its_slot_is_free() -> None:
    one = Working(slots=1)
    one.brings = False
    one.order(1)
    one.computed(1)
    assert one.worker.free == 0
    one.heard(C, 1)
    assert one.worker.free == 1
    one.tick(NOW + 99)
    assert one.calls == []
    assert not one.worker.untold


@pytest.mark.parametrize("answer", [None, *(m for m in MESSAGES if not isinstance(m, BeatAck))])
def test_a_word_is_asked_for_until_it_is_given_unless_nobody_leads_the_job(
    answer: Message | None,
) -> None:
    one = Working()
    one.brings = False
    one.order(1)
    one.computed(1)
    one.answer(C, answer)
    assert one.of(A) == []
    one.tick(NOW + 3)
    if isinstance(answer, Refusal):
        assert one.of(C) == []
        assert one.worker.free == 2
    else:
        assert one.of(C) == [beat([1], waiting=[1])]


def test_who_leaves_waits_for_no_word_of_one_that_is_silent() -> None:
    one = Working()
    one.brings = False
    one.order(1)
    one.computed(1)
    one.worker.leave()
    assert one.worker.untold
    one.answer(C, None)
    assert (one.worker.busy, one.worker.untold) == (0, False)


def test_a_word_on_what_is_not_here_is_no_harm() -> None:
    one = Working()
    one.order(1)
    one.tick(NOW + 3)
    one.answer(C, brings(1, 2, 3))
    assert one.of(A) == []
    assert one.learning == [(JOB, 1)]


def test_who_leads_the_job_next_says_the_word() -> None:
    one = Working()
    one.brings = False
    one.order(1, C)
    one.computed(1)
    one.answer(C, None)
    one.order(1, D)
    assert one.learning == [(JOB, 1)]
    assert one.of(D) == [beat([1], waiting=[1])]
    one.answer(D, brings(1))
    assert one.of(A) == [push(1)]
    one.stored()
    assert one.of(D) == [beat([], [1])]


OWED = Refusal("order first whether to push or drop the chunks that were learned for you")


def hoarded(slots: int = 2) -> Working:
    """Return a worker all of whose slots are C's, which never says a word."""
    one = Working(slots)
    one.brings = False
    for number in range(slots):
        assert one.order(number) == LearnAck()
        one.computed(number)
    return one


def test_who_says_no_word_keeps_no_slot_from_who_has_fewer() -> None:
    one = hoarded()
    assert one.order(7, D, OTHER_JOB, NOW + 5) == FULL  # it may still say it
    assert one.order(7, D, OTHER_JOB, NOW + 5.1) == LearnAck()
    assert one.learning[2:] == [(OTHER_JOB, 7)]
    assert one.order(8, D, OTHER_JOB, NOW + 5.1) == FULL  # of two slots each has one
    one.answer(C, None)
    one.tick(NOW + 9)
    assert one.of(C) == [beat([1], waiting=[1])]  # the first one made place
    one.answer(C, brings(0, 1))
    assert one.of(A) == [push(1)]


def test_who_owes_a_word_gets_no_more_slots_though_some_are_free() -> None:
    one = Working(slots=2)
    one.brings = False
    one.order(1)
    one.computed(1)
    assert one.order(2, now=NOW + 5.1) == OWED
    assert one.order(2, C, OTHER_JOB, NOW + 5.1) == OWED
    assert one.order(2, D, now=NOW + 5.1) == LearnAck()
    one.heard(C, 1)
    assert one.order(3, now=NOW + 5.1) == LearnAck()


def test_what_no_owner_takes_keeps_no_slot_from_others() -> None:
    one = Working(slots=1)
    one.order(1)
    one.computed(1)
    one.answer(A, Refusal("two have to stand for this"))
    one.answer(B, Refusal("two have to stand for this"))
    assert one.order(7, D, OTHER_JOB, NOW + 5.1) == LearnAck()
    one.tick(NOW + 99)
    assert one.of(A) == one.of(B) == []  # nor is it pushed for ever
    assert [call.peer for call in one.calls] == [D]  # C wants nothing else


def test_what_is_being_learned_makes_no_place() -> None:
    one = Working(slots=1)
    one.order(1)
    assert one.order(7, D, OTHER_JOB, NOW + 60) == FULL
    assert one.stopped == []
