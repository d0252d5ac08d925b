"""What authors may push: newcomers little, all of them together little more, who stands enough."""

import numpy as np
import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.model.columns import Word
from giaann_p2p.model.delta import EMPTY, Delta
from giaann_p2p.model.learn import learn
from giaann_p2p.model.sequence import SequenceBuilder
from giaann_p2p.model.spec import CHUNK
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.replication.push_budget import (
    LEAST,
    MOST,
    MOST_AUTHORS,
    MOST_PARTS,
    MOST_REMEMBERED,
    SENTENCE,
    Bill,
    Purse,
    PushBudget,
    cost_of,
    weight_of,
)
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.wire.actions import Apply, Reply
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import Push, Pushed, Refusal
from giaann_p2p.swarm.wire.shardset import packed
from tests.helpers_swarm import (
    JOB,
    LESSONS,
    NOW,
    RULES,
    SHARDS,
    SPEC,
    TERMS,
    A,
    Around,
    B,
    C,
    Side,
    applied,
    shards,
    store,
)

MINUTE = 60
ALL = list(range(SHARDS))
TEXT = [f"text{n}" for n in range(20)]


def delta_of(*sentences: list[str]) -> Delta:
    builder = SequenceBuilder(SPEC.branches)
    for words in sentences:
        builder.add([Word(text, text, not at % 3, 0, len(text)) for at, text in enumerate(words)])
    return learn(builder.build(), SPEC)


def cost(delta: Delta, chunk: int = CHUNK) -> float:
    """Return what the delta of a chunk of so many sentences costs."""
    return cost_of(weight_of(delta, chunk), chunk)


def push_of(number: int, job: bytes = JOB) -> Push:
    return Push(job, number, b"", b"")


def author(number: int) -> Peer:
    return Peer(number.to_bytes(len(A), "little"))


def try_push(
    budget: PushBudget,
    who: Peer,
    now: float,
    *,
    stands: bool = False,
    cost: float = 64.0,
    push: Push | None = None,
) -> bool:
    """Push a chunk of a job that is here; tell whether it is taken."""
    said = budget.bill(who, stands, push or push_of(1), [applied(0)], now)
    if isinstance(said, Refusal):
        return False
    said._weight = cost * SENTENCE
    said.settle()
    return True


def flood(budget: PushBudget, authors: int, seconds: int, **how: float) -> int:
    """Have so many newcomers push ten times a second each, for so long; count what is taken."""
    steps = [NOW + step / 10 for step in range(10 * seconds)]
    return sum(try_push(budget, author(n), now, **how) for now in steps for n in range(authors))


def test_a_sentence_is_some_steps_of_strength() -> None:
    many = [[f"{word}{n}" for word in TEXT] for n in range(64)]
    assert 32 < cost(delta_of(*many)) < 128
    assert cost(EMPTY) == LEAST


def test_what_repeats_counts_as_often_as_it_does() -> None:
    once, often = delta_of(TEXT), delta_of(*[TEXT] * 64)
    assert often.connections == once.connections
    assert cost(often) > 8 * 64 * float(once.strength.sum()) / (1 << 16) / 5 / SENTENCE
    assert cost(often) <= MOST * CHUNK


def test_a_sentence_costs_the_same_in_a_large_chunk() -> None:
    def text(size: int) -> list[list[str]]:
        return [TEXT[:10] + [f"{word}{n}" for word in TEXT] for n in range(size)]

    small, large = cost(delta_of(*text(64))) / 64, cost(delta_of(*text(512)), 512) / 512
    assert 0.9 * small < large < 1.1 * small
    assert cost(delta_of(*[TEXT] * 512), 512) / 512 == pytest.approx(
        cost(delta_of(*[TEXT] * 64)) / 64
    )


def test_one_newcomer_has_its_rate_and_all_have_twice_that() -> None:
    settings = Settings()
    own, all_ = settings.newcomer_sentences / 64, settings.newcomers_sentences / 64
    assert own <= flood(PushBudget(settings, CHUNK, NOW), 1, MINUTE) <= own + 4
    for authors in (10, 100):
        assert all_ <= flood(PushBudget(settings, CHUNK, NOW), authors, MINUTE) <= all_ + 8


@pytest.mark.slow
def test_poison_that_repeats_gets_through_twice_a_minute() -> None:
    assert flood(PushBudget(Settings(), CHUNK, NOW), 100, 10 * MINUTE, cost=960.0) <= 10 * 2 + 8


def test_who_stands_pays_nothing_for_a_flood() -> None:
    budget = PushBudget(Settings(), CHUNK, NOW)
    flood(budget, 100, MINUTE)
    taken = sum(try_push(budget, B, NOW + MINUTE + n / 9, stands=True) for n in range(9 * MINUTE))
    assert taken == 9 * MINUTE  # 576 sentences a second


