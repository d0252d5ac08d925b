"""A gateway's session with its swarm: kept while a peer is there, and made anew after that."""

import asyncio
import errno
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from giaann_p2p.backoff import Backoff
from giaann_p2p.client.session import Session
from giaann_p2p.errors import GiaannError, UsageError
from giaann_p2p.gateway import held_session
from giaann_p2p.gateway.failures import Unavailable
from giaann_p2p.gateway.held_session import HeldSession


class Swarm:
    """What a session sees of a swarm of one peer."""

    def __init__(self) -> None:
        self.records, self.is_blind, self.answers = [SimpleNamespace(peer=b"a")], False, True
        self.joined, self.called, self.left = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.around, self.lookout = SimpleNamespace(directory=self), self
        self.now, self.looks, self.ends_within = 0.0, 0, 0.0
        self.fault: Exception = GiaannError("nobody answers")
        self.refused = asyncio.Semaphore(0)

    def live(self, now: float) -> list[Any]:
        return self.records

    async def silent_peers(self) -> frozenset[bytes]:
        self.called.set()
        self.looks += 1
        return frozenset() if self.answers else frozenset({b"a"})

    async def is_looked_at(self, times: int) -> None:
        """Return when the session has looked for peers so many times more."""
        for _ in range(times):
            self.called.clear()
            await self.called.wait()

    @asynccontextmanager
    async def join(self) -> AsyncIterator[Session]:
        if not self.answers:
            self.refused.release()
            raise self.fault
        self.joined.set()
        try:
            yield cast("Session", self)
        finally:
            self.left.set()
            await asyncio.sleep(self.ends_within)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_session, "_ALONE", 0.01)
    monkeypatch.setattr(held_session, "_LOOK_EVERY", 0.001)


def test_a_session_ends_once_nobody_of_a_directory_that_cannot_be_read_answers() -> None:
    async def play() -> None:
        swarm = Swarm()
        held = HeldSession(swarm.join)
        await held.start()
        swarm.is_blind = True
        await swarm.is_looked_at(50)  # for longer than a session may be alone
        assert not swarm.left.is_set()  # the directory cannot be read, but the peer is there
        swarm.answers = False
        swarm.joined.clear()
        await swarm.left.wait()
        with pytest.raises(Unavailable, match="none of its peers"):
            _ = held.session
        swarm.answers, swarm.is_blind = True, False
        await swarm.joined.wait()
        await asyncio.sleep(0)
        assert held.session is cast("Session", swarm)
        await held.close()

    asyncio.run(play())


def test_a_process_that_was_stopped_for_long_looks_again_before_it_ends_a_session() -> None:
    async def play() -> None:
        swarm = Swarm()
        held = HeldSession(swarm.join)
        await held.start()
        swarm.is_blind, swarm.answers = True, False
        await swarm.is_looked_at(1)  # one look in vain
        time.sleep(0.05)  # noqa: ASYNC251  longer than all looks take, and nothing runs meanwhile
        swarm.answers = True
        await swarm.is_looked_at(20)
        assert not swarm.left.is_set()
        await held.close()

    asyncio.run(play())


def test_looks_in_vain_that_follow_one_another_quickly_end_no_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(held_session, "_ALONE", 3600.0)

    async def play() -> None:
        swarm = Swarm()
        held = HeldSession(swarm.join)
        await held.start()
        swarm.is_blind, swarm.answers = True, False
        await swarm.is_looked_at(20)
        assert not swarm.left.is_set()
        await held.close()

    asyncio.run(play())


def test_a_look_that_takes_long_is_not_repeated_many_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_session, "_ALONE", 0.0)  # as if each look took longer than this

    async def play() -> None:
        swarm = Swarm()
        held = HeldSession(swarm.join)
        await held.start()
        swarm.is_blind, swarm.answers, swarm.looks = True, False, 0
        await swarm.left.wait()
        assert swarm.looks <= 2
        await held.close()

    asyncio.run(play())


def test_a_session_ends_when_all_records_have_expired() -> None:
    async def play() -> None:
        swarm = Swarm()
        held = HeldSession(swarm.join)
        await held.start()
        swarm.records = []
        await swarm.left.wait()
        await held.close()

    asyncio.run(play())


def test_an_error_of_the_system_does_not_end_the_attempts_to_join(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(held_session, "_BACKOFF", Backoff(first=0.001, longest=0.001))

    async def play() -> None:
        swarm = Swarm()
        swarm.fault = OSError(errno.ENOSPC, "No space left on device")
        held = HeldSession(swarm.join)
        await held.start()
        swarm.joined.clear()
        swarm.answers, swarm.is_blind = False, True
        for _ in range(3):
            await swarm.refused.acquire()
        with pytest.raises(Unavailable, match="No space left"):
            _ = held.session
        swarm.answers = True
        await asyncio.wait_for(swarm.joined.wait(), 60)
        await held.close()

    asyncio.run(asyncio.wait_for(play(), 60))


def test_an_error_of_the_system_at_the_first_join_is_told() -> None:
    async def play() -> None:
        swarm = Swarm()
        swarm.fault, swarm.answers = OSError(errno.ENOSPC, "No space left on device"), False
        with pytest.raises(Unavailable, match="No space left"):
            await HeldSession(swarm.join).start()

    asyncio.run(play())


def test_what_is_under_way_when_a_session_is_given_up_may_be_tried_again() -> None:
    async def play() -> None:
        swarm = Swarm()
        swarm.ends_within = 60.0
        held = HeldSession(swarm.join)
        await held.start()
        with pytest.raises(UsageError, match="a wrong prompt"), held.using():
            raise UsageError("a wrong prompt")

        async def ask() -> None:
            with held.using():
                swarm.answers, swarm.is_blind = False, True
                await swarm.left.wait()
                raise UsageError("this transport is closed")

        with pytest.raises(Unavailable, match=r"session has ended \(none of its peers"):
            await ask()
        with pytest.raises(Unavailable, match="none of its peers"):
            _ = held.session  # nothing new begins with one that ends
        await held.close()

    asyncio.run(play())
