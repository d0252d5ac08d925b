"""Time that is made up: quick, in order, and honest about waiting for nothing."""

import asyncio

import pytest

from giaann_p2p.net.clock import Deadlock, run


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

    with pytest.raises(Deadlock, match="nothing will ever wake one"):
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
