"""A start ends when the directory knows what the storage peers hold."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from giaann_p2p.cli import swarm_seen
from giaann_p2p.cli.swarm_seen import until_seen
from giaann_p2p.net.clock import run
from giaann_p2p.net.errors import Unreachable


def record(role: str, *syncing: int) -> SimpleNamespace:
    return SimpleNamespace(role=role, syncing=syncing)


COPYING = [record("storage"), record("storage", 3, 5), record("compute")]
SETTLED = [record("storage"), record("storage"), record("compute")]


class Directory:
    """A directory that tells one thing after the other, and the last one for ever."""

    def __init__(self, *told: list[SimpleNamespace]) -> None:
        self._told = iter(told)
        self._last: list[SimpleNamespace] = []
        self.looks = 0

    def live(self, now: float) -> list[SimpleNamespace]:
        self.looks += 1
        self._last = next(self._told, self._last)
        return self._last

    def sets_of(self, said: SimpleNamespace) -> SimpleNamespace:
        return said


@pytest.fixture
def swarm(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Directory:
    directory = Directory(*request.param)
    session = SimpleNamespace(now=0.0, around=SimpleNamespace(directory=directory))

    @asynccontextmanager
    async def visiting(link: str) -> AsyncIterator[SimpleNamespace]:
        assert link == "a link"
        yield session

    monkeypatch.setattr(swarm_seen, "visiting", visiting)
    return directory


@pytest.mark.parametrize("gives_up", [False, True])
def test_nor_for_a_swarm_that_cannot_be_reached(
    monkeypatch: pytest.MonkeyPatch, gives_up: bool
) -> None:
    @asynccontextmanager
    async def visiting(link: str) -> AsyncIterator[None]:
        await asyncio.sleep(3600)
        yield

    monkeypatch.setattr(swarm_seen, "visiting", visiting)
    assert run(seconds(gives_up)) == pytest.approx(0 if gives_up else 10, abs=0.3)


def test_what_goes_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def visiting(link: str) -> AsyncIterator[None]:
        raise Unreachable("nobody is there")
        yield

    monkeypatch.setattr(swarm_seen, "visiting", visiting)
    with pytest.raises(Unreachable, match="nobody"):
        run(seconds())


async def seconds(gives_up: bool = False) -> float:
    began = asyncio.get_running_loop().time()
    await until_seen("a link", 2, lambda: gives_up)
    return asyncio.get_running_loop().time() - began


@pytest.mark.parametrize(
    ("swarm", "looks"),
    [
        ((SETTLED,), 1),
        ((SETTLED[:1], COPYING, COPYING, SETTLED), 4),
        (([], SETTLED), 2),
    ],
    indirect=["swarm"],
)
def test_it_waits_until_all_are_known_to_have_what_they_hold(swarm: Directory, looks: int) -> None:
    assert run(seconds()) == pytest.approx(0.2 * (looks - 1), abs=0.01)
    assert swarm.looks == looks


@pytest.mark.parametrize("swarm", [(COPYING,)], indirect=True)
def test_it_does_not_wait_for_ever(swarm: Directory) -> None:
    assert run(seconds()) == pytest.approx(10, abs=0.3)
    assert run(seconds(gives_up=True)) == 0
