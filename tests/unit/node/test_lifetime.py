"""Parts that live and end together."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from giaann_p2p.node.lifetime import Lifetime

LOG = logging.getLogger("giaann.test")


class Story:
    """A lifetime, and what happened in it."""

    def __init__(self) -> None:
        self.life = Lifetime(LOG)
        self.told: list[str] = []

    async def part(self, name: str) -> None:
        try:
            self.told.append(f"{name} begins")
            await asyncio.Event().wait()
        finally:
            self.told.append(f"{name} ends")

    async def failing(self) -> None:
        raise ZeroDivisionError("a mistake")

    async def last(self) -> None:
        self.told.append("last words")


def play(story: Callable[[Story], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            await story(Story())
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_its_parts_end_before_its_last_words_and_who_closes_it_waits_for_these() -> None:
    async def story(of: Story) -> None:
        running = asyncio.create_task(of.life.run([of.part("a"), of.part("b")], of.last))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert repr(of.life) == "<Lifetime: 2 parts>"
        of.life.start(of.part("c"))
        await asyncio.sleep(0)
        assert not of.life.is_over
        await of.life.close()
        assert of.life.is_over
        assert of.told[:3] == ["a begins", "b begins", "c begins"]
        assert sorted(of.told[3:6]) == ["a ends", "b ends", "c ends"]
        assert of.told[6:] == ["last words"]
        await running
        assert not of.life.has_failed
        await of.life.close()

    play(story)


def test_what_fails_ends_it_and_is_raised(caplog: pytest.LogCaptureFixture) -> None:
    async def story(of: Story) -> None:
        with pytest.raises(ZeroDivisionError, match="a mistake"):
            await of.life.run([of.part("a"), of.failing()], of.last)
        assert of.life.has_failed
        assert of.told == ["a begins", "a ends", "last words"]
        of.life.fail(ValueError("another one"))
        assert "a mistake" in caplog.text
        assert "another one" not in caplog.text

    play(story)


def test_last_words_that_fail_leave_nobody_waiting() -> None:
    async def story(of: Story) -> None:
        running = asyncio.create_task(of.life.run([of.part("a")], of.failing))
        await asyncio.sleep(0)
        await of.life.close()
        with pytest.raises(ZeroDivisionError):
            await running

    play(story)


def test_who_is_cancelled_ends_in_order() -> None:
    async def story(of: Story) -> None:
        running = asyncio.create_task(of.life.run([of.part("a")], of.last))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert of.told == ["a begins", "a ends", "last words"]
        await of.life.close()

    play(story)


def test_a_part_that_ends_by_itself_ends_nothing() -> None:
    async def story(of: Story) -> None:
        running = asyncio.create_task(of.life.run([of.last(), of.part("a")]))
        for _ in range(3):
            await asyncio.sleep(0)
        assert of.told == ["last words", "a begins"]
        assert repr(of.life) == "<Lifetime: 1 parts>"
        of.life.end()
        await running

    play(story)


def test_what_never_ran_is_closed_at_once() -> None:
    async def story(of: Story) -> None:
        await of.life.close()

    play(story)
