"""A storage peer whose store takes long to open remains an owner of its shards."""

import asyncio
import logging
import threading
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from giaann_p2p.errors import DamagedError, DiskError
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.replication import opening
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.member_messages import AskManifest, AskRelease, ManifestIs
from giaann_p2p.swarm.wire.messages import Refusal, decode, encode
from giaann_p2p.swarm.wire.shardset import unpacked
from tests.unit.node.helpers import LESSONS, Client, Town, play

CHUNKS = range(6)
OPENING = 90.0
"""Seconds that opening a large store takes here: far more than the patience of the others."""


async def taught_town(town: Town) -> Client:
    for _ in range(5):
        town.add()
    client = Client(town)
    await town.until(town.settled, 300)
    await client.push_all(CHUNKS)
    await town.until(lambda: town.holds_what(CHUNKS))
    return client


def test_shards_of_a_peer_that_opens_its_store_are_not_served_without_it() -> None:
    async def story(town: Town) -> None:
        client = await taught_town(town)
        neuron = LESSONS.neurons(1)[0]
        shard = LESSONS.layout.shard_of(*neuron)
        large = [house for house in town.houses if shard in house.node.core.replicas.held]
        assert len(large) == 3
        for house in town.houses:
            await house.end()
        await asyncio.sleep(40)  # their records have expired
        for house in town.houses:
            house.begin(OPENING if house in large else 0.0)
        loop, refused = asyncio.get_running_loop(), 0
        until = loop.time() + OPENING - 5
        while loop.time() < until:
            await asyncio.sleep(1)
            try:
                rows = await client.reading.rows([neuron])
            except Unreachable:
                refused += 1
            else:
                assert all(rows)
        assert refused
        (said,) = {client.lookout.view.directory.announcement(large[0].me, "storage")}
        assert said is not None
        assert said.capacity == town.capacity
        assert shard in unpacked(said.syncing, LESSONS.layout.shards)
        await town.until(town.settled, 300)
        assert town.holds_what(CHUNKS)
        assert all(await client.reading.rows([neuron]))

    play(story)


def test_a_peer_that_opens_its_store_answers_what_needs_no_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It announces its shards as the swarm counts them now, and leaves the board to the next."""
    checked, forgotten, found = list[Any](), list[bool](), dict[str, Any]()
    layout = LESSONS.layout.with_shards(2 * LESSONS.layout.shards)

    def refused(peer: Peer, question: object) -> None:
        checked.append(question)

    class Quiet:
        def __init__(self, *told: object, **_: object) -> None:
            found["record"] = told[-1]

        async def run(self) -> None:
            await asyncio.Event().wait()

    gate = SimpleNamespace(
        rules=lambda: SimpleNamespace(layout=layout, shards=layout.shards),
        admission=None,
        check=refused,
        answer=lambda question: ManifestIs(b"m") if isinstance(question, AskManifest) else None,
    )
    context: Any = SimpleNamespace(
        log=logging.getLogger("giaann.test"),
        identity=SimpleNamespace(peer=b"p"),
        manifest=SimpleNamespace(swarm_id=b"s"),
        gate=gate,
        board=SimpleNamespace(forget=lambda: forgotten.append(True)),
        clock=None,
        options=None,
        transport=SimpleNamespace(serve=lambda answer: found.update(answer=answer)),
    )
    monkeypatch.setattr(opening, "Lookout", Quiet)
    monkeypatch.setattr(opening, "Presence", Quiet)
    monkeypatch.setattr(msgspec.structs, "replace", lambda _, **fields: fields)

    async def main() -> None:
        done = asyncio.get_running_loop().create_future()
        shards = np.array([3], np.uint16)
        task = asyncio.create_task(opening.announced(context, 7, shards, LESSONS.layout, done))
        await asyncio.sleep(0.01)
        said = found["record"](None)
        assert (said["capacity"], said["counted"]) == (7, 32)
        assert unpacked(said["syncing"], 32).tolist() == [3, 19]
        assert decode(found["answer"](b"p" * 32, encode(AskManifest()))) == ManifestIs(b"m")
        busy = decode(found["answer"](b"p" * 32, encode(AskRelease())))
        assert isinstance(busy, Refusal)
        assert busy.is_busy
        assert checked == [AskManifest(), AskRelease()]
        assert not forgotten
        done.set_result(None)
        await task

    asyncio.run(main())
    assert forgotten == [True]


class Opening:
    """A store that takes as long to open as a test wants, and what is announced meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, soon: float = 0.01) -> None:
        monkeypatch.setattr(opening, "_SOON", soon)
        monkeypatch.setattr(opening, "announced", self._announced)
        self.context: Any = SimpleNamespace(log=logging.getLogger("giaann.test"))
        self.may_end, self.announced = threading.Event(), asyncio.Event()
        self.error: Exception | None = None

    async def _announced(
        self, _: object, capacity: int, shards: str, layout: str, until: asyncio.Future[Any]
    ) -> None:
        assert (capacity, shards, layout) == (7, "shards", "layout")
        self.announced.set()
        self.may_end.set()
        await asyncio.wait({until})

    async def opened(self) -> str:
        return await opening.opened(self.context, 7, self._open, self.shards)

    def shards(self) -> Any:  # noqa: ANN401  (what is passed on)
        return "shards", "layout"

    def _open(self) -> str:
        assert self.may_end.wait(60)
        if self.error is not None:
            raise self.error
        return "the store"


def test_a_store_that_is_soon_open_is_not_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Opening(monkeypatch, soon=60.0)
    told.may_end.set()
    assert asyncio.run(told.opened()) == "the store"
    assert not told.announced.is_set()


def test_a_peer_is_announced_while_its_store_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Opening(monkeypatch)
    assert asyncio.run(told.opened()) == "the store"
    assert told.announced.is_set()


@pytest.mark.parametrize("error", [DiskError("no store.json"), OSError(5, "input or output")])
def test_a_store_whose_shards_cannot_be_read_is_opened_all_the_same(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new one, for example, on a slow disk."""
    told = Opening(monkeypatch)

    def shards() -> None:
        told.may_end.set()
        raise error

    monkeypatch.setattr(told, "shards", shards)
    assert asyncio.run(told.opened()) == "the store"
    assert not told.announced.is_set()


def test_a_store_that_is_open_before_its_shards_are_read_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, is_open = Opening(monkeypatch), threading.Event()

    def shards() -> None:
        told.may_end.set()
        assert is_open.wait(60)

    monkeypatch.setattr(told, "shards", shards)
    assert asyncio.run(told.opened()) == "the store"
    is_open.set()
    _join()
    assert not told.announced.is_set()


@pytest.mark.parametrize("soon", [0.01, 60.0])
def test_a_store_that_cannot_be_opened_is_told(
    soon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Opening(monkeypatch, soon)
    if soon > 1:
        told.may_end.set()
    told.error = DamagedError("the snapshot is damaged")
    with pytest.raises(DamagedError, match="snapshot is damaged"):
        asyncio.run(told.opened())
    assert told.announced.is_set() == (soon < 1)


def test_a_signal_does_not_wait_until_the_store_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Opening(monkeypatch, soon=60.0)

    async def ended() -> None:
        task = asyncio.create_task(told.opened())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(ended())
    assert not told.may_end.is_set()
    told.may_end.set()
    _join()


def _join() -> None:
    for thread in threading.enumerate():
        if thread.name == "giaann-opening":
            thread.join()