def test_one_that_stands_is_bounded_as_well() -> None:
    budget, settings = PushBudget(Settings(), CHUNK, NOW), Settings()
    taken = sum(try_push(budget, B, NOW + n / 82, stands=True) for n in range(82 * MINUTE))
    assert taken <= 1.3 * settings.standing_sentences / 64


def test_new_jobs_have_a_budget_of_their_own() -> None:
    budget, settings = PushBudget(Settings(), CHUNK, NOW), Settings()
    taken = 0
    for step in range(10 * MINUTE):
        push = push_of(0, job=step.to_bytes(16, "little"))
        taken += try_push(budget, author(step), NOW + step / 10, cost=LEAST, push=push)
    assert taken <= 2 * settings.newcomers_jobs


def test_a_refusal_says_when_to_retry() -> None:
    budget = PushBudget(Settings(), CHUNK, NOW)
    while isinstance(said := budget.bill(B, False, push_of(1), [applied(0)], NOW), Bill):
        said._weight = 64.0 * SENTENCE
        said.settle()
    assert said.is_busy
    assert "a newcomer may push 960 sentences and 4 new jobs a minute to this peer" in said.reason
    assert 0 < said.again <= 4.01
    assert f"retry in {said.again:.1f} s" in said.reason
    assert not try_push(budget, B, NOW + said.again / 2)
    assert try_push(budget, B, NOW + said.again + 0.01)


@pytest.mark.parametrize(
    ("chunk", "part", "reserved"),
    [(64, 1.0, 64), (64, 0.01, 64), (128, 0.1, 64), (16_384, 0.5, 8_192), (16_384, 0.01, 2_048)],
)
def test_a_part_of_a_large_chunk_reserves_its_part(
    chunk: int, part: float, reserved: float
) -> None:
    budget = PushBudget(Settings(), chunk, NOW)
    bill = budget.bill(B, True, push_of(1), [applied(0)], NOW, part)
    assert isinstance(bill, Bill)
    purse = budget._authors[B, True].sentences
    assert purse.level(NOW) == purse.most - reserved
    bill._weight = 50.0 * SENTENCE
    bill.settle()
    assert purse.level(NOW) == purse.most - 50.0


def test_all_parts_of_a_large_chunk_may_be_under_way_at_once() -> None:
    budget = PushBudget(Settings(), 16_384, NOW)
    for part in (0.5, 0.3, 0.2):
        assert isinstance(budget.bill(B, True, push_of(1), [applied(0)], NOW, part), Bill)
    assert isinstance(budget.bill(B, True, push_of(2), [applied(0)], NOW, 0.1), Refusal)
    taken = [budget.bill(C, True, push_of(1), [applied(0)], NOW, 0.001) for _ in range(20)]
    assert sum(isinstance(one, Bill) for one in taken) == MOST_PARTS


@pytest.mark.parametrize("chunk", [1024, 16_384])
def test_the_parts_of_a_chunk_cost_at_most_what_it_would_as_a_whole(chunk: int) -> None:
    waits = []
    for parts in (1, 2, MOST_PARTS + 1):
        budget = PushBudget(Settings(), chunk, NOW)
        taken = [
            budget.bill(C, False, push_of(1), [applied(0)], NOW, 1 / parts) for _ in range(parts)
        ]
        bills = [bill for bill in taken if isinstance(bill, Bill)]
        assert bills
        for bill in bills:
            bill._weight = 1e18
            bill.settle()
        waits.append(budget._newcomers.sentences.wait(LEAST, NOW))
    assert max(waits) <= waits[0] * 1.01


def test_a_budget_has_room_for_a_larger_chunk_once_chunks_grow() -> None:
    budget = PushBudget(Settings(), CHUNK, NOW)
    assert isinstance(budget.bill(C, False, push_of(1), [applied(0)], NOW), Bill)
    budget.widen(16_384)
    bill = budget.bill(B, True, push_of(1), [applied(0)], NOW)
    assert isinstance(bill, Bill)
    assert bill._reserved == 16_384
    early = budget.bill(C, False, push_of(2), [applied(0)], NOW)
    assert isinstance(early, Refusal)  # no sentences are given for it
    assert isinstance(budget.bill(C, False, push_of(2), [applied(0)], NOW + 1e6), Bill)
    assert budget._newcomers.sentences.level(NOW + 1e6) == 0


def pushed(budget: PushBudget, who: Peer, job: int, part: float = 0.1) -> bool:
    """Push a part of a job's first chunk to shards without any chunk, at one and the same time."""
    push = push_of(0, job=job.to_bytes(16, "little"))
    return isinstance(budget.bill(who, False, push, [applied()], NOW, part), Bill)


def free() -> PushBudget:
    """Return a budget of which only new jobs are left to be spent."""
    return PushBudget(Settings(newcomer_sentences=1e9, newcomers_sentences=1e9), 1024, NOW)


