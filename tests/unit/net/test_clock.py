"""Time that is made up: quick, in order, and honest about waiting for nothing."""

import asyncio
import random

import pytest

from giaann_p2p.net.clock import Clock, Deadlock, VirtualLoop, run


def test_hours_pass_at_once_and_in_order() -> None:
    woken: list[tuple[float, str]] = []

    async def sleeper(name: str, seconds: float) -> None:
        for _ in range(3):
            await asyncio.sleep(seconds)
            woken.append((asyncio.get_running_loop().time(), name))

    async def main() -> None:
        await asyncio.gather(sleeper("slow", 7200), sleeper("quick", 2400))

    run(main())
    assert woken == [
        (2400, "quick"),
        (4800, "quick"),
        (7200, "slow"),
        (7200, "quick"),
        (14400, "slow"),
        (21600, "slow"),
    ]


def test_waiting_for_nothing_is_an_error() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match="no event is left that could wake one"):
        run(main())


def test_a_timeout_ends_in_made_up_time() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(86400):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run(main()) == pytest.approx(86400)


def test_the_work_of_threads_is_done_on_the_spot() -> None:
    async def main() -> tuple[int, str]:
        loop = asyncio.get_running_loop()
        assert repr(loop) == "<VirtualLoop: 0.000 s>"
        with pytest.raises(ValueError, match="invalid literal"):
            await asyncio.to_thread(int, "x")
        return await loop.run_in_executor(None, int, "7"), type(loop).__name__

    assert run(main()) == (7, "VirtualLoop")


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


def test_timers_of_loops_that_share_a_clock_come_in_order() -> None:
    clock, happened = Clock(), list[str]()
    one, other = VirtualLoop(clock), VirtualLoop(clock)
    one.call_later(1, happened.append, "a")
    other.call_later(1, happened.append, "b")
    one.call_later(1, happened.append, "c")
    one.call_later(0.5, happened.append, "never").cancel()
    for loop, names in ((one, ["a"]), (other, ["a", "b"]), (one, ["a", "b", "c"])):
        while happened != names:
            loop._run_once()
    assert (one.time(), other.time()) == (1, 1)
