"""Virtual time: everything in order, and nothing that is still to come."""

import random

from giaann_p2p.sim.clock import Clock


def test_events_happen_in_the_order_of_their_times_and_then_of_their_coming() -> None:
    clock, happened = Clock(), list[tuple[float, str]]()

    def note(name: str) -> None:
        happened.append((clock.now, name))

    for when, name in [(3, "c"), (1, "a"), (3, "d"), (2, "b")]:
        clock.at(when, lambda name=name: note(name))  # type: ignore[misc]
    clock.run_until(2)
    assert happened == [(1, "a"), (2, "b")]
    assert clock.now == 2
    clock.run_until(10)
    assert happened[2:] == [(3, "c"), (3, "d")]
    assert clock.now == 10


def test_what_was_due_before_happens_now() -> None:
    clock, happened = Clock(), list[float]()
    clock.run_until(5)
    clock.at(1, lambda: happened.append(clock.now))
    clock.run_until(5)
    assert happened == [5]


def test_an_event_may_call_for_others_within_the_time_that_passes() -> None:
    clock, happened = Clock(), list[float]()

    def again() -> None:
        happened.append(clock.now)
        clock.after(2, again)

    clock.after(1, again)
    clock.run_until(6)
    assert happened == [1, 3, 5]


def test_many_events_come_as_if_sorted() -> None:
    clock, happened, rng = Clock(), list[tuple[float, int]](), random.Random(7)
    events = [(rng.randrange(20) / 2, number) for number in range(500)]
    for when, number in events:
        clock.at(when, lambda number=number: happened.append((clock.now, number)))  # type: ignore[misc]
    for end in (2.5, 2.5, 7, 100):
        clock.run_until(end)
    assert happened == sorted(events)