def test_a_new_job_is_charged_once_however_many_parts_its_first_chunk_has() -> None:
    budget, settings = free(), Settings()
    assert all(pushed(budget, B, 0) for _ in range(50))
    assert budget._newcomers.jobs.level(NOW) == settings.newcomers_jobs - 1
    taken = [pushed(budget, B, job) for job in range(10)]
    assert sum(taken) == settings.newcomer_jobs
    assert all(pushed(budget, B, job) for job in range(10) if taken[job])


def test_a_new_job_is_charged_to_each_author_that_pushes_it() -> None:
    budget, settings = free(), Settings()
    taken = [pushed(budget, author(n), 0) for n in range(40)]
    assert sum(taken) == settings.newcomers_jobs


def test_a_job_that_was_refused_has_not_been_charged() -> None:
    budget, settings = free(), Settings()
    for job in range(20):
        pushed(budget, B, job)
    assert not pushed(budget, B, 19)
    assert budget._newcomers.jobs.level(NOW) == settings.newcomers_jobs - settings.newcomer_jobs


def test_only_the_last_few_jobs_of_an_author_are_remembered() -> None:
    purse = Purse(960.0, 1000.0, CHUNK, NOW)
    jobs = [job.to_bytes(16, "little") for job in range(3 * MOST_REMEMBERED)]
    for job in jobs:
        purse.charge(job)
    assert [job for job in jobs if purse.has_charged(job)] == jobs[-MOST_REMEMBERED:]


@pytest.mark.slow
def test_authors_in_any_number_take_bounded_room() -> None:
    budget = PushBudget(Settings(), CHUNK, NOW)
    assert try_push(budget, A, NOW, stands=True, cost=float(MOST * CHUNK))
    flood(budget, 2 * MOST_AUTHORS, 1)
    assert len(budget._authors) <= MOST_AUTHORS
    assert (A, True) in budget._authors  # not pushed out by newcomers


@pytest.mark.parametrize("rate", ["newcomer_sentences", "standing_jobs"])
def test_rates_are_above_nothing(rate: str) -> None:
    with pytest.raises(UsageError, match="must be above 0"):
        Settings(**{rate: 0.0})


def side_of(settings: Settings) -> Side:
    around = Around(A)
    around.newcomers.add(C)
    side = Side(A, around, store(ALL, [0]), settings=settings)
    side.tick(NOW)
    return side


def asked(side: Side, who: Peer, number: int, now: float = NOW) -> Reply:
    some = shards(*ALL)
    question = Push(JOB, number, packed(some, SHARDS), LESSONS.parcel(number, some))
    side.done.clear()
    side.do(side.core.asked(1, who, question, now), now)
    return side.told(Reply)[-1]


def test_an_owner_holds_newcomers_to_their_budget_and_others_not() -> None:
    side = side_of(Settings(newcomer_sentences=960.0, newcomers_sentences=960.0))
    told = [asked(side, C, number).message for number in range(1, 40)]
    assert isinstance(told[0], Pushed)
    assert isinstance(told[-1], Refusal)
    assert told[-1].again > 0
    assert side.core.budget.refused
    assert all(isinstance(asked(side, B, number).message, Pushed) for number in range(40, 80))


def test_an_owner_makes_room_for_larger_chunks_once_chunks_grow() -> None:
    size = [64]
    checks = TERMS._replace(rules=lambda: RULES._replace(sizes=(size[0],)))
    side = Side(A, Around(A), store(ALL), delta_checks=checks)
    side.tick(NOW)
    asked(side, C, 1)
    assert side.core.budget.chunk == 64
    size[0] = 1024
    asked(side, C, 2)
    assert side.core.budget.chunk == 1024
    assert all(one.sentences.most >= 1024 for one in side.core.budget._authors.values())


def test_the_true_cost_is_charged_when_a_delta_was_unpacked() -> None:
    side = side_of(Settings())
    (apply,) = side.core.asked(
        1, C, Push(JOB, 1, packed(shards(*ALL), SHARDS), LESSONS.parcel(1, shards(*ALL))), NOW
    )
    assert isinstance(apply, Apply)
    purse = side.core.budget._authors[C, False]
    assert purse.sentences.level(NOW) == purse.sentences.most - 64
    unpacked: list[Update] = apply.unpacked()
    side.store.apply(unpacked)
    side.core.stored(apply.number, None, NOW)
    assert np.isclose(purse.sentences.level(NOW), purse.sentences.most - cost(unpacked[0].delta))


def test_the_part_of_a_push_is_that_of_the_shards_held_here() -> None:
    checks = TERMS._replace(rules=lambda: RULES._replace(sizes=(1024,)))
    side = Side(A, Around(A), store(ALL, [0]), delta_checks=checks)
    side.tick(NOW)
    some = shards(0, 1)
    question = Push(JOB, 1, packed(some, SHARDS), LESSONS.parcel(1, some))
    side.core.asked(1, C, question, NOW)
    (purse,) = side.core.budget._authors.values()
    assert purse.sentences.level(NOW) == purse.sentences.most - 512
