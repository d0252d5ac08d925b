"""What is said of bounds, reckoned by hand."""

import os

from giaann_p2p.swarm.wire.prompt_messages import Cost
from tests.benchmarks.swarm.bound import answer, processor
from tests.benchmarks.swarm.said import Said
from tests.benchmarks.swarm.usage import Usage, between, processor_time, together


def test_processor_time_tells_how_many_a_second_the_cores_allow() -> None:
    usage = Usage({"storage": 1.0, "compute": 2.99, "bootstrap": 0.01}, queued=0.5)
    assert processor(usage, 1000, 4.0, "sentence", cores=2) == (
        "processor time 4 ms a sentence (compute 2.99 ms, storage 1 ms): 2 cores allow 500"
        " sentences/s, of which 250 came; busy for 50% of the time; waiting for a core 0.5 ms"
    )


def test_an_answers_time_is_taken_apart() -> None:
    token = Cost(micros=2000, waited=1500, rows=4, kept=2, trips=1)
    said = Said(
        tokens=20,
        answers=[1.99, 2.01],
        costs=[token, Cost(micros=1000)] * 10,
        begun=[Cost(micros=10_000), Cost(micros=20_000)],
    )
    assert answer(said, 0.0015) == (
        "an answer of 10 tokens takes 2,000 ms: 15 ms to take the prompt in, 15 ms to find its"
        " tokens, of these 7.5 ms waiting for rows (0.50 round trips a token, of 1.5 ms each),"
        " 1,970 ms between who asks and who answers"
    )


def test_what_was_taken_meanwhile_leaves_out_what_was_before() -> None:
    before = Usage({"client": 1.0, "p2pd": 2.0}, 1.0)
    after = Usage({"client": 1.5, "p2pd": 1.0, "storage": 0.25}, 1.5)
    meanwhile = between(before, after)
    assert meanwhile == Usage({"client": 0.5, "p2pd": 0.0, "storage": 0.25}, 0.5)
    assert meanwhile.whole == 0.75
    both = together([meanwhile, Usage({"client": 1.0}, 2.0)])
    assert both == Usage({"client": 1.5, "p2pd": 0.0, "storage": 0.25}, 2.5)


def test_processor_time_grows_and_nobodys_is_none() -> None:
    first = processor_time(os.getpid())
    sum(range(1_000_000))
    assert processor_time(os.getpid()) > first > (0.0, 0.0)
    assert processor_time(1 << 30) == (0.0, 0.0)


def test_what_was_said_is_added_up() -> None:
    first = Said(1.0, 2, ["a b"], [0.1], [0.6], [0.5], [Cost(rows=3, kept=1, trips=2), Cost()], [])
    first.add(Said(3.0, 1, ["c"], [0.2], [0.7], [], [Cost(rows=1, kept=1)], [Cost(trips=1)]))
    assert (first.tokens, first.rate, first.texts) == (3, 0.75, ["a b", "c"])
    assert (first.first, first.answers, first.token_seconds) == ([0.1, 0.2], [0.6, 0.7], [0.5])
    assert (first.at_hand, first.most_trips, len(first.begun)) == (0.5, 2, 1)
    assert round(first.trips, 6) == round(2 / 3, 6)
