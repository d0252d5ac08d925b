"""Asking a loop in another thread."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from queue import SimpleQueue

import pytest

from giaann_p2p.client.portal import Portal
from giaann_p2p.errors import UsageError


@pytest.fixture
def portal() -> Iterator[Portal]:
    portal = Portal()
    yield portal
    portal.close()


class Slow:
    """Work that takes until it is cancelled, and notes its end."""

    def __init__(self) -> None:
        self.ended = False
        self.go_on = asyncio.Event()

    async def work(self) -> None:
        """Take for ever; call for an interruption first."""
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            self.ended = True

    async def items(self) -> AsyncIterator[int]:
        """Give one, and no more."""
        yield 1
        await self.go_on.wait()
        await self.work()

    async def on(self) -> None:
        """Let it give no more."""
        self.go_on.set()


async def _failing() -> None:
    raise ValueError("it failed")


async def _three() -> AsyncIterator[int]:
    for number in range(3):
        await asyncio.sleep(0)
        yield number


def test_it_returns_what_comes_of_it(portal: Portal) -> None:
    async def where() -> int:
        return threading.get_ident()

    assert portal.run(where()) not in (0, threading.get_ident())
    assert list(portal.iterate(_three())) == [0, 1, 2]


def test_it_raises_what_goes_wrong(portal: Portal) -> None:
    async def some() -> AsyncIterator[int]:
        yield 1
        await _failing()

    with pytest.raises(ValueError, match="it failed"):
        portal.run(_failing())
    found = portal.iterate(some())
    assert next(found) == 1
    with pytest.raises(ValueError, match="it failed"):
        next(found)


@pytest.mark.interrupts
def test_who_is_interrupted_ends_what_was_begun(portal: Portal) -> None:
    slow = Slow()
    with pytest.raises(KeyboardInterrupt):
        portal.run(slow.work())
    assert slow.ended
    slow = Slow()
    found = portal.iterate(slow.items())
    assert next(found) == 1

    def rest() -> None:
        portal.run(slow.on())
        next(found)

    with pytest.raises(KeyboardInterrupt):
        rest()
    found.close()
    assert slow.ended


def test_who_stops_iterating_ends_it(portal: Portal) -> None:
    closed = list[int]()

    async def many() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
                await asyncio.sleep(0.001)
        finally:
            closed.append(1)

    for _ in portal.iterate(many()):
        break
    assert closed == [1]


def test_closing_ends_what_other_threads_wait_for() -> None:
    portal, found, begun = Portal(), SimpleQueue[object](), threading.Semaphore(0)
    ended = list[int]()

    async def endless() -> None:
        begun.release()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            ended.append(1)

    async def items() -> AsyncIterator[int]:
        await endless()
        yield 1

    def wait_for(work: Callable[[], object]) -> None:
        try:
            found.put(work())
        except BaseException as error:  # noqa: BLE001  (the test looks at it)
            found.put(error)

    works = (lambda: portal.run(endless()), lambda: list(portal.iterate(items())))
    for work in works:
        threading.Thread(target=wait_for, args=(work,), daemon=True).start()
    for _ in works:
        assert begun.acquire(timeout=60)
    portal.close()
    for _ in works:
        error = found.get(timeout=60)
        assert isinstance(error, UsageError)
        assert "is closed; join" in str(error)
    assert ended == [1, 1]


def test_an_answer_may_be_ended_after_the_end() -> None:
    portal, closed = Portal(), list[int]()

    async def endless() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            closed.append(1)

    found = portal.iterate(endless())
    assert next(found) == 1
    portal.close()
    found.close()
    assert closed == [1]


def test_closed_it_runs_nothing() -> None:
    portal = Portal()
    portal.close()
    portal.close()
    with pytest.raises(UsageError, match="is closed; join"):
        portal.run(_failing())
